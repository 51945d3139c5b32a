// Tests of the effect of namespace changes on names, times, versions, sizes and usage.
import assert from "node:assert/strict";
import { test } from "node:test";
import { ManualClock } from "#base/clock.ts";
import { INLINE_FILE_MAX_BYTES } from "#base/limits.ts";
import { type ConflictRule, etagOf, StaleAccessError } from "#storage/contract/inode.ts";
import { temporaryDirectory } from "#testing/temporary-folder.ts";
import {
  BY_OWNER,
  freshStorage,
  inodeAt,
  OWNER,
  openTestStorage,
  refusal,
  upload,
  usageOf,
} from "./store.fixture.ts";

test("the same root again is the same root; another id or owner is refused (D19)", async (context) => {
  const { storage } = await freshStorage(context);
  const again = await storage.createRoot({ owner: OWNER, rootId: "01ROOT" });
  assert.deepEqual(again, storage.root(OWNER));
  await assert.rejects(storage.createRoot({ owner: OWNER, rootId: "01OTHER" }), refusal("PATH_EXISTS"));
  await assert.rejects(
    storage.createRoot({ owner: "bob@example.com", rootId: "01ROOT" }),
    refusal("PATH_EXISTS"),
  );
  await storage.createRoot({ owner: "bob@example.com", rootId: "01BOB" });
  assert.deepEqual(
    storage.roots().map(({ owner }) => owner),
    [OWNER, "bob@example.com"],
  );
  assert.equal(storage.root("carol@example.com"), undefined);
  assert.throws(() => storage.resolve("carol@example.com", []), refusal("NO_SUCH_PATH"));
});

test("a change is read right after its acknowledgement, and sizes add up to the root (D16)", async (context) => {
  const { storage, rootDirectoryId } = await freshStorage(context);
  const { inode: folder } = await storage.createDirectory({
    ...BY_OWNER,
    parentId: rootDirectoryId,
    name: "a",
  });
  const data = Buffer.from("hello");
  const change = await storage.createFile({ ...BY_OWNER, parentId: folder.id, name: "b", data, mtimeMs: 42 });
  assert.equal(change.usedDeltaBytes, 5);
  assert.deepEqual(change.usage, usageOf({ liveBytes: 5, fileCount: 1, liveInodes: 2 }));
  assert.deepEqual(storage.root(OWNER)?.usage, change.usage);
  const { chain, missing } = storage.resolve(OWNER, ["a", "b"]);
  assert.deepEqual(missing, []);
  assert.deepEqual(
    chain.map(({ name, sizeBytes }) => [name, sizeBytes]),
    [
      ["", 5],
      ["a", 5],
      ["b", 5],
    ],
  );
  assert.deepEqual(chain[2], change.inode);
  assert.equal(change.inode.mtimeMs, 42);
  assert.deepEqual(storage.resolve(OWNER, ["a", "b", "c"]).missing, ["c"]);
  assert.deepEqual(storage.resolve(OWNER, ["x", "y"]).missing, ["x", "y"]);
});

test("a name is taken once per directory, compared byte by byte (D13)", async (context) => {
  const { storage, rootDirectoryId: parentId } = await freshStorage(context);
  await storage.createDirectory({ ...BY_OWNER, parentId, name: "docs" });
  await assert.rejects(
    storage.createDirectory({ ...BY_OWNER, parentId, name: "docs" }),
    refusal("PATH_EXISTS"),
  );
  const file = { ...BY_OWNER, parentId, name: "docs", data: Buffer.alloc(1), mtimeMs: 0 };
  await assert.rejects(storage.createFile(file), refusal("PATH_EXISTS"));
  await storage.createDirectory({ ...BY_OWNER, parentId, name: "Docs" });
  assert.equal(inodeAt(storage).childCount, 2);
  assert.equal(storage.facts().inodeCount, 3);
});

test("a small file has at most 65,536 bytes (design, FileServer storage)", async (context) => {
  const { storage, rootDirectoryId: parentId } = await freshStorage(context);
  const file = { ...BY_OWNER, parentId, mtimeMs: 0 };
  await storage.createFile({ ...file, name: "fits", data: Buffer.alloc(INLINE_FILE_MAX_BYTES) });
  const tooLarge = { ...file, name: "large", data: Buffer.alloc(INLINE_FILE_MAX_BYTES + 1) };
  await assert.rejects(storage.createFile(tooLarge), refusal("BAD_ARGUMENT"));
  assert.deepEqual(storage.resolve(OWNER, ["large"]).missing, ["large"]);
});

