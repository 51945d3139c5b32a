// Tests that the counts of a root's inodes, live and in its trash, are exact after every change and within
// the claim.
import assert from "node:assert/strict";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { test } from "node:test";
import { checkStorage } from "#storage/check/check-storage.ts";
import { type ChangeContext, type InodeId, StaleAccessError } from "#storage/contract/inode.ts";
import type { Storage } from "#storage/contract/storage.ts";
import { takeSchemaBack } from "#storage/metadata/schema-back.ts";
import {
  assertSound,
  BY_OWNER,
  freshStorage,
  inodeAt,
  OWNER,
  openTestStorage,
  patterned,
  upload,
} from "./store.fixture.ts";

/** The last schema without the counts. */
const SCHEMA_BEFORE_COUNTS = 9;
const BY_EVE: ChangeContext = { ...BY_OWNER, by: "eve@example.com" };

/** Live and trashed inodes of the root. */
function counts(storage: Storage): [live: number, trash: number] {
  const { usage } = storage.root(OWNER) ?? assert.fail();
  return [usage.liveInodes, usage.trashInodes];
}

function makeFile(storage: Storage, parentId: InodeId, name: string, more: Partial<ChangeContext> = {}) {
  return storage.createFile({ ...BY_OWNER, ...more, parentId, name, data: patterned(10), mtimeMs: 1 });
}

/** A folder "top" with a file and a folder in it: three inodes. */
async function makeTree(storage: Storage, parentId: InodeId): Promise<InodeId> {
  const { inode: top } = await storage.createDirectory({ ...BY_OWNER, parentId, name: "top" });
  await storage.createDirectory({ ...BY_OWNER, parentId: top.id, name: "inner" });
  await makeFile(storage, top.id, "file");
  return top.id;
}

test("every change says how many inodes it added, and the root's counts follow", async (context) => {
  const { storage, rootDirectoryId: parentId, directory } = await freshStorage(context);
  const topId = await makeTree(storage, parentId);
  assert.deepEqual(counts(storage), [3, 0]);
  const uploaded = await upload(storage, { parentId, name: "large", bytes: patterned(200_000) });
  assert.equal(uploaded.inodeDelta, 1);
  const over = await upload(storage, { parentId, name: "large", bytes: patterned(200_001) });
  assert.equal(over.inodeDelta, 0);
  const { item, inodeDelta: gone } = await storage.trash({ ...BY_OWNER, inodeId: topId });
  assert.deepEqual([gone, counts(storage)], [0, [1, 3]]);
  const names = ["a", "b", "top"];
  const restored = await storage.restore({ ...BY_OWNER, trashId: item.id, names, onConflict: "fail" });
  assert.deepEqual([restored.inodeDelta, counts(storage)], [2, [6, 0]]);
  const source = inodeAt(storage, "a");
  assert.equal(storage.inodesBelow(source.id), 4);
  assert.equal(storage.inodesBelow(inodeAt(storage, "large").id), 0);
  const place = { ...BY_OWNER, sourceId: source.id, parentId, name: "copy", onConflict: "fail" } as const;
  const limits = { by: OWNER, maxBytes: source.sizeBytes, maxInodes: 5, mayGoOn: () => undefined };
  const copied = await storage.copy({ ...limits, target: () => place });
  assert.deepEqual([copied.inodeDelta, counts(storage)], [5, [11, 0]]);
  const removed = await storage.remove({ ...BY_OWNER, inodeId: copied.inode.id, recursive: true });
  assert.deepEqual([removed.inodeDelta, counts(storage)], [-5, [6, 0]]);
  const { item: again } = await storage.trash({ ...BY_OWNER, inodeId: source.id });
  const purge = await storage.purgeTrash({ owner: OWNER, trashIds: [again.id] });
  assert.deepEqual([purge.inodeDelta, counts(storage)], [-5, [1, 0]]);
  await storage.close();
  assertSound(directory);
});

