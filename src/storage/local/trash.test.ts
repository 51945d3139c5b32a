// Tests of a root's trash: one step in and out at any size, exact counts, shares taken back, purge.
import assert from "node:assert/strict";
import { test } from "node:test";
import { CHUNK_BYTES, TRASH_PURGE_BATCH } from "#base/limits.ts";
import type { ChangeContext, ConflictRule, Inode } from "#storage/contract/inode.ts";
import type { Storage } from "#storage/contract/storage.ts";
import type { TrashPage } from "#storage/contract/trash.ts";
import { until } from "#testing/until.ts";
import {
  BY_OWNER,
  chunkFiles,
  freshStorage,
  inodeAt,
  OWNER,
  patterned,
  readAll,
  refusal,
  upload,
  usageOf,
} from "./store.fixture.ts";

const SHAREE = "bob@example.com";

async function mkdir(storage: Storage, parentId: number, name: string): Promise<Inode> {
  return (await storage.createDirectory({ ...BY_OWNER, parentId, name })).inode;
}

async function touch(storage: Storage, parentId: number, name: string, text = "hello"): Promise<Inode> {
  const data = Buffer.from(text);
  return (await storage.createFile({ ...BY_OWNER, parentId, name, data, mtimeMs: 1_000 })).inode;
}

const context = (storage: Storage): ChangeContext => ({
  ...BY_OWNER,
  accessVersion: storage.root(OWNER)?.accessVersion ?? 0,
});
const trash = (storage: Storage, inodeId: number) => storage.trash({ ...context(storage), inodeId });
const restore = (
  storage: Storage,
  trashId: string,
  names?: readonly string[],
  onConflict: ConflictRule = "fail",
) => storage.restore({ ...context(storage), trashId, names, onConflict });
const list = (storage: Storage, limit = 1_000, pageToken = ""): TrashPage =>
  storage.listTrash(OWNER, { limit, pageToken });

test("a folder goes into the trash as one item: out of reach, out of the sizes above, still counted, and back with all it had (D14)", async (t) => {
  const { storage, rootDirectoryId } = await freshStorage(t);
  const docs = await mkdir(storage, rootDirectoryId, "docs");
  const deep = await mkdir(storage, docs.id, "deep");
  const file = await touch(storage, deep.id, "a.txt");
  const large = await upload(storage, { parentId: deep.id, name: "large", bytes: patterned(5_000_000) });
  const inodes = storage.facts().inodeCount;
  const { item, usage, usedDeltaBytes } = await trash(storage, docs.id);
  assert.deepEqual(
    [item.kind, item.originalPath, item.sizeBytes, item.inodeCount, item.trashedBy],
    ["directory", "/docs", 5_000_005, 4, OWNER],
  );
  assert.equal(usedDeltaBytes, 0);
  assert.deepEqual(usage, usageOf({ trashBytes: 5_000_005, trashInodes: 4 }));
  assert.equal(inodeAt(storage).sizeBytes, 0);
  assert.equal(inodeAt(storage).childCount, 0);
  assert.deepEqual([storage.facts().inodeCount, storage.facts().trashBytes], [inodes - 4, 5_000_005]);
  assert.deepEqual(storage.resolve(OWNER, ["docs", "deep"]).missing, ["docs", "deep"]);
  for (const { id } of [file, large.inode]) {
    assert.throws(() => storage.openFile(id), refusal("NO_SUCH_PATH"));
    assert.equal(storage.shares.usersOf(id), undefined);
  }
  assert.throws(
    () => storage.list(deep.id, { limit: 10, pageToken: "", sort: "name" }),
    refusal("NO_SUCH_PATH"),
  );
  await assert.rejects(touch(storage, deep.id, "more"), refusal("NO_SUCH_PATH"));
  await assert.rejects(
    storage.writeRange({
      ...BY_OWNER,
      fileId: file.id,
      offset: 0,
      data: Buffer.from("x"),
      ifMatch: undefined,
    }),
    refusal("NO_SUCH_PATH"),
  );
  await assert.rejects(trash(storage, docs.id), refusal("NO_SUCH_PATH"));
  await assert.rejects(
    storage.remove({ ...BY_OWNER, inodeId: file.id, recursive: false }),
    refusal("NO_SUCH_PATH"),
  );

  const back = await restore(storage, item.id);
  assert.deepEqual([back.inode.id, back.names, back.usedDeltaBytes], [docs.id, ["docs"], 0]);
  assert.deepEqual(back.usage, usageOf({ liveBytes: 5_000_005, fileCount: 2, liveInodes: 4 }));
  assert.equal(inodeAt(storage, "docs").sizeBytes, 5_000_005);
  assert.ok((await readAll(storage, large.inode.id)).equals(patterned(5_000_000)));
  assert.deepEqual([storage.facts().inodeCount, storage.facts().trashBytes], [inodes, 0]);
  assert.deepEqual(list(storage).items, []);
  await assert.rejects(restore(storage, item.id), refusal("NO_SUCH_PATH"));
});

