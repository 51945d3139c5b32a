// Tests of ranged writes: growth, holes, small files that become large, limits, and concurrent writers.
import assert from "node:assert/strict";
import { test } from "node:test";
import { crc32 } from "node:zlib";
import { BLOCK_BYTES, CHUNK_BYTES, FILE_MAX_BYTES, INLINE_FILE_MAX_BYTES } from "#base/limits.ts";
import { etagOf } from "#storage/contract/inode.ts";
import { until } from "#testing/until.ts";
import { RANGE_WRITES_WAITING_PER_FILE, RANGE_WRITES_WAITING_PER_USER } from "./range-lines.ts";
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
} from "./store.fixture.ts";

test("ranged writes grow, fill and join small files, chunks and holes as one array of bytes (D15)", async (context) => {
  const { storage, rootDirectoryId: parentId } = await freshStorage(context);
  const { inode } = await upload(storage, { parentId, name: "f", bytes: Buffer.alloc(0) });
  let expected = Buffer.alloc(0);
  const writes: readonly (readonly [number, number])[] = [
    [0, 10],
    [20, 5],
    [INLINE_FILE_MAX_BYTES - 1, 1],
    [INLINE_FILE_MAX_BYTES, 1],
    [100, 70_000],
    [3 * CHUNK_BYTES + 5, 100],
    [CHUNK_BYTES - 50, 100],
    [2 * CHUNK_BYTES, CHUNK_BYTES],
    [3 * CHUNK_BYTES + 50, 1_000],
    [0, 0],
    [BLOCK_BYTES - 1, 2],
  ];
  for (const [index, [offset, length]] of writes.entries()) {
    const data = patterned(length, index + 10);
    const change = await storage.writeRange({
      ...BY_OWNER,
      fileId: inode.id,
      offset,
      data,
      ifMatch: undefined,
    });
    const grown = Buffer.alloc(Math.max(expected.length, offset + length));
    expected.copy(grown);
    data.copy(grown, offset);
    assert.equal(change.usedDeltaBytes, grown.length - expected.length);
    expected = grown;
    assert.equal(change.inode.crc32, crc32(expected), `after ${length} bytes at ${offset}`);
    assert.ok((await readAll(storage, inode.id)).equals(expected), `after ${length} bytes at ${offset}`);
  }
  assert.equal(inodeAt(storage).sizeBytes, expected.length);
});

test("a small file grows to a large one with a hole behind its first bytes (D15)", async (context) => {
  const { storage, rootDirectoryId: parentId } = await freshStorage(context);
  const small = patterned(1_000);
  for (const [name, offset, length] of [
    ["near", 200_000, 10],
    ["far", 9_000_000, 10],
    ["near, with nothing", 200_000, 0],
    ["far, with nothing", 9_000_000, 0],
  ] as const) {
    const { inode } = await upload(storage, { parentId, name, bytes: small });
    const data = patterned(length, 4);
    await storage.writeRange({ ...BY_OWNER, fileId: inode.id, offset, data, ifMatch: undefined });
    const expected = Buffer.alloc(offset + length);
    small.copy(expected);
    data.copy(expected, offset);
    const now = inodeAt(storage, name);
    assert.equal(now.crc32, crc32(expected));
    assert.ok((await readAll(storage, inode.id)).equals(expected));
  }
});

