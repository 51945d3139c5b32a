// Tests of damaged bytes: a read finds them, all files with them are marked, and reads fail until the owner
// replaces them.
import assert from "node:assert/strict";
import { copyFileSync, readFileSync, rmSync, truncateSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { type TestContext, test } from "node:test";
import { ManualClock } from "#base/clock.ts";
import { CHUNK_BYTES } from "#base/limits.ts";
import { checkStorage } from "#storage/check/check-storage.ts";
import type { DamageFound, Storage } from "#storage/contract/storage.ts";
import { DAMAGED_FILES_PER_COMMAND } from "#storage/metadata/damage-rows.ts";
import { temporaryDirectory } from "#testing/temporary-folder.ts";
import { until } from "#testing/until.ts";
import {
  assertSound,
  BY_OWNER,
  chunkFiles,
  freshStorage,
  inodeAt,
  OWNER,
  openTestStorage,
  patterned,
  readAll,
  refusal,
  upload,
} from "./store.fixture.ts";

const CHUNK = 300_000;

/** Damages of a chunk file on a disk. */
const DAMAGES: Readonly<Record<string, (path: string) => void>> = {
  "a flipped bit": (path) => {
    const bytes = readFileSync(path);
    bytes[270_000] = (bytes[270_000] ?? 0) ^ 4;
    writeFileSync(path, bytes);
  },
  "a cut end": (path) => truncateSync(path, CHUNK - 1),
  "no bytes": (path) => truncateSync(path, 0),
  "no file": (path) => rmSync(path),
};

async function withDamage(
  context: TestContext,
  damage: (path: string) => void,
): Promise<{ storage: Storage; directory: string; parentId: number; found: DamageFound[] }> {
  const opened = await freshStorage(context, { isCheckedAfterwards: false });
  const { storage, directory, rootDirectoryId: parentId } = opened;
  const found: DamageFound[] = [];
  storage.onDamage((what) => found.push(what));
  await upload(storage, { parentId, name: "bad", bytes: patterned(CHUNK, 3) });
  const [path = ""] = chunkFiles(directory);
  await upload(storage, { parentId, name: "good", bytes: patterned(CHUNK, 4) });
  damage(path);
  return { storage, directory, parentId, found };
}

for (const [what, damage] of Object.entries(DAMAGES)) {
  test(`${what} in a chunk: no byte is given out, the mark stays over a restart and goes with new content (A-08)`, async (context) => {
    const { storage, directory, parentId, found } = await withDamage(context, damage);
    await assert.rejects(readAll(storage, inodeAt(storage, "bad").id), refusal("CORRUPT"));
    await until(() => found.length > 0);
    assert.equal(found[0]?.files, 1);
    assert.equal(inodeAt(storage, "bad").damaged, true);
    assert.equal(inodeAt(storage, "good").damaged, false);
    assert.ok((await readAll(storage, inodeAt(storage, "good").id)).equals(patterned(CHUNK, 4)));
    // Refused as well: the intact parts, and those before the damage.
    const content = storage.openFile(inodeAt(storage, "bad").id);
    await assert.rejects(async () => content.readBlock(0), refusal("CORRUPT"));
    assert.throws(() => content.rangeCrc32(0, 10), refusal("CORRUPT"));
    content.close();
    await storage.close();
    const again = await openTestStorage(directory);
    context.after(() => again.close());
    assert.equal(inodeAt(again, "bad").damaged, true);
    await upload(again, { parentId, name: "bad", bytes: patterned(CHUNK, 5) });
    assert.equal(inodeAt(again, "bad").damaged, false);
    assert.ok((await readAll(again, inodeAt(again, "bad").id)).equals(patterned(CHUNK, 5)));
    await again.close();
    assertSound(directory);
  });
}

test("two chunk files that were swapped are both found, and neither is given out for the other (A-08)", async (context) => {
  const { storage, directory } = await withDamage(context, () => undefined);
  const [first = "", second = ""] = chunkFiles(directory);
  const aside = join(directory, "aside");
  copyFileSync(first, aside);
  copyFileSync(second, first);
  copyFileSync(aside, second);
  for (const name of ["bad", "good"]) {
    await assert.rejects(readAll(storage, inodeAt(storage, name).id), refusal("CORRUPT"));
    await until(() => inodeAt(storage, name).damaged);
  }
});

test("all files that share a damaged chunk are marked by one read of one of them, however many they are", async (context) => {
  const directory = temporaryDirectory(context);
  const storage = await openTestStorage(directory);
  const { directoryId: parentId } = await storage.createRoot({ owner: OWNER, rootId: "01ROOT" });
  await upload(storage, { parentId, name: "f", bytes: patterned(CHUNK) });
  await storage.close();
  const copies = DAMAGED_FILES_PER_COMMAND + 1;
  share(directory, copies);
  const again = await openTestStorage(directory);
  context.after(() => again.close());
  const found: DamageFound[] = [];
  again.onDamage((what) => found.push(what));
  truncateSync(chunkFiles(directory)[0] ?? "", 10);
  await assert.rejects(readAll(again, inodeAt(again, "copy-7").id), refusal("CORRUPT"));
  await until(() => found.length > 0);
  assert.equal(found[0]?.files, copies + 1);
  assert.ok(inodeAt(again, "f").damaged && inodeAt(again, `copy-${copies}`).damaged);
});

/** Copies of the only file, made of the same chunk. */
function share(directory: string, copies: number): void {
  const db = new DatabaseSync(join(directory, "inodes.db"));
  db.exec(`
    WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ${copies})
    INSERT INTO inode SELECT id + 1000 + i, parent_id, 'copy-' || i, kind, size, crc32, version, mtime_ms, ctime_ms, flags,
      content_id + 100000 + i, created_by, child_count, tree_inodes, tree_files, height FROM inode, n WHERE name = 'f';
    INSERT INTO file_chunk SELECT content_id, 0, 1 FROM inode WHERE name LIKE 'copy-%';
    UPDATE chunk SET refs = refs + ${copies};
  `);
  db.close();
}

test("a write that replaces the damaged chunk makes the file whole; one that would need its bytes is refused", async (context) => {
  const { storage, directory, parentId } = await withDamage(context, () => undefined);
  await upload(storage, { parentId, name: "two", bytes: patterned(CHUNK_BYTES + 1_000) });
  const { id } = inodeAt(storage, "two");
  const large = chunkFiles(directory).find((path) => readFileSync(path).length === CHUNK_BYTES) ?? "";
  truncateSync(large, 0);
  await assert.rejects(readAll(storage, id), refusal("CORRUPT"));
  await until(() => inodeAt(storage, "two").damaged);
  const write = { ...BY_OWNER, fileId: id, ifMatch: undefined };
  const part = { ...write, offset: 5, data: Buffer.alloc(5) };
  await assert.rejects(storage.writeRange(part), refusal("CORRUPT"));
  const bytes = patterned(CHUNK_BYTES, 9);
  await storage.writeRange({ ...write, offset: 0, data: bytes });
  assert.equal(inodeAt(storage, "two").damaged, false);
  const expected = Buffer.concat([bytes, patterned(CHUNK_BYTES + 1_000).subarray(CHUNK_BYTES)]);
  assert.ok((await readAll(storage, id)).equals(expected));
});

test("a changed byte in a small file is found by a read and by a write, and a write of the whole replaces it", async (context) => {
  const clock = new ManualClock();
  const directory = temporaryDirectory(context);
  const storage = await openTestStorage(directory, { clock });
  const { directoryId: parentId } = await storage.createRoot({ owner: OWNER, rootId: "01ROOT" });
  for (const name of ["read", "written"]) {
    await storage.createFile({ ...BY_OWNER, parentId, name, data: patterned(1_000), mtimeMs: 0 });
  }
  await storage.close();
  const db = new DatabaseSync(join(directory, "inodes.db"));
  db.exec("UPDATE inline_content SET data = zeroblob(1000)");
  db.close();
  const again = await openTestStorage(directory, { clock });
  context.after(() => again.close());
  await assert.rejects(readAll(again, inodeAt(again, "read").id), refusal("CORRUPT"));
  await until(() => inodeAt(again, "read").damaged);
  const write = { ...BY_OWNER, fileId: inodeAt(again, "written").id, ifMatch: undefined };
  const part = { ...write, offset: 999, data: Buffer.alloc(9) };
  await assert.rejects(again.writeRange(part), refusal("CORRUPT"));
  await until(() => inodeAt(again, "written").damaged);
  await again.writeRange({ ...write, offset: 0, data: patterned(1_000, 2) });
  assert.equal(inodeAt(again, "written").damaged, false);
  assert.ok((await readAll(again, write.fileId)).equals(patterned(1_000, 2)));
});

test("a small file whose type was changed in a page of the database is refused, and the check says so", async (context) => {
  const directory = temporaryDirectory(context);
  const storage = await openTestStorage(directory);
  const { directoryId: parentId } = await storage.createRoot({ owner: OWNER, rootId: "01ROOT" });
  await storage.createFile({ ...BY_OWNER, parentId, name: "file", data: patterned(1_000), mtimeMs: 0 });
  await storage.close();
  // The last two bytes of the record's header say "1,000 bytes", in base 128; without the first bit, "a text of one".
  const path = join(directory, "inodes.db");
  const pages = readFileSync(path);
  const at = pages.indexOf(patterned(1_000)) - 2;
  assert.equal(pages[at], 0x8f);
  pages[at] = 0x0f;
  writeFileSync(path, pages);
  const again = await openTestStorage(directory);
  const { id } = inodeAt(again, "file");
  await assert.rejects(async () => await readAll(again, id), refusal("CORRUPT"));
  await until(() => inodeAt(again, "file").damaged);
  await again.close();
  const { differences } = checkStorage(directory, { repair: false, deep: true });
  assert.match(differences.join(), /the database is damaged/);
});

test("damage of what is removed meanwhile marks nothing and tells nobody", async (context) => {
  const { storage, directory, found } = await withDamage(context, () => undefined);
  const { id } = inodeAt(storage, "bad");
  const content = storage.openFile(id);
  await storage.remove({ ...BY_OWNER, inodeId: id, recursive: false });
  for (const path of chunkFiles(directory)) truncateSync(path, 0);
  await assert.rejects(async () => content.readBlock(0), refusal("CORRUPT"));
  content.close();
  await assert.rejects(readAll(storage, inodeAt(storage, "good").id), refusal("CORRUPT"));
  await until(() => found.length > 0);
  assert.deepEqual(
    found.map(({ files }) => files),
    [1],
  );
});

/** Damages of the rows that list a file's chunks, while every chunk is intact. */
const LIST_DAMAGES: Readonly<Record<string, string>> = {
  "a lost chunk": "DELETE FROM file_chunk WHERE content_id = bad AND position = 1",
  "a chunk twice":
    "UPDATE file_chunk SET chunk_id = (SELECT min(chunk_id) FROM file_chunk WHERE content_id = bad) WHERE content_id = bad",
  "another file's chunk":
    "UPDATE file_chunk SET chunk_id = (SELECT max(chunk_id) FROM file_chunk) WHERE content_id = bad AND position = 0",
  "a longer file": "UPDATE inode SET size = size + 1 WHERE content_id = bad",
};

for (const [what, statement] of Object.entries(LIST_DAMAGES)) {
  test(`${what} in the list of a large file: no read of any part gives wrong bytes, and the scrub finds it too (A-08)`, async (context) => {
    const directory = temporaryDirectory(context);
    const before = await openTestStorage(directory);
    const { directoryId: parentId } = await before.createRoot({ owner: OWNER, rootId: "01ROOT" });
    await upload(before, { parentId, name: "bad", bytes: patterned(CHUNK_BYTES + 300_000) });
    await upload(before, { parentId, name: "good", bytes: patterned(CHUNK_BYTES + 300_000, 2) });
    await before.close();
    const db = new DatabaseSync(join(directory, "inodes.db"));
    const bad = "(SELECT content_id FROM inode WHERE name = 'bad')";
    assert.ok(db.prepare(statement.replaceAll(/\bbad\b/g, bad)).run().changes > 0);
    db.close();
    const kept = readFileSync(join(directory, "inodes.db"));
    const reading = await openTestStorage(directory);
    const content = reading.openFile(inodeAt(reading, "bad").id);
    await assert.rejects(async () => content.readBlock(CHUNK_BYTES), refusal("CORRUPT"));
    assert.throws(() => content.rangeCrc32(0, content.inode.sizeBytes), refusal("CORRUPT"));
    content.close();
    assert.ok(
      (await readAll(reading, inodeAt(reading, "good").id)).equals(patterned(CHUNK_BYTES + 300_000, 2)),
    );
    await until(() => reading.damagedFiles().count === 1);
    await reading.close();
    writeFileSync(join(directory, "inodes.db"), kept);
    const scrubbing = await openTestStorage(directory);
    scrubbing.startScrub({ bytesPerSecond: 2 ** 40, pauseMs: 86_400_000 });
    await until(() => scrubbing.damagedFiles().count > 0 && !scrubbing.scrubState().isRunning);
    assert.deepEqual(
      scrubbing.damagedFiles().listed.map(({ path }) => path),
      ["/bad"],
    );
    await scrubbing.close();
  });
}