test("missing folders are made again on restore, and a file on the way is named (D14)", async (t) => {
  const { storage, rootDirectoryId } = await freshStorage(t);
  const a = await mkdir(storage, rootDirectoryId, "a");
  const b = await mkdir(storage, a.id, "b");
  const file = await touch(storage, b.id, "f");
  const { item } = await trash(storage, file.id);
  assert.equal(list(storage).items[0]?.parentExists, true);
  await storage.remove({ ...BY_OWNER, inodeId: a.id, recursive: true });
  assert.equal(list(storage).items[0]?.parentExists, false);
  assert.deepEqual((await restore(storage, item.id)).names, ["a", "b", "f"]);
  assert.equal(inodeAt(storage, "a", "b", "f").id, file.id);
  assert.deepEqual([inodeAt(storage, "a").sizeBytes, inodeAt(storage).sizeBytes], [5, 5]);

  const { item: again } = await trash(storage, file.id);
  await touch(storage, rootDirectoryId, "x");
  await assert.rejects(restore(storage, again.id, ["x", "y", "f"]), (error: Error) => {
    refusal("NOT_DIRECTORY")(error);
    assert.match(error.message, /^\/x is a file/);
    return true;
  });
  await assert.rejects(restore(storage, again.id, []), refusal("PATH_EXISTS"));
  await assert.rejects(restore(storage, again.id, ["ok", "bad/name"]), refusal("BAD_NAME"));
  // A refused restore has made nothing.
  assert.deepEqual(storage.resolve(OWNER, ["ok"]).missing, ["ok"]);
  assert.deepEqual((await restore(storage, again.id, ["p", "q", "g"])).names, ["p", "q", "g"]);
});

test("an occupied name is refused, or gets a number, or is replaced (D14)", async (t) => {
  const { storage, rootDirectoryId } = await freshStorage(t);
  const old = await touch(storage, rootDirectoryId, "a.txt", "old");
  const { item } = await trash(storage, old.id);
  const now = await touch(storage, rootDirectoryId, "a.txt", "newer");
  await assert.rejects(restore(storage, item.id), refusal("PATH_EXISTS"));
  const both = await restore(storage, item.id, undefined, "rename");
  assert.deepEqual([both.names, both.inode.name], [["a (2).txt"], "a (2).txt"]);
  const { item: again } = await trash(storage, old.id);
  assert.equal(again.originalPath, "/a (2).txt");
  const replaced = await restore(storage, again.id, ["a.txt"], "replace");
  assert.deepEqual([replaced.inode.id, replaced.usedDeltaBytes], [old.id, -5]);
  assert.throws(() => storage.openFile(now.id), refusal("NO_SUCH_PATH"));
  const folder = await mkdir(storage, rootDirectoryId, "folder");
  await touch(storage, folder.id, "in it");
  const { item: file } = await trash(storage, old.id);
  await assert.rejects(restore(storage, file.id, ["folder"], "replace"), refusal("IS_DIRECTORY"));
  const other = await mkdir(storage, rootDirectoryId, "other");
  const { item: empty } = await trash(storage, other.id);
  await assert.rejects(restore(storage, empty.id, ["folder"], "replace"), refusal("NOT_EMPTY"));
});

