// Tests of copies: same tree and bytes, shared chunks, visible as a whole or not at all, exact counts (D13).
import assert from "node:assert/strict";
import { test } from "node:test";
import { GroveError, isGroveError } from "#base/errors.ts";
import { CHUNK_BYTES } from "#base/limits.ts";
import type { CopyTarget } from "#storage/contract/copy-order.ts";
import type { Change, Inode, InodeId } from "#storage/contract/inode.ts";
import type { Storage } from "#storage/contract/storage.ts";
import { COPY_SLICE_ROWS } from "#storage/writer/copy-commands.ts";
import { temporaryDirectory } from "#testing/temporary-folder.ts";
import { until } from "#testing/until.ts";
import { COPIES_PER_USER, COPIES_WAITING_PER_USER } from "./copy-runner.ts";
import {
  assertSound,
  BY_OWNER,
  chunkFiles,
  freshStorage,
  inodeAt,
  OWNER,
  openTestStorage,
  patterned,
  query,
  readAll,
  refusal,
  upload,
} from "./store.fixture.ts";

interface CopyRequest {
  readonly source: Inode;
  readonly parentId: InodeId;
  readonly name: string;
  readonly onConflict?: CopyTarget["onConflict"];
  readonly by?: string;
  readonly maxBytes?: number;
  readonly maxInodes?: number;
  readonly mayGoOn?: () => void;
  readonly signal?: AbortSignal;
}

function copy(storage: Storage, request: CopyRequest): Promise<Change> {
  const { source, parentId, name, onConflict = "fail", by = OWNER, signal } = request;
  const { maxBytes = source.sizeBytes, mayGoOn = () => undefined } = request;
  const { maxInodes = 1 + storage.inodesBelow(source.id) } = request;
  return storage.copy({
    by,
    maxBytes,
    signal,
    maxInodes,
    mayGoOn,
    target: () => ({ ...BY_OWNER, by, sourceId: source.id, parentId, name, onConflict }),
  });
}

async function smallFile(storage: Storage, parentId: InodeId, name: string, text = name): Promise<void> {
  await storage.createFile({ ...BY_OWNER, parentId, name, data: Buffer.from(text), mtimeMs: 77 });
}

async function folder(storage: Storage, parentId: InodeId, name: string): Promise<InodeId> {
  return (await storage.createDirectory({ ...BY_OWNER, parentId, name })).inode.id;
}

function usage(storage: Storage): { liveBytes: number; fileCount: number; trashBytes: number } {
  return storage.root(OWNER)?.usage ?? assert.fail();
}

test("a copied file shares its chunks, keeps its time and is independent from then on (D13)", async (context) => {
  const { storage, rootDirectoryId, directory } = await freshStorage(context);
  const bytes = patterned(CHUNK_BYTES + 70_000);
  await upload(storage, { parentId: rootDirectoryId, name: "a", bytes });
  const files = chunkFiles(directory).length;
  const source = inodeAt(storage, "a");
  const done = await copy(storage, { source, parentId: rootDirectoryId, name: "b" });
  assert.equal(done.usedDeltaBytes, bytes.length);
  assert.equal(done.inode.mtimeMs, source.mtimeMs);
  assert.notEqual(done.inode.id, source.id);
  assert.equal(chunkFiles(directory).length, files);
  assert.equal(usage(storage).liveBytes, 2 * bytes.length);
  const data = Buffer.from("changed");
  await storage.writeRange({ ...BY_OWNER, fileId: done.inode.id, offset: 5, data, ifMatch: undefined });
  assert.ok(bytes.equals(await readAll(storage, source.id)));
  await storage.remove({ ...BY_OWNER, inodeId: source.id, recursive: false });
  const rest = await readAll(storage, done.inode.id);
  assert.equal(rest.subarray(5, 12).toString(), "changed");
  assert.ok(bytes.subarray(12).equals(rest.subarray(12)));
});