test("an entry that comes or goes moves its directory's times and version, never those above (POSIX)", async (context) => {
  const clock = new ManualClock();
  const { storage, rootDirectoryId } = await freshStorage(context, { clock });
  const { inode: folder } = await storage.createDirectory({
    ...BY_OWNER,
    parentId: rootDirectoryId,
    name: "a",
  });
  const before = inodeAt(storage);
  clock.advance(1_000);
  const file = { ...BY_OWNER, parentId: folder.id, name: "b", data: Buffer.from("12"), mtimeMs: 7 };
  const { inode } = await storage.createFile(file);
  const inside = inodeAt(storage, "a");
  assert.equal(inside.version, folder.version + 1);
  assert.equal(inside.mtimeMs, clock.wallMs());
  assert.deepEqual(inodeAt(storage), { ...before, sizeBytes: 2 });
  clock.advance(1_000);
  await upload(storage, { parentId: folder.id, name: "b", bytes: Buffer.from("12345") });
  assert.deepEqual(inodeAt(storage, "a"), { ...inside, sizeBytes: 5 });
  const replaced = inodeAt(storage, "a", "b");
  assert.equal(replaced.id, inode.id);
  assert.equal(replaced.version, inode.version + 1);
  assert.notEqual(etagOf(replaced), etagOf(inode));
  clock.advance(1_000);
  await storage.remove({ ...BY_OWNER, inodeId: inode.id, recursive: false });
  assert.equal(inodeAt(storage, "a").mtimeMs, clock.wallMs());
  assert.equal(inodeAt(storage, "a").version, inside.version + 1);
});

test("a change whose permission check is out of date is refused and changes nothing (T24)", async (context) => {
  const { storage, rootDirectoryId: parentId } = await freshStorage(context);
  const stale = { ...BY_OWNER, accessVersion: 2 };
  await assert.rejects(storage.createDirectory({ ...stale, parentId, name: "a" }), StaleAccessError);
  assert.deepEqual(storage.resolve(OWNER, ["a"]).missing, ["a"]);
});

test("a file that was given a link after the check is not replaced, and keeps its link (D13)", async (context) => {
  const { storage, rootDirectoryId: parentId } = await freshStorage(context);
  const make = (name: string): ReturnType<typeof storage.createFile> =>
    storage.createFile({ ...BY_OWNER, parentId, name, data: Buffer.alloc(0), mtimeMs: 0 });
  const [{ inode: draft }, { inode: target }] = [await make("draft"), await make("target")];
  const checked = { ...BY_OWNER, by: "bob@example.com", accessVersion: storage.root(OWNER)?.accessVersion };
  const secrets = { tokenHash: "00", password: "", passKey: "" };
  const limits = { endsMs: 0, maxDownloads: 0, maxBytes: 0, maxFiles: 0 };
  const link = { id: "L1", inodeId: target.id, kind: "read", ...secrets, ...limits } as const;
  await storage.links.create({ ...BY_OWNER, ...link });
  const over = { inodeId: draft.id, parentId, name: "target", onConflict: "replace" } as const;
  await assert.rejects(storage.rename({ ...checked, ...over }), StaleAccessError);
  assert.deepEqual(
    storage.links.ofRoot(OWNER).map(({ id, inodeId }) => [id, inodeId]),
    [["L1", target.id]],
  );
});

test("what a sharee makes names its maker (D13)", async (context) => {
  const { storage, rootDirectoryId: parentId } = await freshStorage(context);
  const { inode } = await storage.createDirectory({
    ...BY_OWNER,
    by: "bob@example.com",
    parentId,
    name: "a",
  });
  assert.equal(inode.createdBy, "bob@example.com");
  assert.equal(inodeAt(storage, "a").createdBy, "bob@example.com");
  assert.equal(inodeAt(storage).createdBy, OWNER);
});

test("a directory is removed empty, or whole when asked for, and its bytes are free at once (D14)", async (context) => {
  const { storage, rootDirectoryId } = await freshStorage(context);
  const { inode: a } = await storage.createDirectory({ ...BY_OWNER, parentId: rootDirectoryId, name: "a" });
  const { inode: b } = await storage.createDirectory({ ...BY_OWNER, parentId: a.id, name: "b" });
  await upload(storage, { parentId: b.id, name: "large", bytes: Buffer.alloc(100_000, 1) });
  await upload(storage, { parentId: b.id, name: "small", bytes: Buffer.alloc(10, 1) });
  await assert.rejects(
    storage.remove({ ...BY_OWNER, inodeId: a.id, recursive: false }),
    refusal("NOT_EMPTY"),
  );
  const removal = await storage.remove({ ...BY_OWNER, inodeId: a.id, recursive: true });
  assert.deepEqual(removal, {
    freedBytes: 100_010,
    inodeCount: 4,
    usage: usageOf({}),
    usedDeltaBytes: -100_010,
    inodeDelta: -4,
  });
  assert.equal(storage.facts().inodeCount, 1);
  assert.throws(() => storage.openFile(inodeIdOf(b.id, 1)), refusal("NO_SUCH_PATH"));
  assert.throws(
    () => storage.list(b.id, { limit: 10, pageToken: "", sort: "name" }),
    refusal("NO_SUCH_PATH"),
  );
  const late = { ...BY_OWNER, parentId: b.id, name: "late" };
  await assert.rejects(storage.createDirectory(late), refusal("NO_SUCH_PATH"));
  const root = { ...BY_OWNER, inodeId: rootDirectoryId, recursive: true };
  await assert.rejects(storage.remove(root), refusal("BAD_ARGUMENT"));
});

function inodeIdOf(base: number, offset: number): number {
  return base + offset;
}