test("the root directory, a stranger's inode and a stale check are refused", async (t) => {
  const { storage, rootDirectoryId } = await freshStorage(t);
  await assert.rejects(trash(storage, rootDirectoryId), refusal("BAD_ARGUMENT"));
  const other = await storage.createRoot({ owner: "eve@example.com", rootId: "01EVE" });
  await assert.rejects(trash(storage, other.directoryId), refusal("NO_SUCH_PATH"));
  const file = await touch(storage, rootDirectoryId, "f");
  await assert.rejects(storage.trash({ ...BY_OWNER, accessVersion: 99, inodeId: file.id }), {
    name: "StaleAccessError",
  });
  const { item } = await trash(storage, file.id);
  await assert.rejects(
    storage.restore({
      owner: "eve@example.com",
      by: "eve@example.com",
      accessVersion: other.accessVersion,
      trashId: item.id,
      names: undefined,
      onConflict: "fail",
    }),
    refusal("NO_SUCH_PATH"),
  );
  assert.deepEqual(storage.listTrash("eve@example.com", { limit: 9, pageToken: "" }).items, []);
  assert.throws(
    () => storage.listTrash("nobody@example.com", { limit: 9, pageToken: "" }),
    refusal("NO_SUCH_PATH"),
  );
});

test("a purge frees the bytes at once and the chunk files after it, of folders too; what is not there is passed over (D14)", async (t) => {
  const { storage, directory, rootDirectoryId } = await freshStorage(t);
  const folder = await mkdir(storage, rootDirectoryId, "d");
  await upload(storage, { parentId: folder.id, name: "large", bytes: patterned(4_100_000) });
  for (let at = 0; at < 50; at++) await touch(storage, (await mkdir(storage, folder.id, `s${at}`)).id, "f");
  const { item } = await trash(storage, folder.id);
  const empty = await trash(storage, (await mkdir(storage, rootDirectoryId, "empty")).id);
  assert.equal(chunkFiles(directory).length, 2);
  const done = await storage.purgeTrash({ owner: OWNER, trashIds: [item.id, "nothing", empty.item.id] });
  assert.deepEqual([done.freedBytes, done.usedDeltaBytes, done.items.length], [4_100_250, -4_100_250, 2]);
  assert.deepEqual(done.items[0], {
    id: item.id,
    originalPath: "/d",
    sizeBytes: 4_100_250,
    inodeCount: 102,
  });
  assert.deepEqual(storage.root(OWNER)?.usage.trashBytes, 0);
  await until(() => chunkFiles(directory).length === 0);
  assert.throws(
    () =>
      storage.purgeTrash({
        owner: OWNER,
        trashIds: Array.from({ length: TRASH_PURGE_BATCH + 1 }, () => "x"),
      }),
    refusal("BAD_ARGUMENT"),
  );
});

test("an empty file in the trash frees nothing when it is purged, and nothing less (D14)", async (t) => {
  const { storage, rootDirectoryId } = await freshStorage(t);
  const { item } = await trash(storage, (await touch(storage, rootDirectoryId, "empty", "")).id);
  const { freedBytes, usedDeltaBytes } = await storage.purgeTrash({
    ...context(storage),
    trashIds: [item.id],
  });
  assert.deepEqual([freedBytes, usedDeltaBytes], [0, 0]);
});