test("a tree of more than one slice is copied exactly, small files, large ones, empty and deep folders (D13)", async (context) => {
  const { storage, rootDirectoryId } = await freshStorage(context);
  const top = await folder(storage, rootDirectoryId, "top");
  await Promise.all(
    Array.from({ length: COPY_SLICE_ROWS + 10 }, (_, index) => smallFile(storage, top, `f${index}`)),
  );
  let deep = top;
  for (let level = 0; level < 30; level++) deep = await folder(storage, deep, "d");
  await smallFile(storage, deep, "leaf");
  await folder(storage, top, "z-empty");
  const bytes = patterned(2 * CHUNK_BYTES + 5);
  await upload(storage, { parentId: deep, name: "large", bytes });
  const before = usage(storage);
  const inodesBefore = storage.facts().inodeCount;
  const source = inodeAt(storage, "top");
  const done = await copy(storage, { source, parentId: rootDirectoryId, name: "copy" });
  assert.equal(done.inode.sizeBytes, source.sizeBytes);
  assert.equal(done.inode.childCount, source.childCount);
  const after = usage(storage);
  assert.equal(after.liveBytes, 2 * before.liveBytes);
  assert.equal(after.fileCount, 2 * before.fileCount);
  assert.equal(storage.facts().inodeCount, 2 * inodesBefore - 1);
  const path = ["copy", ...Array.from({ length: 30 }, () => "d")];
  assert.ok(bytes.equals(await readAll(storage, inodeAt(storage, ...path, "large").id)));
  assert.equal((await readAll(storage, inodeAt(storage, "copy", "f9").id)).toString(), "f9");
  assert.equal(inodeAt(storage, "copy", "f9").mtimeMs, 77);
  assert.equal(inodeAt(storage, "copy", "z-empty").childCount, 0);
});

test("a copy under way cannot be seen, and others' changes go on beside it (D13)", async (context) => {
  const { storage, rootDirectoryId } = await freshStorage(context);
  const top = await folder(storage, rootDirectoryId, "top");
  await Promise.all(
    Array.from({ length: 4 * COPY_SLICE_ROWS }, (_, index) => smallFile(storage, top, `f${index}`)),
  );
  const state = { isDone: false };
  let changes = 0;
  const copying = copy(storage, { source: inodeAt(storage, "top"), parentId: rootDirectoryId, name: "copy" });
  const ended = copying.then(() => {
    state.isDone = true;
  });
  while (!state.isDone) {
    const { missing } = storage.resolve(OWNER, ["copy"]);
    const isSeen = missing.length === 0;
    await smallFile(storage, rootDirectoryId, `beside ${changes}`);
    if (isSeen) assert.equal(inodeAt(storage, "copy").childCount, 4 * COPY_SLICE_ROWS);
    changes++;
  }
  await ended;
  assert.ok(changes >= 3, `${changes} changes beside it`);
});

test("conflicts: refused, another name, replaced; never into itself, never onto itself (D13)", async (context) => {
  const { storage, rootDirectoryId: parentId } = await freshStorage(context);
  await smallFile(storage, parentId, "a", "aaaa");
  await smallFile(storage, parentId, "b", "bb");
  const source = inodeAt(storage, "a");
  await assert.rejects(copy(storage, { source, parentId, name: "b" }), refusal("PATH_EXISTS"));
  const named = await copy(storage, { source, parentId, name: "b", onConflict: "rename" });
  assert.equal(named.inode.name, "b (2)");
  const replaced = await copy(storage, { source, parentId, name: "b", onConflict: "replace" });
  assert.equal(replaced.usedDeltaBytes, 2);
  assert.equal(usage(storage).liveBytes, 12);
  await assert.rejects(
    copy(storage, { source, parentId, name: "a", onConflict: "replace" }),
    refusal("BAD_ARGUMENT"),
  );
  const inner = await folder(storage, await folder(storage, parentId, "d"), "e");
  await assert.rejects(
    copy(storage, { source: inodeAt(storage, "d"), parentId: inner, name: "x" }),
    refusal("BAD_ARGUMENT"),
  );
  await assert.rejects(
    copy(storage, { source, parentId, name: "d", onConflict: "replace" }),
    refusal("IS_DIRECTORY"),
  );
});

