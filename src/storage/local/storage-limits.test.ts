// Tests of the limits of storage beyond single files, from both sides.
import assert from "node:assert/strict";
import { test } from "node:test";
import { GroveError } from "#base/errors.ts";
import {
  CLUSTER_ROOT_NUMBERS_FROM,
  IDS_PER_ROOT,
  INLINE_FILE_MAX_BYTES,
  LIST_PAGE_MAX,
  ROOT_NUMBER_MAX,
} from "#base/limits.ts";
import { ROOT_STRIDE, rootNumberOf } from "#storage/contract/inode.ts";
import { LIST_SORTED_ENTRIES_MAX } from "#storage/metadata/list-page.ts";
import { STORAGE_QUEUE_BYTES, STORAGE_QUEUE_COMMANDS } from "#storage/writer/write-queue.ts";
import { temporaryDirectory } from "#testing/temporary-folder.ts";
import { until } from "#testing/until.ts";
import {
  BY_OWNER,
  freshStorage,
  inodeAt,
  OWNER,
  openTestStorage,
  query,
  refusal,
  upload,
} from "./store.fixture.ts";

test("more changes than may wait are refused at once, and those that wait are all made (limits)", async (context) => {
  const { storage, rootDirectoryId: parentId } = await freshStorage(context);
  const create = (index: number) => storage.createDirectory({ ...BY_OWNER, parentId, name: `d${index}` });
  const results = await Promise.allSettled(
    Array.from({ length: STORAGE_QUEUE_COMMANDS + 1 }, (_, index) => create(index)),
  );
  const refused = results.flatMap((result, index) =>
    result.status === "rejected" ? [[index, result.reason] as const] : [],
  );
  assert.equal(refused.length, 1);
  assert.equal(refused[0]?.[0], STORAGE_QUEUE_COMMANDS);
  assert.ok(refusal("OVERLOADED")(refused[0]?.[1]));
  assert.equal(inodeAt(storage).childCount, STORAGE_QUEUE_COMMANDS);
});

test("more bytes of small files than may wait are refused at once (limits)", async (context) => {
  const { storage, rootDirectoryId: parentId } = await freshStorage(context);
  const data = Buffer.alloc(INLINE_FILE_MAX_BYTES);
  const count = STORAGE_QUEUE_BYTES / data.length;
  const results = await Promise.allSettled(
    Array.from({ length: count + 1 }, (_, index) =>
      storage.createFile({ ...BY_OWNER, parentId, name: `f${index}`, data, mtimeMs: 0 }),
    ),
  );
  const refused = results.filter(({ status }) => status === "rejected");
  assert.equal(refused.length, 1);
  assert.equal(results.at(-1)?.status, "rejected");
});

test("a page has at most 1,000 entries, and a huge directory is listed by name only (D13)", async (context) => {
  const directory = temporaryDirectory(context);
  const storage = await openTestStorage(directory);
  const { directoryId: parentId } = await storage.createRoot({ owner: OWNER, rootId: "01ROOT" });
  await Promise.all(
    Array.from({ length: LIST_PAGE_MAX + 1 }, (_, index) =>
      storage.createDirectory({ ...BY_OWNER, parentId, name: `d${index}` }),
    ),
  );
  const list = (limit: number) =>
    storage.list(parentId, { limit, pageToken: "", sort: "size" }).entries.length;
  assert.equal(list(LIST_PAGE_MAX + 1), LIST_PAGE_MAX);
  assert.equal(list(0), 1);
  await storage.close();
  const setCount = (count: number) =>
    query(directory, `UPDATE inode SET child_count = ${count} WHERE parent_id IS NULL`);
  for (const [count, isListed] of [
    [LIST_SORTED_ENTRIES_MAX, true],
    [LIST_SORTED_ENTRIES_MAX + 1, false],
  ] as const) {
    setCount(count);
    const again = await openTestStorage(directory);
    const sorted = () => again.list(parentId, { limit: 10, pageToken: "", sort: "mtime" });
    if (isListed) assert.equal(sorted().entries.length, 10);
    else assert.throws(sorted, refusal("BAD_ARGUMENT"));
    assert.equal(again.list(parentId, { limit: 10, pageToken: "", sort: "name" }).entries.length, 10);
    await again.close();
  }
});