test("of an empty file that somebody else replaces nothing is kept; who made a file is known by its number too (D13)", async (t) => {
  const { storage, rootDirectoryId: parentId } = await freshStorage(t);
  const empty = await touch(storage, parentId, "empty", "");
  const by = { ...context(storage), by: SHAREE };
  const data = Buffer.from("no longer");
  await storage.createFile({ ...by, parentId, name: "theirs", data, mtimeMs: 0 });
  const sink = storage.beginUpload({ owner: OWNER, sizeBytes: data.length });
  sink.beginMessage();
  await sink.write(data);
  sink.endMessage();
  const { inode } = await sink.commit({
    ...by,
    parentId,
    name: "empty",
    onExists: "replace",
    ifMatch: undefined,
    mtimeMs: 0,
  });
  assert.equal(inode.id, empty.id);
  assert.deepEqual(list(storage).items, []);
  const makers = ["empty", "theirs"].map((name) => {
    const content = storage.openFile(inodeAt(storage, name).id);
    content.close();
    return content.inode.createdBy;
  });
  assert.deepEqual(makers, [OWNER, SHAREE]);
});

test("what somebody else replaces goes to the owner's trash, what the owner replaces does not (D13)", async (t) => {
  const { storage, rootDirectoryId } = await freshStorage(t);
  const large = patterned(4_000_100, 3);
  const replace = async (by: string, bytes: Buffer) => {
    const sink = storage.beginUpload({ owner: OWNER, sizeBytes: bytes.length });
    sink.beginMessage();
    await sink.write(bytes);
    sink.endMessage();
    return sink.commit({
      ...context(storage),
      by,
      parentId: rootDirectoryId,
      name: "f",
      onExists: "replace",
      ifMatch: undefined,
      mtimeMs: 5_000,
    });
  };
  const first = await replace(OWNER, large);
  const second = await replace(SHAREE, Buffer.from("small"));
  assert.deepEqual([second.inode.id, second.usedDeltaBytes], [first.inode.id, 5]);
  const held = { liveBytes: 5, trashBytes: 4_000_100, fileCount: 1, liveInodes: 1, trashInodes: 1 };
  assert.deepEqual(second.usage, usageOf(held));
  await replace(SHAREE, Buffer.from("third"));
  await replace(OWNER, Buffer.from("by the owner"));
  const { items } = list(storage);
  assert.deepEqual(
    items
      .map(({ originalPath, sizeBytes, trashedBy }) => `${originalPath} ${sizeBytes} ${trashedBy}`)
      .toSorted(),
    [`/f 4000100 ${SHAREE}`, `/f 5 ${SHAREE}`],
  );
  for (const [size, bytes] of [
    [5, Buffer.from("small")],
    [4_000_100, large],
  ] as const) {
    const item = items.find(({ sizeBytes }) => sizeBytes === size);
    const back = await restore(storage, item?.id ?? "", undefined, "rename");
    assert.ok((await readAll(storage, back.inode.id)).equals(bytes));
    assert.equal(back.inode.mtimeMs, 5_000);
  }
  // Empty content is not kept, and a ranged write keeps nothing.
  const empty = await touch(storage, rootDirectoryId, "empty", "");
  const change = { ...context(storage), by: SHAREE, fileId: empty.id, offset: 0, ifMatch: undefined };
  await storage.writeRange({ ...change, data: Buffer.from("abc") });
  await storage.writeRange({ ...change, data: Buffer.from("x") });
  assert.equal(storage.root(OWNER)?.usage.trashBytes, 0);
});