test("a file has at most 2^43 bytes and a root less than 2^53, both sides (limits)", async (context) => {
  const { storage, rootDirectoryId: parentId } = await freshStorage(context);
  const byte = Buffer.alloc(1, 1);
  const grow = async (name: string, size: number) => {
    const { inode } = await upload(storage, { parentId, name, bytes: byte });
    return storage.writeRange({
      ...BY_OWNER,
      fileId: inode.id,
      offset: size - 1,
      data: byte,
      ifMatch: undefined,
    });
  };
  await assert.rejects(grow("above", FILE_MAX_BYTES + 1), refusal("BAD_ARGUMENT"));
  await storage.remove({ ...BY_OWNER, inodeId: inodeAt(storage, "above").id, recursive: false });
  // One byte after a whole number of chunks, so that little is stored.
  const largeBytes = Math.floor(FILE_MAX_BYTES / CHUNK_BYTES) * CHUNK_BYTES + 1;
  await Promise.all(Array.from({ length: 1_023 }, (_, index) => grow(`f${index}`, largeBytes)));
  await grow("largest", FILE_MAX_BYTES);
  await grow("last", Number.MAX_SAFE_INTEGER - FILE_MAX_BYTES - 1_023 * largeBytes);
  assert.equal(storage.root(OWNER)?.usage.liveBytes, Number.MAX_SAFE_INTEGER);
  const tooMuch = storage.createFile({ ...BY_OWNER, parentId, name: "one", data: byte, mtimeMs: 0 });
  await assert.rejects(tooMuch, refusal("BAD_ARGUMENT"));
  await storage.createFile({ ...BY_OWNER, parentId, name: "none", data: Buffer.alloc(0), mtimeMs: 0 });
});

test("writes to one file at once all take effect, and an outdated etag is refused (D15)", async (context) => {
  const { storage, rootDirectoryId: parentId } = await freshStorage(context);
  const { inode } = await upload(storage, { parentId, name: "f", bytes: Buffer.alloc(100_000) });
  const write = (index: number) =>
    storage.writeRange({
      ...BY_OWNER,
      fileId: inode.id,
      offset: index * 1_000,
      data: Buffer.alloc(1_000, index),
      ifMatch: undefined,
    });
  await Promise.all(Array.from({ length: 20 }, (_, index) => write(index)));
  const bytes = await readAll(storage, inode.id);
  for (let index = 0; index < 20; index++) assert.equal(bytes[index * 1_000 + 500], index);
  const late = { ...BY_OWNER, fileId: inode.id, offset: 0, data: Buffer.alloc(1), ifMatch: etagOf(inode) };
  await assert.rejects(storage.writeRange(late), refusal("ETAG_MISMATCH"));
  const { inode: small } = await upload(storage, { parentId, name: "s", bytes: Buffer.alloc(10) });
  await storage.writeRange({ ...late, fileId: small.id, ifMatch: etagOf(small) });
  await assert.rejects(
    storage.writeRange({ ...late, fileId: small.id, ifMatch: etagOf(small) }),
    refusal("ETAG_MISMATCH"),
  );
});

test("the chunk that a ranged write or a cut replaces goes at once, also when no other change follows (A-03)", async (context) => {
  const { storage, directory, rootDirectoryId: parentId } = await freshStorage(context);
  const { inode } = await upload(storage, { parentId, name: "f", bytes: patterned(70_000) });
  const change = { ...BY_OWNER, fileId: inode.id, ifMatch: undefined };
  await storage.writeRange({ ...change, offset: 10, data: patterned(10, 2) });
  await until(() => chunkFiles(directory).length === 1);
  await storage.setSize({ ...change, sizeBytes: 66_000 });
  await until(() => chunkFiles(directory).length === 1);
});

test("a cut or write that waited for its turn is of what the file holds then, not of what it held before (D15)", async (context) => {
  const { storage, rootDirectoryId: parentId } = await freshStorage(context);
  const [before, after, written] = [patterned(100_000), patterned(300, 2), patterned(50, 3)];
  const fileIds: number[] = [];
  for (let index = 0; index < 24; index++)
    fileIds.push((await upload(storage, { parentId, name: `f${index}`, bytes: before })).inode.id);
  // Most of them wait for a slot; those that wait longest are overtaken first.
  const changes = fileIds.map((fileId, index) =>
    index % 2 === 0
      ? storage.setSize({ ...BY_OWNER, fileId, ifMatch: undefined, sizeBytes: 100 })
      : storage.writeRange({ ...BY_OWNER, fileId, ifMatch: undefined, offset: 0, data: written }),
  );
  for (const [index] of [...fileIds.entries()].toReversed())
    await upload(storage, { parentId, name: `f${index}`, bytes: after });
  await Promise.all(changes);
  const cutLast = after.subarray(0, 100);
  const writtenLast = Buffer.concat([written, after.subarray(written.length)]);
  for (const [index, fileId] of fileIds.entries()) {
    const bytes = await readAll(storage, fileId);
    const isLast = bytes.equals(index % 2 === 0 ? cutLast : writtenLast);
    assert.ok(isLast || bytes.equals(after), `f${index} holds ${bytes.length} bytes of neither`);
  }
});

