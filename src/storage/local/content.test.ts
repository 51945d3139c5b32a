// Tests of content: uploads at every border of size, pinned reads, and damaged bytes.
import assert from "node:assert/strict";
import { statSync } from "node:fs";
import { test } from "node:test";
import { crc32 } from "node:zlib";
import { BLOCK_BYTES, CHUNK_BYTES, INLINE_FILE_MAX_BYTES } from "#base/limits.ts";
import { etagOf, StaleAccessError } from "#storage/contract/inode.ts";
import { until } from "#testing/until.ts";
import {
  BY_OWNER,
  chunkFiles,
  freshStorage,
  OWNER,
  patterned,
  readAll,
  refusal,
  upload,
} from "./store.fixture.ts";
import { UPLOAD_STAGED_CHUNKS } from "./upload-sink.ts";

test("uploads of every border size come back byte for byte, with the checksum of the whole (D15)", async (context) => {
  const { storage, directory, rootDirectoryId: parentId } = await freshStorage(context);
  const chunksOf = new Map([
    [0, 0],
    [1, 0],
    [INLINE_FILE_MAX_BYTES, 0],
    [INLINE_FILE_MAX_BYTES + 1, 1],
    [BLOCK_BYTES, 1],
    [BLOCK_BYTES + 1, 1],
    [CHUNK_BYTES - 1, 1],
    [CHUNK_BYTES, 1],
    [CHUNK_BYTES + 1, 2],
    [2 * CHUNK_BYTES + 777, 3],
  ]);
  let chunks = 0;
  let bytes = 0;
  for (const [size, count] of chunksOf) {
    const content = patterned(size, size);
    const { inode, usage } = await upload(storage, { parentId, name: `f${size}`, bytes: content });
    chunks += count;
    bytes += size;
    assert.equal(inode.crc32, crc32(content));
    assert.equal(usage.liveBytes, bytes);
    assert.ok((await readAll(storage, inode.id)).equals(content), `${size} bytes`);
  }
  assert.equal(storage.facts().chunkCount, chunks);
  const files = chunkFiles(directory);
  assert.equal(files.length, chunks);
  for (const file of files) assert.equal(statSync(file).mode & 0o777, 0o600);
});

test("each message has its own checksum, however it is cut into slices (D15)", async (context) => {
  const { storage, rootDirectoryId: parentId } = await freshStorage(context);
  const bytes = patterned(CHUNK_BYTES + 500_000, 5);
  const sink = storage.beginUpload({ owner: OWNER, sizeBytes: bytes.length });
  let at = 0;
  for (const [messageBytes, sliceBytes] of [
    [1, 1],
    [5_000, 17],
    [300_000, 4_096],
    [CHUNK_BYTES - 10, 65_536],
    [0, 1],
    [bytes.length, 100_000],
  ] as const) {
    const end = Math.min(bytes.length, at + messageBytes);
    const message = bytes.subarray(at, end);
    sink.beginMessage();
    for (; at < end; at += sliceBytes) await sink.write(bytes.subarray(at, Math.min(end, at + sliceBytes)));
    at = end;
    assert.equal(sink.endMessage(), crc32(message));
    assert.equal(sink.receivedBytes, at);
  }
  const target = {
    ...BY_OWNER,
    parentId,
    name: "f",
    onExists: "fail",
    ifMatch: undefined,
    mtimeMs: 5,
  } as const;
  const { inode } = await sink.commit(target);
  assert.equal(inode.mtimeMs, 5);
  assert.ok((await readAll(storage, inode.id)).equals(bytes));
});

test("an upload counts and shows nothing before its commit, and leaves nothing after its end (A-05)", async (context) => {
  const { storage, directory, rootDirectoryId: parentId } = await freshStorage(context);
  const before = storage.resolve(OWNER, []);
  for (const size of [10, 100_000, CHUNK_BYTES + 1]) {
    const sink = storage.beginUpload({ owner: OWNER, sizeBytes: undefined });
    await sink.write(patterned(size));
    assert.deepEqual(storage.resolve(OWNER, []), before);
    await sink.abort();
    await sink.abort();
    assert.throws(() => sink.write(Buffer.alloc(1)), refusal("BAD_ARGUMENT"));
    assert.deepEqual(storage.resolve(OWNER, []), before);
  }
  assert.deepEqual(chunkFiles(directory), []);
  const short = storage.beginUpload({ owner: OWNER, sizeBytes: 11 });
  await short.write(patterned(10));
  const target = {
    ...BY_OWNER,
    parentId,
    name: "f",
    onExists: "fail",
    ifMatch: undefined,
    mtimeMs: 0,
  } as const;
  await assert.rejects(short.commit(target), refusal("BAD_ARGUMENT"));
  await short.abort();
});