test("a move takes its bytes from one parent to the other and cannot go into itself (A-04)", async (context) => {
  const { storage, rootDirectoryId } = await freshStorage(context);
  const { inode: a } = await storage.createDirectory({ ...BY_OWNER, parentId: rootDirectoryId, name: "a" });
  const { inode: b } = await storage.createDirectory({ ...BY_OWNER, parentId: rootDirectoryId, name: "b" });
  const { inode: sub } = await storage.createDirectory({ ...BY_OWNER, parentId: a.id, name: "sub" });
  await upload(storage, { parentId: sub.id, name: "f", bytes: Buffer.from("123") });
  const move = { ...BY_OWNER, onConflict: "fail", name: "moved" } as const;
  const { inode: moved } = await storage.rename({ ...move, inodeId: sub.id, parentId: b.id });
  assert.equal(moved.version, sub.version + 2);
  assert.deepEqual(
    [inodeAt(storage, "a").sizeBytes, inodeAt(storage, "b").sizeBytes, inodeAt(storage).sizeBytes],
    [0, 3, 3],
  );
  assert.equal(inodeAt(storage, "b", "moved", "f").sizeBytes, 3);
  for (const inodeId of [b.id, sub.id]) {
    const into = storage.rename({ ...move, inodeId, parentId: sub.id });
    await assert.rejects(into, refusal("BAD_ARGUMENT"));
  }
  const rootMove = storage.rename({ ...move, inodeId: rootDirectoryId, parentId: a.id });
  await assert.rejects(rootMove, refusal("BAD_ARGUMENT"));
  const same = await storage.rename({ ...move, inodeId: sub.id, parentId: b.id });
  assert.deepEqual(same.inode, inodeAt(storage, "b", "moved"));
});

test("a move onto a name fails, finds a free one, or replaces what fits (D13)", async (context) => {
  const { storage, rootDirectoryId: parentId } = await freshStorage(context);
  const { inode: one } = await upload(storage, { parentId, name: "one.txt", bytes: Buffer.from("1") });
  await upload(storage, { parentId, name: "two.txt", bytes: Buffer.from("22") });
  const { inode: folder } = await storage.createDirectory({ ...BY_OWNER, parentId, name: "folder" });
  const rename = (onConflict: ConflictRule, name: string, inodeId = one.id) =>
    storage.rename({ ...BY_OWNER, inodeId, parentId, name, onConflict });
  await assert.rejects(rename("fail", "two.txt"), refusal("PATH_EXISTS"));
  const { inode: beside } = await rename("rename", "two.txt");
  assert.equal(beside.name, "two (2).txt");
  await assert.rejects(rename("replace", "folder"), refusal("IS_DIRECTORY"));
  await assert.rejects(rename("replace", "two.txt", folder.id), refusal("NOT_DIRECTORY"));
  const replaced = await rename("replace", "two.txt");
  assert.equal(replaced.usedDeltaBytes, -2);
  assert.deepEqual(replaced.usage, usageOf({ liveBytes: 1, fileCount: 1, liveInodes: 2 }));
  assert.equal(inodeAt(storage, "two.txt").id, one.id);
  assert.equal(inodeAt(storage).childCount, 2);
});

test("changes below another root, or of what is no directory, are refused", async (context) => {
  const { storage, rootDirectoryId: parentId } = await freshStorage(context);
  const other = await storage.createRoot({ owner: "bob@example.com", rootId: "01BOB" });
  const { inode: file } = await upload(storage, { parentId, name: "f", bytes: Buffer.from("1") });
  const into = (directoryId: number) =>
    storage.createDirectory({ ...BY_OWNER, parentId: directoryId, name: "x" });
  await assert.rejects(into(other.directoryId), refusal("NO_SUCH_PATH"));
  await assert.rejects(into(parentId + 1_000), refusal("NO_SUCH_PATH"));
  await assert.rejects(into(file.id), refusal("NOT_DIRECTORY"));
  assert.throws(
    () => storage.list(file.id, { limit: 1, pageToken: "", sort: "name" }),
    refusal("NOT_DIRECTORY"),
  );
  assert.throws(() => storage.openFile(parentId), refusal("IS_DIRECTORY"));
});

test("a root's numbers and names survive a restart, and ids are never used twice", async (context) => {
  const directory = temporaryDirectory(context);
  const first = await openTestStorage(directory);
  const { directoryId: parentId } = await first.createRoot({ owner: OWNER, rootId: "01ROOT" });
  const { inode } = await first.createDirectory({ ...BY_OWNER, parentId, name: "a" });
  await first.remove({ ...BY_OWNER, inodeId: inode.id, recursive: false });
  const facts = first.facts();
  await first.close();
  await assert.rejects(
    first.createDirectory({ ...BY_OWNER, parentId, name: "b" }),
    refusal("STORAGE_FAILED"),
  );
  const second = await openTestStorage(directory);
  assert.equal(second.dataId, first.dataId);
  assert.deepEqual(second.facts(), facts);
  const { inode: next } = await second.createDirectory({ ...BY_OWNER, parentId, name: "a" });
  assert.ok(next.id > inode.id);
  await second.close();
});