test("what a sharee's copy replaces goes to the owner's trash (D13)", async (context) => {
  const { storage, rootDirectoryId: parentId } = await freshStorage(context);
  await smallFile(storage, parentId, "a", "aaaa");
  await smallFile(storage, parentId, "b", "bb");
  const source = inodeAt(storage, "a");
  const done = await copy(storage, {
    source,
    parentId,
    name: "b",
    onConflict: "replace",
    by: "eve@example.com",
  });
  assert.equal(done.usedDeltaBytes, 4);
  assert.equal(done.inode.createdBy, "eve@example.com");
  assert.equal(usage(storage).trashBytes, 2);
});

test("a copy whose caller has left ends before its next slice, and nothing of it stays (D13)", async (context) => {
  const { storage, directory, rootDirectoryId: parentId } = await freshStorage(context);
  const top = await folder(storage, parentId, "top");
  await Promise.all(
    Array.from({ length: 8 * COPY_SLICE_ROWS }, (_, index) => smallFile(storage, top, `f${index}`)),
  );
  const source = inodeAt(storage, "top");
  const gone = new AbortController();
  const copying = copy(storage, { source, parentId, name: "copy", signal: gone.signal });
  await smallFile(storage, parentId, "beside");
  gone.abort(new Error("the caller has left"));
  await assert.rejects(copying, /the caller has left/);
  assert.deepEqual(storage.resolve(OWNER, ["copy"]).missing, ["copy"]);
  assert.equal(usage(storage).liveBytes, source.sizeBytes + "beside".length);
  const rows = () => query(directory, "SELECT 1 FROM inode").length;
  await until(() => rows() === storage.facts().inodeCount);
  assert.equal(query(directory, "SELECT 1 FROM copying").length, 0);
});

test("a user's copies beyond the share wait, others' do not wait behind them, and too many are refused (D13)", async (context) => {
  const { storage, rootDirectoryId: parentId } = await freshStorage(context);
  const top = await folder(storage, parentId, "top");
  await Promise.all(
    Array.from({ length: 2 * COPY_SLICE_ROWS }, (_, index) => smallFile(storage, top, `f${index}`)),
  );
  await smallFile(storage, parentId, "small");
  const source = inodeAt(storage, "top");
  const gone = new AbortController();
  let ended = 0;
  const many = Array.from({ length: COPIES_PER_USER + COPIES_WAITING_PER_USER + 1 }, (_, index) =>
    copy(storage, { source, parentId, name: `copy${index}`, signal: gone.signal }).then(() => ended++),
  );
  const results = Promise.allSettled(many);
  const by = "eve@example.com";
  await copy(storage, { source: inodeAt(storage, "small"), parentId, name: "of another", by });
  assert.ok(ended < COPIES_PER_USER, `${ended} copies ended before`);
  gone.abort();
  const reasons = (await results).map((result): unknown =>
    result.status === "rejected" ? result.reason : undefined,
  );
  const limited = reasons.map((reason) => isGroveError(reason, "RATE_LIMITED"));
  assert.equal(limited.indexOf(true), many.length - 1);
  assert.ok(reasons.slice(0, -1).every((reason) => reason === undefined || reason === gone.signal.reason));
});

test("a source that is larger than what was claimed is not copied, and nothing of it stays (D16)", async (context) => {
  const { storage, rootDirectoryId: parentId } = await freshStorage(context);
  const top = await folder(storage, parentId, "top");
  await Promise.all(
    Array.from({ length: 2 * COPY_SLICE_ROWS }, (_, index) => smallFile(storage, top, `f${index}`)),
  );
  const source = inodeAt(storage, "top");
  const inodes = storage.facts().inodeCount;
  for (const maxBytes of [0, source.sizeBytes - 1]) {
    await assert.rejects(copy(storage, { source, parentId, name: "copy", maxBytes }), refusal("OVERLOADED"));
  }
  for (const maxInodes of [1, COPY_SLICE_ROWS, 2 * COPY_SLICE_ROWS]) {
    await assert.rejects(copy(storage, { source, parentId, name: "copy", maxInodes }), refusal("OVERLOADED"));
  }
  assert.equal(storage.facts().inodeCount, inodes);
  assert.equal(usage(storage).liveBytes, source.sizeBytes);
  await copy(storage, { source, parentId, name: "copy" });
});