test("a user's writes beyond the share are refused as that user's own, and another's go on at once (D15, D17)", async (context) => {
  const { storage, rootDirectoryId: parentId } = await freshStorage(context);
  const { inode } = await upload(storage, { parentId, name: "f", bytes: Buffer.alloc(10) });
  const { inode: other } = await upload(storage, { parentId, name: "g", bytes: Buffer.alloc(10) });
  const write = (by: string, fileId: number) =>
    storage.writeRange({ ...BY_OWNER, by, fileId, offset: 0, data: Buffer.alloc(1), ifMatch: undefined });
  const order: string[] = [];
  const many = Array.from({ length: 1_300 }, () => write(OWNER, inode.id).then(() => order.push(OWNER)));
  const results = Promise.allSettled(many);
  const eve = "eve@example.com";
  const beside = [other.id, inode.id].map((fileId) => write(eve, fileId).then(() => order.push(eve)));
  await assert.rejects(write(OWNER, other.id), refusal("RATE_LIMITED"));
  await Promise.all(beside);
  assert.ok(order.length < RANGE_WRITES_WAITING_PER_USER / 2, `${order.length} writes ended before`);
  const refused = (await results).filter(({ status }) => status === "rejected");
  assert.equal(refused.length, 1_300 - RANGE_WRITES_WAITING_PER_USER);
  await write(OWNER, inode.id);
});

test("one more write than may wait for a file is refused, however many users they are of (D15, D17)", async (context) => {
  const { storage, rootDirectoryId: parentId } = await freshStorage(context);
  const { inode } = await upload(storage, { parentId, name: "f", bytes: Buffer.alloc(10) });
  const { inode: other } = await upload(storage, { parentId, name: "g", bytes: Buffer.alloc(10) });
  const write = (index: number, fileId = inode.id) => {
    const by = `user${index % 16}@example.com`;
    return storage.writeRange({
      ...BY_OWNER,
      by,
      fileId,
      offset: 0,
      data: Buffer.alloc(1),
      ifMatch: undefined,
    });
  };
  // One of them runs already.
  const all = Array.from({ length: 1 + RANGE_WRITES_WAITING_PER_FILE }, (_, index) => write(index));
  await assert.rejects(write(1), refusal("OVERLOADED"));
  await write(1, other.id);
  await Promise.all(all);
});

test("large writes of many files leave another user a slot, and take turns for the rest (D15, D17)", async (context) => {
  const { storage, rootDirectoryId: parentId } = await freshStorage(context);
  const fileIds: number[] = [];
  for (let index = 0; index < 41; index++)
    fileIds.push((await upload(storage, { parentId, name: `f${index}`, bytes: patterned(70_000) })).inode.id);
  const write = (by: string, fileId: number) =>
    storage.writeRange({ ...BY_OWNER, by, fileId, offset: 9, data: patterned(9), ifMatch: undefined });
  let ended = 0;
  const many = fileIds.slice(1).map((fileId) => write(OWNER, fileId).then(() => ended++));
  await write("eve@example.com", fileIds[0] ?? 0);
  assert.ok(ended < many.length / 2, `${ended} writes ended before`);
  await Promise.all(many);
});
