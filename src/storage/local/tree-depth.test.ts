// Tests of the depth limit for new directories, moves, copies and restores, and of trees that are already deeper (D13).
import assert from "node:assert/strict";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { test } from "node:test";
import { checkStorage } from "#storage/check/check-storage.ts";
import type { Change, InodeId } from "#storage/contract/inode.ts";
import type { Storage } from "#storage/contract/storage.ts";
import { DIRECTORY_DEPTH_MAX } from "#storage/metadata/tree-heights.ts";
import { temporaryDirectory } from "#testing/temporary-folder.ts";
import {
  assertSound,
  BY_OWNER,
  freshStorage,
  inodeAt,
  OWNER,
  openTestStorage,
  refusal,
} from "./store.fixture.ts";

/**
 * Nested directories below the root's own, a file in the last; made in one step, as a restore makes missing
 * parents.
 */
async function tower(storage: Storage, top: string, levels: number): Promise<void> {
  const { directoryId: parentId } = storage.root(OWNER) ?? assert.fail();
  const data = Buffer.from("x");
  const { inode } = await storage.createFile({ ...BY_OWNER, parentId, name: "seed", data, mtimeMs: 0 });
  const { item } = await storage.trash({ ...BY_OWNER, inodeId: inode.id });
  await storage.restore({
    ...BY_OWNER,
    trashId: item.id,
    names: [...names(top, levels), "f"],
    onConflict: "fail",
  });
}

function names(top: string, levels: number): string[] {
  return [top, ...Array.from({ length: levels - 1 }, () => "d")];
}

/** The directory at a level of a tower. */
function levelOf(storage: Storage, top: string, level: number): InodeId {
  return inodeAt(storage, ...names(top, level)).id;
}

function move(storage: Storage, name: string, parentId: InodeId): Promise<Change> {
  const { id: inodeId } = inodeAt(storage, name);
  return storage.rename({ ...BY_OWNER, inodeId, parentId, name, onConflict: "fail" });
}

function copy(storage: Storage, name: string, parentId: InodeId): Promise<Change> {
  const { id: sourceId, sizeBytes: maxBytes } = inodeAt(storage, name);
  return storage.copy({
    by: OWNER,
    maxBytes,
    maxInodes: 1_000_000,
    mayGoOn: () => undefined,
    target: () => ({ ...BY_OWNER, sourceId, parentId, name: "copy", onConflict: "fail" }),
  });
}

test("directories lie as deep as the longest path can name, and no deeper (D13)", async (context) => {
  const { storage } = await freshStorage(context);
  const levels = DIRECTORY_DEPTH_MAX - 2;
  await tower(storage, "d", levels);
  let parentId = levelOf(storage, "d", levels);
  const create = () => storage.createDirectory({ ...BY_OWNER, parentId, name: "d" });
  for (let level = levels; level < DIRECTORY_DEPTH_MAX; level++) parentId = (await create()).inode.id;
  await assert.rejects(create(), refusal("BAD_ARGUMENT"));
  assert.equal(storage.resolve(OWNER, names("d", DIRECTORY_DEPTH_MAX)).chain.length, DIRECTORY_DEPTH_MAX + 1);
  await storage.remove({ ...BY_OWNER, inodeId: inodeAt(storage, "d").id, recursive: true });
  assert.equal(storage.facts().inodeCount, 1);
});

/** Levels of the moved tower, its file included, that just fit. */
const LEVELS = 1_500;
const FITS = DIRECTORY_DEPTH_MAX - LEVELS - 1;

test("what is moved, copied or restored below another tree may not come to lie deeper than directories may (D13)", async (context) => {
  const { storage } = await freshStorage(context);
  await tower(storage, "a", LEVELS);
  await tower(storage, "b", FITS + 1);
  const [fits, tooDeep] = [levelOf(storage, "b", FITS), levelOf(storage, "b", FITS + 1)];
  await assert.rejects(move(storage, "a", tooDeep), refusal("BAD_ARGUMENT"));
  await assert.rejects(copy(storage, "a", tooDeep), refusal("BAD_ARGUMENT"));
  const { item } = await storage.trash({ ...BY_OWNER, inodeId: inodeAt(storage, "a").id });
  const restore = (levels: number) =>
    storage.restore({
      ...BY_OWNER,
      trashId: item.id,
      names: [...names("b", levels), "a"],
      onConflict: "fail",
    });
  await assert.rejects(restore(FITS + 1), refusal("BAD_ARGUMENT"));
  await assert.rejects(
    storage.restore({
      ...BY_OWNER,
      trashId: item.id,
      names: [...names("new", FITS + 1), "a"],
      onConflict: "fail",
    }),
    refusal("BAD_ARGUMENT"),
  );
  await restore(FITS);
  const { id: inodeId } = inodeAt(storage, ...names("b", FITS), "a");
  const { directoryId: parentId } = storage.root(OWNER) ?? assert.fail();
  await storage.rename({ ...BY_OWNER, inodeId, parentId, name: "a", onConflict: "fail" });
  await move(storage, "a", fits);
  assert.equal(inodeAt(storage, ...names("b", FITS), ...names("a", LEVELS), "f").sizeBytes, 1);
});