test("a root's numbers run up to 2^32 - 1 and then end in words (limits)", async (context) => {
  const directory = temporaryDirectory(context);
  const storage = await openTestStorage(directory);
  const { directoryId: parentId } = await storage.createRoot({ owner: OWNER, rootId: "01ROOT" });
  await storage.close();
  query(directory, `UPDATE root SET next_id = ${IDS_PER_ROOT}`);
  const again = await openTestStorage(directory);
  await again.createRoot({ owner: "bob@example.com", rootId: "01BOB" });
  const { inode } = await again.createDirectory({ ...BY_OWNER, parentId, name: "last" });
  assert.ok(inode.id < (again.root("bob@example.com")?.directoryId ?? 0));
  await assert.rejects(
    again.createDirectory({ ...BY_OWNER, parentId, name: "none" }),
    refusal("BAD_ARGUMENT"),
  );
  await again.close();
});

test("a root takes the cluster's number where it is free, and else the data folder's next (D19)", async (context) => {
  const { storage, rootDirectoryId } = await freshStorage(context);
  const numberOf = async (owner: string, number?: number) =>
    rootNumberOf((await storage.createRoot({ owner, rootId: `id of ${owner}`, number })).directoryId);
  const own = rootNumberOf(rootDirectoryId);
  assert.equal(await numberOf("b@example.com", CLUSTER_ROOT_NUMBERS_FROM), CLUSTER_ROOT_NUMBERS_FROM);
  assert.equal(await numberOf("c@example.com", CLUSTER_ROOT_NUMBERS_FROM), own + 1);
  assert.equal(await numberOf("d@example.com", ROOT_NUMBER_MAX), ROOT_NUMBER_MAX);
  assert.equal(await numberOf("e@example.com", ROOT_NUMBER_MAX + 1), own + 2);
  assert.equal(await numberOf("f@example.com", CLUSTER_ROOT_NUMBERS_FROM - 1), own + 3);
  assert.equal(await numberOf("g@example.com"), own + 4);
  const last = storage.root("d@example.com")?.directoryId ?? 0;
  const by = { owner: "d@example.com", by: "d@example.com", accessVersion: undefined };
  const { inode } = await storage.createDirectory({ ...by, parentId: last, name: "folder" });
  assert.equal(inode.id, last + 1);
  assert.ok(Number.isSafeInteger(ROOT_NUMBER_MAX * ROOT_STRIDE + IDS_PER_ROOT));
});

test("a removed tree of any size is gone at once, its rows and files soon, and others go on meanwhile (A-18)", async (context) => {
  const { storage, directory, rootDirectoryId: parentId } = await freshStorage(context);
  const { inode: top } = await storage.createDirectory({ ...BY_OWNER, parentId, name: "top" });
  const folders = await Promise.all(
    Array.from({ length: 20 }, (_, index) =>
      storage.createDirectory({ ...BY_OWNER, parentId: top.id, name: `d${index}` }),
    ),
  );
  await Promise.all(
    folders.flatMap(({ inode }) =>
      Array.from({ length: 200 }, (_, index) =>
        storage.createFile({
          ...BY_OWNER,
          parentId: inode.id,
          name: `f${index}`,
          data: Buffer.alloc(10),
          mtimeMs: 0,
        }),
      ),
    ),
  );
  await upload(storage, { parentId: top.id, name: "large", bytes: Buffer.alloc(100_000) });
  const removal = await storage.remove({ ...BY_OWNER, inodeId: top.id, recursive: true });
  assert.equal(removal.inodeCount, 1 + 20 + 4_000 + 1);
  assert.equal(removal.freedBytes, 140_000);
  await storage.createDirectory({ ...BY_OWNER, parentId, name: "top" });
  await until(() => query(directory, "SELECT 1 FROM purging").length === 0);
  await until(() => query(directory, "SELECT 1 FROM chunk").length === 0);
  assert.equal(query(directory, "SELECT 1 FROM inode").length, 2);
});

test("a name that is none is refused even when a caller forgot to look (D13)", async (context) => {
  const { storage, rootDirectoryId: parentId } = await freshStorage(context);
  for (const name of ["", ".", "a/b", "\u0000"]) {
    await assert.rejects(
      storage.createDirectory({ ...BY_OWNER, parentId, name }),
      (error) => error instanceof GroveError,
    );
  }
  assert.equal(inodeAt(storage).childCount, 0);
});