test("what a sharee replaces or cuts is one inode more, in the trash (D13)", async (context) => {
  const { storage, rootDirectoryId: parentId, directory } = await freshStorage(context);
  const { inode } = await makeFile(storage, parentId, "file");
  const cut = await storage.setSize({ ...BY_EVE, fileId: inode.id, sizeBytes: 3, ifMatch: undefined });
  assert.deepEqual([cut.inodeDelta, counts(storage)], [1, [1, 1]]);
  const { inode: other } = await makeFile(storage, parentId, "other");
  const move = { ...BY_EVE, inodeId: other.id, parentId, name: "file", onConflict: "replace" } as const;
  const moved = await storage.rename(move);
  assert.deepEqual([moved.inodeDelta, counts(storage)], [0, [1, 2]]);
  await storage.close();
  assertSound(directory);
});

test("a change that would make more than was claimed is stale, and leaves nothing", async (context) => {
  const { storage, rootDirectoryId: parentId, directory } = await freshStorage(context);
  const stale = (error: unknown): boolean => error instanceof StaleAccessError;
  const none = { maxInodes: 0 };
  await assert.rejects(makeFile(storage, parentId, "file", none), stale);
  await assert.rejects(storage.createDirectory({ ...BY_OWNER, ...none, parentId, name: "folder" }), stale);
  const { inode } = await makeFile(storage, parentId, "file", { maxInodes: 1 });
  const cut = { fileId: inode.id, sizeBytes: 3, ifMatch: undefined };
  await assert.rejects(storage.setSize({ ...BY_EVE, ...none, ...cut }), stale);
  const { item } = await storage.trash({ ...BY_OWNER, ...none, inodeId: inode.id });
  const restore = { ...BY_OWNER, trashId: item.id, onConflict: "fail" } as const;
  const names = ["a", "b", "file"];
  await assert.rejects(storage.restore({ ...restore, maxInodes: 1, names }), stale);
  assert.deepEqual(counts(storage), [0, 1]);
  assert.deepEqual(storage.resolve(OWNER, ["a"]).missing, ["a"]);
  await storage.restore({ ...restore, maxInodes: 0, names: undefined });
  assert.deepEqual(counts(storage), [1, 0]);
  await storage.close();
  assertSound(directory);
});

test("a directory of before the counts gets them at its first start, the trash included (A-20)", async (context) => {
  const { storage, rootDirectoryId: parentId, directory } = await freshStorage(context);
  const topId = await makeTree(storage, parentId);
  await makeFile(storage, parentId, "file");
  await storage.trash({ ...BY_OWNER, inodeId: topId });
  await storage.close();
  const db = new DatabaseSync(join(directory, "inodes.db"));
  takeSchemaBack(db, SCHEMA_BEFORE_COUNTS);
  db.close();
  const again = await openTestStorage(directory);
  assert.deepEqual(counts(again), [1, 3]);
  await again.close();
  assertSound(directory);
});

test("the check finds counts that are wrong, and puts them right", async (context) => {
  const { storage, rootDirectoryId: parentId, directory } = await freshStorage(context);
  await storage.trash({ ...BY_OWNER, inodeId: await makeTree(storage, parentId) });
  await makeFile(storage, parentId, "file");
  await storage.close();
  const db = new DatabaseSync(join(directory, "inodes.db"));
  db.exec("UPDATE root SET live_inodes = 5, trash_inodes = 1");
  db.close();
  assert.deepEqual(checkStorage(directory, { repair: true, deep: false }).differences, [
    `the root of ${OWNER} says 5 inodes; it is 1 (repaired)`,
    `the root of ${OWNER} says 1 inodes in the trash; it is 3 (repaired)`,
  ]);
  assertSound(directory);
  const again = await openTestStorage(directory);
  assert.deepEqual(counts(again), [1, 3]);
  await again.close();
});