test("a tree is as deep as it is now: what was taken out of it or put into it counts at once (D13)", async (context) => {
  const { storage, rootDirectoryId } = await freshStorage(context);
  await tower(storage, "a", LEVELS);
  await tower(storage, "b", FITS + 1);
  const tooDeep = levelOf(storage, "b", FITS + 1);
  const last = levelOf(storage, "a", LEVELS);
  await assert.rejects(move(storage, "a", tooDeep), refusal("BAD_ARGUMENT"));
  await storage.remove({
    ...BY_OWNER,
    inodeId: inodeAt(storage, ...names("a", LEVELS), "f").id,
    recursive: false,
  });
  const put = { ...BY_OWNER, parentId: last, name: "f", data: Buffer.from("y"), mtimeMs: 0 };
  await storage.createFile(put);
  await assert.rejects(move(storage, "a", tooDeep), refusal("BAD_ARGUMENT"));
  const { item } = await storage.trash({
    ...BY_OWNER,
    inodeId: inodeAt(storage, ...names("a", LEVELS), "f").id,
  });
  await move(storage, "a", tooDeep);
  const back = { ...BY_OWNER, trashId: item.id, onConflict: "fail" } as const;
  await assert.rejects(
    storage.restore({ ...back, names: [...names("b", FITS + 1), ...names("a", LEVELS), "f", "g"] }),
    refusal("BAD_ARGUMENT"),
  );
  await storage.restore({ ...back, names: [...names("b", FITS + 1), ...names("a", LEVELS).slice(1), "f"] });
  assert.equal(inodeAt(storage, "b").parentId, rootDirectoryId);
});

test("a copy of what grew deeper while it was copied does not come into sight too deep (D13)", async (context) => {
  const { storage, rootDirectoryId } = await freshStorage(context);
  await tower(storage, "a", LEVELS);
  await tower(storage, "b", FITS);
  const { id: sourceId } = inodeAt(storage, "a");
  const data = Buffer.alloc(0);
  const last = levelOf(storage, "a", LEVELS);
  // Small at the top and deep at the bottom: after the first slices the last levels are still to come.
  let grown: Promise<unknown> | undefined;
  const parentId = levelOf(storage, "b", FITS);
  const target = { ...BY_OWNER, sourceId, parentId, name: "copy", onConflict: "fail" } as const;
  const copying = storage.copy({
    by: OWNER,
    maxBytes: 1,
    maxInodes: 1_000_000,
    mayGoOn: () => undefined,
    target: () => {
      grown ??= storage
        .createDirectory({ ...BY_OWNER, parentId: last, name: "deeper" })
        .then(({ inode }) =>
          storage.createFile({ ...BY_OWNER, parentId: inode.id, name: "g", data, mtimeMs: 0 }),
        );
      return target;
    },
  });
  await assert.rejects(copying, refusal("BAD_ARGUMENT"));
  await grown;
  assert.equal(inodeAt(storage, "b").parentId, rootDirectoryId);
});

/** Hangs a tower below another one behind storage's back, as users of earlier versions could. */
function hangBelow(directory: string, inodeId: InodeId, parentId: InodeId): void {
  const db = new DatabaseSync(join(directory, "inodes.db"));
  db.prepare("UPDATE inode SET parent_id = ?, name = 'a' WHERE id = ?").run(parentId, inodeId);
  db.close();
}

test("a tree that is too deep already can be read, removed, trashed and restored, and moves sideways and up, not down (D13)", async (context) => {
  const directory = temporaryDirectory(context);
  const before = await openTestStorage(directory);
  await before.createRoot({ owner: OWNER, rootId: "01ROOT" });
  await tower(before, "a", LEVELS);
  await tower(before, "b", LEVELS);
  const ids = [inodeAt(before, "a").id, levelOf(before, "b", LEVELS)] as const;
  await before.close();
  hangBelow(directory, ...ids);
  checkStorage(directory, { repair: true, deep: false });
  assertSound(directory);

  const storage = await openTestStorage(directory);
  context.after(() => storage.close());
  const { directoryId: rootId } = storage.root(OWNER) ?? assert.fail();
  const { inode: side } = await storage.createDirectory({ ...BY_OWNER, parentId: rootId, name: "side" });
  const { inode: low } = await storage.createDirectory({ ...BY_OWNER, parentId: side.id, name: "low" });
  await assert.rejects(move(storage, "b", side.id), refusal("BAD_ARGUMENT"));
  await assert.rejects(copy(storage, "b", rootId), refusal("BAD_ARGUMENT"));
  await storage.rename({
    ...BY_OWNER,
    inodeId: inodeAt(storage, "b").id,
    parentId: rootId,
    name: "c",
    onConflict: "fail",
  });
  const { id: second } = inodeAt(storage, "c", "d");
  await storage.rename({ ...BY_OWNER, inodeId: second, parentId: side.id, name: "e", onConflict: "fail" });
  await assert.rejects(
    storage.rename({ ...BY_OWNER, inodeId: second, parentId: low.id, name: "e", onConflict: "fail" }),
    refusal("BAD_ARGUMENT"),
  );
  const { item } = await storage.trash({ ...BY_OWNER, inodeId: second });
  const back = { ...BY_OWNER, trashId: item.id, onConflict: "fail" } as const;
  await assert.rejects(storage.restore({ ...back, names: ["side", "low", "e"] }), refusal("BAD_ARGUMENT"));
  await storage.restore({ ...back, names: undefined });
  assert.ok(inodeAt(storage, "side", "e", "d", "d").childCount > 0);
  await storage.remove({ ...BY_OWNER, inodeId: second, recursive: true });
  await storage.close();
  assertSound(directory);
});