test("whoever asked for a copy is asked before each slice whether it may go on, and nothing stays of one that may not (spec 4.6.3)", async (context) => {
  const { storage, rootDirectoryId: parentId, directory } = await freshStorage(context);
  const top = await folder(storage, parentId, "top");
  await Promise.all(
    Array.from({ length: 3 * COPY_SLICE_ROWS }, (_, index) => smallFile(storage, top, `f${index}`, "")),
  );
  const source = inodeAt(storage, "top");
  let asked = 0;
  const mayGoOn = (): void => {
    asked++;
    if (asked === 2) throw new GroveError("DISK_RESERVE", "the disk is full");
  };
  const request = { source, parentId, name: "copy", mayGoOn };
  await assert.rejects(copy(storage, request), refusal("DISK_RESERVE"));
  assert.equal(asked, 2);
  assert.deepEqual(storage.resolve(OWNER, ["copy"]).missing, ["copy"]);
  assert.equal(storage.root(OWNER)?.usage.liveInodes, 1 + 3 * COPY_SLICE_ROWS);
  await copy(storage, request);
  // One per slice except the first, for which the claim was checked.
  assert.equal(asked, 2 + 3);
  assert.equal(storage.root(OWNER)?.usage.liveInodes, 2 * (1 + 3 * COPY_SLICE_ROWS));
  await storage.close();
  assertSound(directory);
});

test("a copy that a stop of the node cuts leaves nothing (A-02)", async (context) => {
  const directory = temporaryDirectory(context);
  const storage = await openTestStorage(directory);
  const { directoryId } = await storage.createRoot({ owner: OWNER, rootId: "01ROOT" });
  const top = await folder(storage, directoryId, "top");
  await Promise.all(
    Array.from({ length: 6 * COPY_SLICE_ROWS }, (_, index) => smallFile(storage, top, `f${index}`)),
  );
  const cut = copy(storage, { source: inodeAt(storage, "top"), parentId: directoryId, name: "copy" });
  cut.catch(() => undefined);
  await new Promise((resolve) => setImmediate(resolve));
  await storage.close();
  assertSound(directory);
  const again = await openTestStorage(directory);
  const { missing } = again.resolve(OWNER, ["copy"]);
  if (missing.length > 0) assert.equal(again.facts().inodeCount, 2 + 6 * COPY_SLICE_ROWS);
  await until(() => again.root(OWNER) !== undefined);
  await again.close();
  assertSound(directory);
});

test("a file that takes the source's place while a long one is copied is not given the other's bytes (D13)", async (context) => {
  const { storage, rootDirectoryId: parentId } = await freshStorage(context);
  const sparse = async (name: string, text: string): Promise<Inode> => {
    await smallFile(storage, parentId, name);
    const { id: fileId } = inodeAt(storage, name);
    const data = Buffer.from(text);
    for (let position = 0; position <= COPY_SLICE_ROWS; position++) {
      const offset = position * CHUNK_BYTES;
      await storage.writeRange({ ...BY_OWNER, fileId, offset, data, ifMatch: undefined });
    }
    return inodeAt(storage, name);
  };
  const first = await sparse("first", "1");
  const second = await sparse("second", "2");
  assert.equal(first.version, second.version);
  const sources = [first.id, second.id];
  const place = { ...BY_OWNER, parentId, name: "copy", onConflict: "fail" } as const;
  const copying = storage.copy({
    by: OWNER,
    maxBytes: second.sizeBytes,
    maxInodes: 1,
    mayGoOn: () => undefined,
    target: () => ({ ...place, sourceId: sources.shift() ?? second.id }),
  });
  await assert.rejects(copying, refusal("OVERLOADED"));
  assert.deepEqual(storage.resolve(OWNER, ["copy"]).missing, ["copy"]);
  assert.equal(usage(storage).liveBytes, first.sizeBytes + second.sizeBytes);
});
