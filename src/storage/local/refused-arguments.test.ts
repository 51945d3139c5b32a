// Tests of arguments that storage refuses at once: invalid numbers, foreign tokens, outdated paths, a closed
// store.
import assert from "node:assert/strict";
import { test } from "node:test";
import { FILE_MAX_BYTES } from "#base/limits.ts";
import { StaleAccessError } from "#storage/contract/inode.ts";
import { temporaryDirectory } from "#testing/temporary-folder.ts";
import { BY_OWNER, freshStorage, OWNER, openTestStorage, refusal } from "./store.fixture.ts";

const data = Buffer.from("hello");

test("a range or a size that is no whole number of bytes within the largest file is refused (spec 8)", async (context) => {
  const { storage, rootDirectoryId: parentId } = await freshStorage(context);
  const { inode } = await storage.createFile({ ...BY_OWNER, parentId, name: "f", data, mtimeMs: 0 });
  const change = { ...BY_OWNER, fileId: inode.id, ifMatch: undefined };
  for (const offset of [-1, 0.5, Number.NaN, FILE_MAX_BYTES - 4]) {
    await assert.rejects(
      storage.writeRange({ ...change, offset, data }),
      refusal("BAD_ARGUMENT"),
      `${offset}`,
    );
  }
  for (const sizeBytes of [-1, 0.5, Number.NaN, FILE_MAX_BYTES + 1]) {
    await assert.rejects(storage.setSize({ ...change, sizeBytes }), refusal("BAD_ARGUMENT"), `${sizeBytes}`);
  }
  assert.equal(storage.openFile(inode.id).inode.sizeBytes, 5);
});

test("a time that is no number of milliseconds is refused, and a fraction of one is cut off", async (context) => {
  const { storage, rootDirectoryId: parentId } = await freshStorage(context);
  const file = { ...BY_OWNER, parentId, data };
  for (const mtimeMs of [Number.NaN, Number.POSITIVE_INFINITY, 2 ** 53]) {
    await assert.rejects(
      async () => storage.createFile({ ...file, name: "f", mtimeMs }),
      refusal("BAD_ARGUMENT"),
    );
  }
  const { inode } = await storage.createFile({ ...file, name: "f", mtimeMs: 1.9 });
  assert.equal(inode.mtimeMs, 1);
});

test("a page token of the trash that is too long or not ours is refused (spec 8)", async (context) => {
  const { storage } = await freshStorage(context);
  const token = (...parts: readonly unknown[]): string =>
    Buffer.from(JSON.stringify(parts)).toString("base64url");
  for (const pageToken of [token(1, 5), token(1), token(2, "a"), token(1, "a".repeat(4_096)), "!"]) {
    assert.throws(() => storage.listTrash(OWNER, { limit: 10, pageToken }), refusal("BAD_ARGUMENT"));
  }
});

test("a change holds to the path that was followed: what lies elsewhere by now is not touched (T24)", async (context) => {
  const { storage, rootDirectoryId: parentId } = await freshStorage(context);
  const file = { ...BY_OWNER, parentId, name: "f", data, mtimeMs: 0 };
  await assert.rejects(storage.createFile({ ...file, at: "/other/f" }), StaleAccessError);
  const { inode } = await storage.createFile({ ...file, at: "/f" });
  const gone = { ...BY_OWNER, inodeId: inode.id, recursive: false };
  await assert.rejects(storage.remove({ ...gone, at: "/g" }), StaleAccessError);
  await storage.remove({ ...gone, at: "/f" });
  await assert.rejects(storage.remove({ ...gone, at: "/f" }), StaleAccessError);
  await assert.rejects(storage.remove(gone), refusal("NO_SUCH_PATH"));
});

test("an item goes back only under a name that may be one, in the name of whoever restores it (D13, D14)", async (context) => {
  const { storage, rootDirectoryId: parentId } = await freshStorage(context);
  const { inode } = await storage.createFile({ ...BY_OWNER, parentId, name: "f", data, mtimeMs: 0 });
  const { item } = await storage.trash({ ...BY_OWNER, inodeId: inode.id });
  const order = { ...BY_OWNER, trashId: item.id, onConflict: "fail" } as const;
  await assert.rejects(storage.restore({ ...order, names: ["a\0b", "f"] }), refusal("BAD_NAME"));
  await storage.restore({ ...order, by: "bob@example.com", names: ["new", "f"] });
  const [root, made] = storage.resolve(OWNER, ["new"]).chain;
  assert.deepEqual([root.id, made?.createdBy], [parentId, "bob@example.com"]);
});

test("a store that was closed says so, to whoever reads and to whoever writes", async (context) => {
  const storage = await openTestStorage(temporaryDirectory(context));
  const { directoryId: parentId } = await storage.createRoot({ owner: OWNER, rootId: "01ROOT" });
  await Promise.all([storage.close(), storage.close()]);
  assert.throws(() => storage.root(OWNER), refusal("STORAGE_FAILED"));
  await assert.rejects(
    async () => storage.createDirectory({ ...BY_OWNER, parentId, name: "d" }),
    refusal("STORAGE_FAILED"),
  );
});
