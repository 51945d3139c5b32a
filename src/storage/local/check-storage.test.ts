// Tests that the check finds every planted difference, repairs what it can, and destroys nothing.
import assert from "node:assert/strict";
import {
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  truncateSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { test } from "node:test";
import { CHECK_DIFFERENCES_LISTED, CHUNK_BYTES } from "#base/limits.ts";
import { checkStorage } from "#storage/check/check-storage.ts";
import { temporaryDirectory } from "#testing/temporary-folder.ts";
import {
  assertSound,
  BY_OWNER,
  copiesOf,
  inodeAt,
  OWNER,
  openTestStorage,
  patterned,
  readAll,
  refusal,
  upload,
} from "./store.fixture.ts";

/** A directory with a small file, a large one and folders. */
const filled = copiesOf(async (storage) => {
  const { directoryId } = await storage.createRoot({ owner: OWNER, rootId: "01ROOT" });
  const { inode: a } = await storage.createDirectory({ ...BY_OWNER, parentId: directoryId, name: "a" });
  const { inode: b } = await storage.createDirectory({ ...BY_OWNER, parentId: a.id, name: "b" });
  await upload(storage, { parentId: b.id, name: "small", bytes: patterned(1_000) });
  await upload(storage, { parentId: b.id, name: "large", bytes: patterned(700_000) });
});

function change(directory: string, sql: string): void {
  const db = new DatabaseSync(join(directory, "inodes.db"), { enableForeignKeyConstraints: false });
  db.exec(sql);
  db.close();
}

function chunkFile(directory: string): string {
  const [entry] = readdirSync(join(directory, "chunks"), { recursive: true, withFileTypes: true }).filter(
    (each) => each.isFile(),
  );
  return join(entry?.parentPath ?? "", entry?.name ?? "");
}

const COUNTERS: Readonly<Record<string, readonly [string, RegExp]>> = {
  "a directory's size": [
    "UPDATE inode SET size = size + 1 WHERE name = 'a'",
    /ada@example\.com:\/a: says 701001 bytes/,
  ],
  "a directory's entries": [
    "UPDATE inode SET child_count = 9 WHERE name = 'b'",
    /:\/a\/b: says .* 9 entries/,
  ],
  "a directory's inodes and files": [
    "UPDATE inode SET tree_inodes = 0, tree_files = 7 WHERE name = 'b'",
    /:\/a\/b: says/,
  ],
  "a directory's levels": [
    "UPDATE inode SET height = 7 WHERE name = 'b'",
    /:\/a\/b: says .* 7 levels; .*, 1$/,
  ],
  "a root's bytes": ["UPDATE root SET live_bytes = 5", /says 5 live bytes; it is 701000/],
  "a root's files": ["UPDATE root SET file_count = 5", /says 5 files; it is 2/],
  "a root's trash": ["UPDATE root SET trash_bytes = 5", /says 5 bytes in the trash/],
  "a root's staging": ["UPDATE root SET staging_bytes = 5", /says 5 bytes in staging/],
  "a root's next id": ["UPDATE root SET next_id = 2", /next id/],
  "the counter of inodes": [
    "UPDATE counter SET value = 1 WHERE name = 'inodes'",
    /inodes says 1; there are 5/,
  ],
  "the counter of chunks": ["DELETE FROM counter WHERE name = 'chunks'", /chunks says 0; there are 1/],
  "a chunk's uses": ["UPDATE chunk SET refs = 4", /says 4 uses; there are 1/],
  "a chunk in use among the garbage": [
    "INSERT INTO garbage (sequence, chunk_id) SELECT 1, id FROM chunk",
    /marked for removal/,
  ],
  "a mark for shares": ["UPDATE inode SET flags = 2 WHERE name = 'a'", /mark for shares/],
  "a chunk that no file uses": [
    `INSERT INTO chunk (id, name, length, crc32, block_crcs, refs)
     VALUES (99, '${"ab".repeat(16)}', 1, 0, x'00000000', 0)`,
    /is used by no file/,
  ],
  "whose a share is": [
    shareWith("bob@example.com", "eve@example.com"),
    /says that it is of eve@example\.com:\/a/,
  ],
};

/** A share of the folder "a" with another owner in its row. */
function shareWith(username: string, owner: string): string {
  return `INSERT INTO share_grant (inode_id, username, granted_by, granted_at_ms, owner, path)
    SELECT id, '${username}', '${OWNER}', 0, '${owner}', '/a' FROM inode WHERE name = 'a';
    UPDATE inode SET flags = 2 WHERE name = 'a'; UPDATE root SET grant_count = 1`;
}

/** An unfinished upload that has staged the chunk of the large file. */
function uploadOf({ position = 0, size = 700_000, staged = 700_000, crc = -1 }): string {
  const list = "(SELECT max(content_id) + 1 FROM inode)";
  const sum = crc < 0 ? "(SELECT crc32 FROM chunk)" : `${crc}`;
  return `INSERT INTO upload (content_id, upload_id, root_number, username, path, size, replaces, if_match, mtime_ms,
      staged_bytes, crc32, touched_at_ms)
    SELECT ${list}, 'u1', number, '${OWNER}', '/x', ${size}, 0, NULL, 0, ${staged}, ${sum}, 0 FROM root;
    INSERT INTO file_chunk (content_id, position, chunk_id) SELECT ${list}, ${position}, id FROM chunk;
    UPDATE chunk SET refs = 2; UPDATE root SET staging_bytes = ${staged}`;
}

for (const [what, [sql, text]] of Object.entries(COUNTERS)) {
  test(`a difference in ${what} is found, told and repaired (A-17)`, async (context) => {
    const directory = await filled(context);
    change(directory, sql);
    const found = checkStorage(directory, { repair: false, deep: false });
    assert.ok(
      found.differences.some((difference) => text.test(difference)),
      found.differences.join("\n"),
    );
    assert.equal(found.repairedCount, 0);
    const repaired = checkStorage(directory, { repair: true, deep: false });
    assert.equal(repaired.differenceCount, found.differenceCount);
    assert.equal(repaired.repairedCount, repaired.differenceCount);
    assertSound(directory);
    const storage = await openTestStorage(directory);
    assert.equal(inodeAt(storage, "a", "b").sizeBytes, 701_000);
    await storage.close();
    assertSound(directory);
  });
}

const STRUCTURE: Readonly<Record<string, readonly [string, RegExp]>> = {
  "a detached inode": ["UPDATE inode SET parent_id = NULL WHERE name = 'b'", /is detached/],
  "a circle of directories": ["UPDATE inode SET parent_id = id WHERE name = 'b'", /3 inodes hang in no tree/],
  "an entry in a file": [
    "UPDATE inode SET parent_id = (SELECT id FROM inode WHERE name = 'small') WHERE name = 'large'",
    /lies in a file/,
  ],
  "a file without its list": [
    "UPDATE inode SET content_id = NULL WHERE name = 'large'",
    /has no list of chunks/,
  ],
  "a list without its file": [
    "UPDATE inode SET content_id = NULL WHERE name = 'large'",
    /belongs to nothing/,
  ],
  "missing inline bytes": ["DELETE FROM inline_content", /another length/],
  "inline bytes too many": [
    "UPDATE inode SET size = 0 WHERE name = 'small'",
    /inline bytes that it should not have/,
  ],
  "a wrong file checksum": ["UPDATE inode SET crc32 = 1 WHERE name = 'large'", /not that of its chunks/],
  "a wrong chunk checksum": ["UPDATE chunk SET crc32 = 1", /do not fit together/],
  "a missing block checksum": ["UPDATE chunk SET block_crcs = x''", /one checksum per block/],
  "a chunk behind the end": ["UPDATE inode SET size = 600000 WHERE name = 'large'", /behind its end/],
  "a dangling row": ["DELETE FROM chunk", /refers to a row that is missing/],
  "a dangling row with a number": [
    "INSERT INTO inline_content (inode_id, data) VALUES (12345, x'00')",
    /row 12345 of inline_content refers to a row that is missing/,
  ],
  "a root without its folder": [
    "UPDATE root SET directory_id = 12345",
    /the root of ada@example\.com has no directory/,
  ],
  "a share of nothing": [
    `INSERT INTO share_grant (inode_id, username, granted_by, granted_at_ms, owner, path)
     VALUES (12345, 'bob@example.com', '${OWNER}', 0, '${OWNER}', '/b')`,
    /the share of \(no root\):\/ with bob@example\.com is of nothing in a root/,
  ],
  "a share with the owner": [shareWith(OWNER, OWNER), /ada@example\.com:\/a is shared with its own owner/],
  "no identity": ["DELETE FROM meta WHERE key = 'data_id'", /belongs to data \(none\)/],
  "another identity": ["UPDATE meta SET value = 'x' WHERE key = 'data_id'", /belongs to data x/],
};

for (const [what, [sql, text]] of Object.entries(STRUCTURE)) {
  test(`${what} is found and told`, async (context) => {
    const directory = await filled(context);
    change(directory, sql);
    const found = checkStorage(directory, { repair: false, deep: false });
    assert.ok(
      found.differences.some((difference) => text.test(difference)),
      found.differences.join("\n"),
    );
  });
}

const UPLOADS: Readonly<Record<string, readonly [string, RegExp]>> = {
  "an upload's first bytes": [uploadOf({ position: 1, size: 8_000_000 }), /unfinished upload u1 has a gap/],
  "an upload's last bytes": [uploadOf({ size: 999_999 }), /unfinished upload u1 has a gap/],
  "an upload's staged bytes": [uploadOf({ staged: 5 }), /u1 says 5 staged bytes; there are 700000/],
  "an upload's checksum": [uploadOf({ crc: 1 }), /u1 has another checksum than its chunks/],
};

for (const [what, [sql, text]] of Object.entries(UPLOADS)) {
  test(`a difference in ${what} is found, and a repair drops the upload, whose sender starts anew (A-17)`, async (context) => {
    const directory = await filled(context);
    change(directory, sql);
    assert.match(checkStorage(directory, { repair: false, deep: false }).differences.join("\n"), text);
    assert.match(checkStorage(directory, { repair: true, deep: false }).differences.join("\n"), text);
    const storage = await openTestStorage(directory);
    assert.equal((await readAll(storage, inodeAt(storage, "a", "b", "large").id)).length, 700_000);
    await storage.close();
    assertSound(directory);
  });
}

test("an upload that has staged more than it announced is found, and dropped by a repair (A-17)", async (context) => {
  const directory = temporaryDirectory(context);
  const storage = await openTestStorage(directory);
  const { directoryId: parentId } = await storage.createRoot({ owner: OWNER, rootId: "01ROOT" });
  await upload(storage, { parentId, name: "large", bytes: patterned(CHUNK_BYTES) });
  await storage.close();
  change(directory, uploadOf({ size: CHUNK_BYTES - 1, staged: CHUNK_BYTES }));
  const told = /unfinished upload u1 has staged more than it announced/;
  assert.match(checkStorage(directory, { repair: false, deep: false }).differences.join("\n"), told);
  assert.match(checkStorage(directory, { repair: true, deep: false }).differences.join("\n"), told);
  await (await openTestStorage(directory)).close();
  assertSound(directory);
});

test("sums are put right also where a folder holds several, and what lies in a file is told and left (A-17)", async (context) => {
  const directory = await filled(context);
  const storage = await openTestStorage(directory);
  const parentId = inodeAt(storage, "a").id;
  for (const name of ["c", "d"]) await storage.createDirectory({ ...BY_OWNER, parentId, name });
  await storage.close();
  change(directory, "UPDATE inode SET size = 7, tree_inodes = 7 WHERE name IN ('a', 'b', 'c')");
  checkStorage(directory, { repair: true, deep: false });
  assertSound(directory);
  change(directory, STRUCTURE["an entry in a file"]?.[0] ?? "");
  checkStorage(directory, { repair: true, deep: false });
  const { differences } = checkStorage(directory, { repair: false, deep: false });
  assert.match(differences.join("\n"), /lies in a file/);
});

test("levels below a file are told, and taken from it by a repair (A-17)", async (context) => {
  const directory = await filled(context);
  change(directory, "UPDATE inode SET height = 3 WHERE name = 'small'");
  const { differences, repairedCount } = checkStorage(directory, { repair: true, deep: false });
  assert.match(differences.join("\n"), /small \(inode \d+\) is a file and has levels below it \(repaired\)/);
  assert.equal(repairedCount, 1);
  assertSound(directory);
});

test("a folder among the chunks that is none of theirs is told and left (A-17)", async (context) => {
  const directory = await filled(context);
  mkdirSync(join(directory, "chunks", "mine"));
  const { differences, repairedCount } = checkStorage(directory, { repair: true, deep: false });
  assert.match(differences.join("\n"), /chunks\/mine does not belong there/);
  assert.equal(repairedCount, 0);
  assert.ok(existsSync(join(directory, "chunks", "mine")));
});

test("of very many differences a thousand are listed and all are counted", async (context) => {
  const directory = await filled(context);
  change(
    directory,
    `WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ${CHECK_DIFFERENCES_LISTED + 1})
     INSERT INTO chunk (id, name, length, crc32, block_crcs, refs)
     SELECT 100 + i, printf('%032x', i), 1, 0, x'00000000', 0 FROM n`,
  );
  const { differences, differenceCount } = checkStorage(directory, { repair: false, deep: false });
  assert.deepEqual(
    [differences.length, differenceCount],
    [CHECK_DIFFERENCES_LISTED, CHECK_DIFFERENCES_LISTED + 1],
  );
});

test("missing and cut chunk files are found; a repair marks their files and removes nothing (A-08)", async (context) => {
  const directory = await filled(context);
  truncateSync(chunkFile(directory), 600_000);
  assert.match(
    checkStorage(directory, { repair: false, deep: false }).differences.join("\n"),
    /large: chunk .* 600000 bytes instead of 700000/,
  );
  rmSync(chunkFile(directory));
  const report = checkStorage(directory, { repair: true, deep: false });
  assert.match(report.differences.join("\n"), /large: chunk .* has no file/);
  assert.equal(report.repairedCount, 0);
  const storage = await openTestStorage(directory);
  assert.equal(inodeAt(storage, "a", "b", "large").damaged, true);
  assert.equal(inodeAt(storage, "a", "b", "small").damaged, false);
  await storage.close();
});

test("only a deep check finds changed bytes, in chunks and in the database (A-08)", async (context) => {
  const directory = await filled(context);
  const bytes = patterned(700_000);
  bytes[500_000] = (bytes[500_000] ?? 0) ^ 1;
  writeFileSync(chunkFile(directory), bytes);
  change(directory, "UPDATE inline_content SET data = zeroblob(1000)");
  assert.equal(checkStorage(directory, { repair: false, deep: false }).differenceCount, 0);
  const { differences, verifiedBytes } = checkStorage(directory, { repair: false, deep: true });
  assert.match(differences.join("\n"), /large: chunk .* checksum in block 1/);
  assert.match(differences.join("\n"), /small: its bytes do not match/);
  assert.equal(verifiedBytes, 0);
});

const LOST: Readonly<Record<string, string>> = {
  "a small file without bytes": "DELETE FROM inline_content",
  "a small file with too few bytes": "UPDATE inline_content SET data = x'00'",
  "a large file without one of its chunks":
    "DELETE FROM file_chunk; UPDATE chunk SET refs = 0; INSERT INTO garbage (sequence, chunk_id) SELECT 1, id FROM chunk",
  "a large file with another checksum": "UPDATE inode SET crc32 = 1 WHERE name = 'large'",
  "a file whose chunks reach behind its end": "UPDATE inode SET size = 600000 WHERE name = 'large'",
};

for (const [what, sql] of Object.entries(LOST)) {
  test(`a repair marks ${what} as damaged, and no later one takes the mark back (A-08)`, async (context) => {
    const directory = await filled(context);
    change(directory, sql);
    const name = what.includes("small") ? "small" : "large";
    for (const deep of [false, true, true]) {
      const { differences } = checkStorage(directory, { repair: true, deep });
      assert.match(differences.join("\n"), new RegExp(`/a/b/${name}`));
      assert.doesNotMatch(differences.join("\n"), /all its bytes are right/);
      const storage = await openTestStorage(directory);
      assert.equal(inodeAt(storage, "a", "b", name).damaged, true);
      assert.equal(storage.damagedFiles().count, 1);
      await storage.close();
    }
  });
}

test("bytes in the database beside a file's chunks make no damage of it (A-08)", async (context) => {
  const directory = await filled(context);
  change(directory, "INSERT INTO inline_content SELECT id, x'00' FROM inode WHERE name = 'large'");
  const { differences } = checkStorage(directory, { repair: true, deep: true });
  assert.match(differences.join("\n"), /large \(inode \d+\) has inline bytes that it should not have/);
  const storage = await openTestStorage(directory);
  assert.equal((await readAll(storage, inodeAt(storage, "a", "b", "large").id)).length, 700_000);
  await storage.close();
});

test("a chunk file that was put back counts again after a deep check that repairs, and not before (A-08)", async (context) => {
  const directory = await filled(context);
  const path = chunkFile(directory);
  const right = readFileSync(path);
  writeFileSync(path, Buffer.alloc(right.length));
  checkStorage(directory, { repair: true, deep: true });
  writeFileSync(path, right);
  assert.equal(checkStorage(directory, { repair: false, deep: true }).differenceCount, 1);
  const shallow = checkStorage(directory, { repair: true, deep: false });
  assert.deepEqual(shallow.differences, []);
  assert.match(shallow.notes.join("\n"), /1 files are marked as damaged/);
  const deep = checkStorage(directory, { repair: true, deep: true });
  assert.match(deep.differences.join("\n"), /large: is marked as damaged, and all its bytes are right/);
  assert.equal(deep.repairedCount, 1);
  assertSound(directory);
  const storage = await openTestStorage(directory);
  assert.equal((await readAll(storage, inodeAt(storage, "a", "b", "large").id)).length, right.length);
  await storage.close();
});

test("a file that uses a damaged chunk without a mark is found, and marked by a repair (A-08)", async (context) => {
  const directory = await filled(context);
  change(directory, "INSERT INTO damaged_chunk SELECT id, 0, 'x' FROM chunk");
  const report = checkStorage(directory, { repair: true, deep: false });
  assert.match(report.differences.join("\n"), /large: uses a damaged chunk and is not marked/);
  const storage = await openTestStorage(directory);
  assert.equal(inodeAt(storage, "a", "b", "large").damaged, true);
  await storage.close();
});

test("files that belong to nothing are set aside, leftovers of uploads are only noted (A-11)", async (context) => {
  const directory = await filled(context);
  const path = join(directory, "chunks", "ee", "ee".repeat(16));
  writeFileSync(path, "somebody's bytes");
  writeFileSync(join(directory, "chunks", "ee", "notes.txt"), "x");
  assert.equal(checkStorage(directory, { repair: false, deep: false }).differenceCount, 2);
  assert.ok(existsSync(path));
  assert.equal(checkStorage(directory, { repair: true, deep: false }).repairedCount, 2);
  assert.deepEqual(readdirSync(join(directory, "lost+found")).toSorted(), [
    `ee-${"ee".repeat(16)}`,
    "ee-notes.txt",
  ]);
  assertSound(directory);
  change(directory, "INSERT INTO open_directory (name) VALUES ('dd')");
  writeFileSync(join(directory, "chunks", "dd", "dd".repeat(16)), "half");
  const report = checkStorage(directory, { repair: true, deep: false });
  assert.deepEqual(report.differences, []);
  assert.match(report.notes.join("\n"), /1 chunk files of interrupted uploads/);
  await (await openTestStorage(directory)).close();
  assert.deepEqual(readdirSync(join(directory, "chunks", "dd")), []);
});

test("a directory in use, or none of ours, is not checked (A-19)", async (context) => {
  const directory = await filled(context);
  const storage = await openTestStorage(directory);
  assert.throws(() => checkStorage(directory, { repair: true, deep: false }), refusal("DATA_IN_USE"));
  await storage.close();
  for (const other of [join(directory, "none"), join(directory, "chunks")]) {
    assert.throws(() => checkStorage(other, { repair: false, deep: false }), refusal("NO_SUCH_PATH"));
  }
});