test("a directory that came to the name is what refuses the commit, whatever was wished of a file there (D15)", async (context) => {
  const { storage, rootDirectoryId: parentId } = await freshStorage(context);
  await storage.createDirectory({ ...BY_OWNER, parentId, name: "d" });
  for (const onExists of ["fail", "replace"] as const) {
    const sink = storage.beginUpload({ owner: OWNER, sizeBytes: 0 });
    const target = { ...BY_OWNER, parentId, name: "d", onExists, ifMatch: undefined, mtimeMs: 0 };
    await assert.rejects(sink.commit(target), refusal("IS_DIRECTORY"));
    await sink.abort();
  }
});

test("a commit that is refused may be repeated, and the bytes are stored once (T24)", async (context) => {
  const { storage, directory, rootDirectoryId: parentId } = await freshStorage(context);
  for (const size of [10, 100_000]) {
    const bytes = patterned(size);
    const sink = storage.beginUpload({ owner: OWNER, sizeBytes: size });
    await sink.write(bytes);
    const name = `f${size}`;
    const target = {
      ...BY_OWNER,
      parentId,
      name,
      onExists: "replace",
      ifMatch: undefined,
      mtimeMs: 0,
    } as const;
    await assert.rejects(sink.commit({ ...target, accessVersion: 9 }), StaleAccessError);
    await assert.rejects(sink.commit({ ...target, ifMatch: "x" }), refusal("ETAG_MISMATCH"));
    const { inode } = await sink.commit(target);
    await assert.rejects(sink.commit(target), refusal("BAD_ARGUMENT"));
    await sink.abort();
    assert.ok((await readAll(storage, inode.id)).equals(bytes));
  }
  assert.equal(chunkFiles(directory).length, 1);
});

test("an upload replaces a file only when asked, at the version asked for, and its old chunks go (D15)", async (context) => {
  const { storage, directory, rootDirectoryId: parentId } = await freshStorage(context);
  const { inode: old } = await upload(storage, { parentId, name: "f", bytes: patterned(100_000) });
  await storage.createDirectory({ ...BY_OWNER, parentId, name: "folder" });
  const sink = storage.beginUpload({ owner: OWNER, sizeBytes: undefined });
  await sink.write(patterned(200_000, 2));
  const target = {
    ...BY_OWNER,
    parentId,
    name: "f",
    onExists: "fail",
    ifMatch: undefined,
    mtimeMs: 0,
  } as const;
  await assert.rejects(sink.commit(target), refusal("PATH_EXISTS"));
  await assert.rejects(
    sink.commit({ ...target, onExists: "replace", name: "folder" }),
    refusal("IS_DIRECTORY"),
  );
  const change = await sink.commit({ ...target, onExists: "replace", ifMatch: etagOf(old) });
  assert.equal(change.usedDeltaBytes, 100_000);
  assert.equal(change.usage.fileCount, 1);
  await until(() => chunkFiles(directory).length === 1);
  assert.ok((await readAll(storage, old.id)).equals(patterned(200_000, 2)));
});

test("a huge file's chunks get their rows before its commit, which an abort takes back", async (context) => {
  const { storage, directory, rootDirectoryId: parentId } = await freshStorage(context);
  const chunk = patterned(CHUNK_BYTES, 3);
  const begin = async () => {
    const sink = storage.beginUpload({ owner: OWNER, sizeBytes: undefined });
    // Distinct only in their first bytes, which keeps their creation cheap.
    for (let index = 0; index < UPLOAD_STAGED_CHUNKS + 1; index++) {
      const wait = sink.write(chunk);
      if (wait !== undefined) await wait;
    }
    return sink;
  };
  const aborted = await begin();
  await until(() => storage.facts().chunkCount === UPLOAD_STAGED_CHUNKS);
  await aborted.abort();
  await until(() => chunkFiles(directory).length === 0);
  assert.equal(storage.facts().chunkCount, 0);
  const sink = await begin();
  const target = {
    ...BY_OWNER,
    parentId,
    name: "f",
    onExists: "fail",
    ifMatch: undefined,
    mtimeMs: 0,
  } as const;
  const { inode } = await sink.commit(target);
  assert.equal(inode.sizeBytes, (UPLOAD_STAGED_CHUNKS + 1) * CHUNK_BYTES);
  await storage.remove({ ...BY_OWNER, inodeId: inode.id, recursive: false });
  await until(() => chunkFiles(directory).length === 0 && storage.facts().chunkCount === 0);
});