test("shares in a trashed folder are taken back, remembered, and told on restore (D14)", async (t) => {
  const { storage, rootDirectoryId: directoryId } = await freshStorage(t);
  const docs = await mkdir(storage, directoryId, "docs");
  const deep = await mkdir(storage, docs.id, "deep");
  const file = await touch(storage, deep.id, "a.txt");
  const elsewhere = await mkdir(storage, directoryId, "elsewhere");
  for (const { id } of [docs, file, elsewhere]) {
    await storage.shares.grant({
      owner: OWNER,
      by: OWNER,
      accessVersion: undefined,
      inodeId: id,
      username: SHAREE,
    });
  }
  assert.deepEqual(storage.shares.usersOf(file.id), [SHAREE]);
  const before = storage.root(OWNER)?.accessVersion ?? 0;
  const { item } = await trash(storage, docs.id);
  const told = [
    { names: [], username: SHAREE },
    { names: ["deep", "a.txt"], username: SHAREE },
  ];
  assert.deepEqual(item.formerShares, told);
  assert.ok((storage.root(OWNER)?.accessVersion ?? 0) > before);
  assert.deepEqual(list(storage).items[0]?.formerShares, told);
  const back = await restore(storage, item.id, ["elsewhere", "docs"]);
  assert.deepEqual(back.formerShares, told);
  assert.ok((storage.root(OWNER)?.accessVersion ?? 0) > before + 1);
  assert.deepEqual(storage.resolve(OWNER, ["elsewhere", "docs", "deep", "a.txt"]).shared, [SHAREE]);
  const { item: again } = await trash(storage, inodeAt(storage, "elsewhere", "docs").id);
  assert.deepEqual(again.formerShares, []);
  await storage.purgeTrash({ owner: OWNER, trashIds: [again.id] });
});

test("two thousand folders that are missing are made in one step, with the counts of all of them right, and not one level more (D13)", async (t) => {
  const { storage, rootDirectoryId } = await freshStorage(t);
  const file = await touch(storage, rootDirectoryId, "f");
  await mkdir(storage, rootDirectoryId, "d");
  const { item } = await trash(storage, file.id);
  const deep = (levels: number) => [...Array.from({ length: levels }, () => "d"), "f"];
  await assert.rejects(restore(storage, item.id, deep(2_048)), refusal("BAD_ARGUMENT"));
  await assert.rejects(restore(storage, item.id, ["d", "ok", "no\u0000"]), refusal("BAD_NAME"));
  assert.equal(inodeAt(storage, "d").childCount, 0);
  const before = storage.facts().inodeCount;
  const { inode } = await restore(storage, item.id, deep(2_047));
  assert.equal(inode.id, file.id);
  assert.equal(storage.facts().inodeCount, before + 2_047);
  assert.equal(inodeAt(storage, "d", "d", "d").sizeBytes, 5);
  // Then the check after every test recounts its counters.
  const { item: again } = await trash(storage, inodeAt(storage, "d").id);
  assert.equal(again.inodeCount, 2_048);
  await restore(storage, again.id);
});

test("what came back from the trash is not read by an old list of the file that it was (D13, D15)", async (test) => {
  const { storage, rootDirectoryId: parentId } = await freshStorage(test);
  const bytes = patterned(CHUNK_BYTES + 100);
  await upload(storage, { parentId, name: "a", bytes });
  const { id: fileId } = inodeAt(storage, "a");
  const write = (offset: number): ReturnType<Storage["writeRange"]> =>
    storage.writeRange({ ...BY_OWNER, fileId, offset, data: Buffer.from("new"), ifMatch: undefined });
  await write(0);
  // A slow reader, of the version that the item will have.
  const slow = storage.openFile(fileId);
  assert.equal(slow.inode.version, 2);
  await write(10);
  const latest = await readAll(storage, fileId);
  const sink = storage.beginUpload({ owner: OWNER, sizeBytes: undefined });
  const change = { ...context(storage), by: SHAREE };
  await sink.commit({ ...change, parentId, name: "a", onExists: "replace", ifMatch: undefined, mtimeMs: 0 });
  const [item] = storage.listTrash(OWNER, { limit: 1, pageToken: "" }).items;
  const trashId = item?.id ?? assert.fail();
  const restored = await storage.restore({ ...BY_OWNER, trashId, names: ["b"], onConflict: "fail" });
  assert.equal(restored.inode.version, slow.inode.version);
  assert.ok(latest.equals(await readAll(storage, restored.inode.id)));
  slow.close();
});
