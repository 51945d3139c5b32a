// Tests of a start after a crash: partial uploads, staged chunk lists, garbage, removed trees.
import assert from "node:assert/strict";
import { existsSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { type TestContext, test } from "node:test";
import { crc32 } from "node:zlib";
import { chunkPath } from "#storage/chunks/chunk-names.ts";
import { packCrcs } from "#storage/chunks/chunk-writer.ts";
import { Writer } from "#storage/writer/writer.ts";
import { temporaryDirectory } from "#testing/temporary-folder.ts";
import { until } from "#testing/until.ts";
import { assertSound, BY_OWNER, OWNER, openTestStorage, patterned, query, upload } from "./store.fixture.ts";

const NAME = "ab".repeat(16);

/** A directory with one large file, and a chunk file that no file uses yet. */
async function crashed(context: TestContext): Promise<{ directory: string; db: DatabaseSync }> {
  const directory = temporaryDirectory(context);
  const storage = await openTestStorage(directory);
  const { directoryId: parentId } = await storage.createRoot({ owner: OWNER, rootId: "01ROOT" });
  await upload(storage, { parentId, name: "kept", bytes: patterned(100_000) });
  await storage.close();
  writeFileSync(chunkPath(directory, NAME), patterned(1_000));
  const db = new DatabaseSync(join(directory, "inodes.db"));
  return { directory, db };
}

function insertChunk(db: DatabaseSync, refs: number): void {
  const crc = crc32(patterned(1_000));
  db.prepare("INSERT INTO chunk VALUES (77, ?, 1000, ?, ?, ?)").run(NAME, crc, packCrcs([crc]), refs);
}

async function restarts(directory: string): Promise<void> {
  const storage = await openTestStorage(directory);
  await until(() => !existsSync(chunkPath(directory, NAME)));
  await until(() => {
    const db = new DatabaseSync(join(directory, "inodes.db"), { timeout: 5_000 });
    const row = db.prepare(
      "SELECT (SELECT count(*) FROM chunk) + (SELECT count(*) FROM purging) + (SELECT count(*) FROM staging) AS count",
    );
    const { count } = row.get() as { count: number };
    db.close();
    return count === 1;
  });
  assert.equal(storage.facts().chunkCount, 1);
  await storage.close();
  assertSound(directory);
}

test("a chunk file without a row is swept where such may lie", async (context) => {
  const { directory, db } = await crashed(context);
  db.exec("INSERT INTO open_directory (name) VALUES ('ab')");
  db.close();
  await restarts(directory);
});

test("the staged chunks of an upload that was not committed go, and count nowhere (A-02)", async (context) => {
  const { directory, db } = await crashed(context);
  insertChunk(db, 1);
  db.exec("INSERT INTO file_chunk VALUES (4294967999, 0, 77); INSERT INTO staging VALUES (4294967999, 1)");
  db.exec("UPDATE counter SET value = 2 WHERE name = 'chunks'; UPDATE root SET next_id = 1000");
  db.close();
  await restarts(directory);
});

test("garbage whose file was not unlinked yet, or was already, goes (A-03)", async (context) => {
  for (const isUnlinked of [false, true]) {
    const { directory, db } = await crashed(context);
    insertChunk(db, 0);
    db.exec("INSERT INTO garbage VALUES (5, 77)");
    db.close();
    if (isUnlinked) rmSync(chunkPath(directory, NAME));
    await restarts(directory);
  }
});

test("a tree whose removal was cut off is removed to its end (A-03)", async (context) => {
  const directory = temporaryDirectory(context);
  const storage = await openTestStorage(directory);
  const { directoryId: parentId } = await storage.createRoot({ owner: OWNER, rootId: "01ROOT" });
  const { inode: top } = await storage.createDirectory({ ...BY_OWNER, parentId, name: "top" });
  await upload(storage, { parentId: top.id, name: "f", bytes: patterned(100_000) });
  await storage.close();
  const db = new DatabaseSync(join(directory, "inodes.db"));
  db.exec(
    `UPDATE inode SET parent_id = NULL WHERE id = ${top.id}; INSERT INTO purging (inode_id) VALUES (${top.id})`,
  );
  db.exec(
    "UPDATE inode SET size = 0, child_count = 0, tree_inodes = 0, tree_files = 0, height = 0 WHERE name = ''",
  );
  db.exec(
    "UPDATE root SET live_bytes = 0, file_count = 0, live_inodes = 0; UPDATE counter SET value = 1 WHERE name = 'inodes'",
  );
  db.close();
  assertSound(directory);
  const again = await openTestStorage(directory);
  await until(() => again.facts().chunkCount === 0);
  await again.close();
  assertSound(directory);
});

test("what cannot be removed keeps nothing else of what is detached, and goes once it can (A-03)", async (context) => {
  const directory = temporaryDirectory(context);
  const storage = await openTestStorage(directory);
  const { directoryId: parentId } = await storage.createRoot({ owner: OWNER, rootId: "01ROOT" });
  /** Makes a directory that is removed in slices. */
  const made = async (name: string): Promise<number> => {
    const { inode } = await storage.createDirectory({ ...BY_OWNER, parentId, name });
    await storage.createDirectory({ ...BY_OWNER, parentId: inode.id, name: "inside" });
    return inode.id;
  };
  const remove = (inodeId: number): Promise<unknown> =>
    storage.remove({ ...BY_OWNER, inodeId, recursive: true });
  const left = (): unknown[] => query(directory, "SELECT id FROM inode ORDER BY id").map(({ id }) => id);
  /** Lets the removal of these rows fail, and of no others. */
  const refuse = (...ids: number[]): void => {
    const db = new DatabaseSync(join(directory, "inodes.db"), { timeout: 5_000 });
    db.exec(`DROP TRIGGER IF EXISTS odd; CREATE TRIGGER odd BEFORE DELETE ON inode
      WHEN old.id IN (${ids.join(",")}) BEGIN SELECT RAISE(ABORT, 'odd'); END`);
    db.close();
  };
  const [older, newer, last] = [await made("older"), await made("newer"), await made("last")];
  refuse(older, newer);
  await remove(older);
  await remove(newer);
  await until(() => left().length === 5);
  // Something newer begins the next turn, which comes to the older one behind the one that is refused.
  refuse(newer);
  await remove(last);
  await until(() => left().length === 2);
  assert.ok(left().includes(newer));
  refuse();
  await remove(await made("again"));
  await until(() => left().length === 1);
  await storage.close();
  assertSound(directory);
});

test("what is detached goes at once, however often another thing could not be removed (A-03)", async (context) => {
  const directory = temporaryDirectory(context);
  const storage = await openTestStorage(directory);
  const { directoryId: parentId } = await storage.createRoot({ owner: OWNER, rootId: "01ROOT" });
  const ids: number[] = [];
  for (let number = 0; number < 41; number++) {
    const { inode } = await storage.createDirectory({ ...BY_OWNER, parentId, name: `d${number}` });
    await storage.createDirectory({ ...BY_OWNER, parentId: inode.id, name: "inside" });
    ids.push(inode.id);
  }
  await storage.close();
  const databasePath = join(directory, "inodes.db");
  const db = new DatabaseSync(databasePath, { timeout: 5_000 });
  const [odd = 0, ...others] = ids;
  db.exec(
    `CREATE TRIGGER odd BEFORE DELETE ON inode WHEN old.id = ${odd} BEGIN SELECT RAISE(ABORT, 'odd'); END`,
  );
  db.close();
  const writer = new Writer({ databasePath, ballastPath: join(directory, "ballast"), ballastBytes: 0 });
  context.after(() => writer.close("checkpoint"));
  const by = { ...BY_OWNER, accessVersion: undefined, nowMs: 1 };
  const remove = (inodeId: number): void => {
    writer.run([[0, { op: "remove", ...by, inodeId, recursive: true }]]);
  };
  /** One turn, as after each command that may have detached something. */
  const purge = (): void => {
    for (let slices = 0; writer.purgeSlice(); slices++) assert.ok(slices < 100);
  };
  const isLeft = (id: number): boolean =>
    query(directory, `SELECT id FROM inode WHERE id = ${id}`).length > 0;
  remove(odd);
  for (const [slices, id] of others.entries()) {
    // As many slices in vain: a removal comes between turns, or in the middle of one.
    for (let slice = 0; slice < slices; slice++) writer.purgeSlice();
    remove(id);
    purge();
    assert.equal(isLeft(id), false, `after ${slices} slices`);
  }
  assert.equal(isLeft(odd), true);
});
