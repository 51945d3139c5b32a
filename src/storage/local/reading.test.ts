// Tests of reads: pinned versions, checksums of ranges, damaged bytes.
import assert from "node:assert/strict";
import { readFileSync, rmSync, statSync, truncateSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { test } from "node:test";
import { crc32 } from "node:zlib";
import { BLOCK_BYTES, CHUNK_BYTES } from "#base/limits.ts";
import { etagOf } from "#storage/contract/inode.ts";
import { temporaryDirectory } from "#testing/temporary-folder.ts";
import { until } from "#testing/until.ts";
import {
  BY_OWNER,
  chunkFiles,
  freshStorage,
  inodeAt,
  OWNER,
  openTestStorage,
  patterned,
  readAll,
  refusal,
  upload,
} from "./store.fixture.ts";

test("what is being read stays until it is closed, whatever replaces or removes it (A-03)", async (context) => {
  const { storage, directory, rootDirectoryId: parentId } = await freshStorage(context);
  for (const size of [1_000, CHUNK_BYTES + 1_000]) {
    const bytes = patterned(size);
    const { inode } = await upload(storage, { parentId, name: "f", bytes });
    const contents = [storage.openFile(inode.id), storage.openFile(inode.id)];
    await storage.writeRange({
      ...BY_OWNER,
      fileId: inode.id,
      offset: 0,
      data: Buffer.alloc(9),
      ifMatch: undefined,
    });
    await upload(storage, { parentId, name: "f", bytes: patterned(size, 2) });
    await storage.remove({ ...BY_OWNER, inodeId: inode.id, recursive: false });
    // Time for a collector that would remove too much.
    await new Promise((resolve) => setTimeout(resolve, 50));
    for (const content of contents) {
      const blocks: Buffer[] = [];
      for (let at = 0; at < size; at += blocks.at(-1)?.length ?? 0) blocks.push(await content.readBlock(at));
      assert.ok(Buffer.concat(blocks).equals(bytes));
      assert.equal(await content.rangeCrc32(0, size), crc32(bytes));
      content.close();
      content.close();
      await assert.rejects(async () => content.readBlock(0), refusal("BAD_ARGUMENT"));
    }
    await until(() => chunkFiles(directory).length === 0);
    assert.throws(() => storage.openFile(inode.id), refusal("NO_SUCH_PATH"));
  }
});

test("a file that a path has just led to is opened as it is now, and not after it was removed", async (context) => {
  const { storage, rootDirectoryId: parentId } = await freshStorage(context);
  for (const size of [0, 1_000, CHUNK_BYTES + 1_000]) {
    for (const version of [1, 2]) {
      const bytes = patterned(size, version);
      await upload(storage, { parentId, name: "f", bytes });
      const { inode } = await upload(storage, { parentId, name: "other", bytes: patterned(9) });
      const reached = inodeAt(storage, "f");
      const [content, other] = [storage.openFile(reached.id), storage.openFile(inode.id)];
      assert.deepEqual(content.inode, reached);
      assert.deepEqual(other.inode, inode);
      assert.ok((await readAll({ openFile: () => content }, reached.id)).equals(bytes));
      assert.ok((await readAll({ openFile: () => other }, inode.id)).equals(patterned(9)));
    }
    const { id } = inodeAt(storage, "f");
    await storage.remove({ ...BY_OWNER, inodeId: id, recursive: false });
    assert.throws(() => storage.openFile(id), refusal("NO_SUCH_PATH"));
  }
});

test("a block is read into the caller's buffer where it fits, and after a close of the store nothing is read", async (context) => {
  const directory = temporaryDirectory(context);
  const storage = await openTestStorage(directory);
  const { directoryId: parentId } = await storage.createRoot({ owner: OWNER, rootId: "01ROOT" });
  const bytes = patterned(BLOCK_BYTES + 1_000);
  const { inode } = await upload(storage, { parentId, name: "f", bytes });
  const content = storage.openFile(inode.id);
  const into = Buffer.alloc(BLOCK_BYTES);
  const block = await content.readBlock(0, () => into);
  assert.equal(block.buffer, into.buffer);
  assert.ok(into.equals(bytes.subarray(0, BLOCK_BYTES)));
  content.close();
  await storage.close();
  assert.throws(() => storage.root(OWNER), refusal("STORAGE_FAILED"));
  assert.throws(() => storage.openFile(inode.id), refusal("STORAGE_FAILED"));
});

test("a buffer of several blocks takes as many of the chunk, each checked by itself (D15)", async (context) => {
  const directory = temporaryDirectory(context);
  const storage = await openTestStorage(directory);
  context.after(() => storage.close());
  const { directoryId: parentId } = await storage.createRoot({ owner: OWNER, rootId: "01ROOT" });
  const bytes = patterned(CHUNK_BYTES + 300_000);
  const { inode } = await upload(storage, { parentId, name: "f", bytes });
  const content = storage.openFile(inode.id);
  context.after(() => content.close());
  const run = 3 * BLOCK_BYTES;
  const room = Buffer.alloc(run + 1_000);
  for (const [offset, end] of [
    [0, run],
    [run, 2 * run],
    [BLOCK_BYTES + 5, BLOCK_BYTES + run],
    [CHUNK_BYTES - 100, CHUNK_BYTES],
    [CHUNK_BYTES, bytes.length],
  ] as const) {
    const read = await content.readBlock(offset, () => room);
    assert.equal(read.buffer, room.buffer);
    assert.ok(read.equals(bytes.subarray(offset, end)), `${offset} to ${end}`);
  }
  const first = chunkFiles(directory).find((path) => statSync(path).size === CHUNK_BYTES) ?? "";
  const damaged = readFileSync(first);
  damaged[2 * BLOCK_BYTES + 7]! ^= 1;
  writeFileSync(first, damaged);
  await content.readBlock(3 * BLOCK_BYTES, () => room);
  await assert.rejects(async () => content.readBlock(0, () => room), refusal("CORRUPT"));
});

test("a hole, or zeros behind a chunk's bytes, end what a buffer of several blocks takes", async (context) => {
  const { storage, rootDirectoryId: parentId } = await freshStorage(context);
  const bytes = patterned(2 * BLOCK_BYTES + 1_000);
  const { inode } = await upload(storage, { parentId, name: "f", bytes });
  const size = 2 * CHUNK_BYTES;
  await storage.setSize({ ...BY_OWNER, fileId: inode.id, sizeBytes: size, ifMatch: undefined });
  const content = storage.openFile(inode.id);
  context.after(() => content.close());
  const room = Buffer.alloc(8 * BLOCK_BYTES);
  const slices: Buffer[] = [];
  for (let at = 0; at < size; at += slices.at(-1)?.length ?? 0) {
    slices.push(Buffer.from(await content.readBlock(at, () => room)));
  }
  assert.ok(Buffer.concat(slices).equals(Buffer.concat([bytes, Buffer.alloc(size - bytes.length)])));
});

for (const [what, sql] of [
  ["a chunk without its row", "DELETE FROM chunk"],
  ["a chunk without checksums", "UPDATE chunk SET block_crcs = x''"],
  ["a small file of another length", "UPDATE inline_content SET data = x'00'"],
] as const) {
  test(`${what} is CORRUPT to whoever reads it, never wrong bytes (A-08)`, async (context) => {
    const directory = temporaryDirectory(context);
    const first = await openTestStorage(directory);
    const { directoryId: parentId } = await first.createRoot({ owner: OWNER, rootId: "01ROOT" });
    const size = what.startsWith("a small") ? 1_000 : 100_000;
    await upload(first, { parentId, name: "f", bytes: patterned(size) });
    await first.close();
    const db = new DatabaseSync(join(directory, "inodes.db"), { enableForeignKeyConstraints: false });
    db.exec(sql);
    db.close();
    const storage = await openTestStorage(directory);
    context.after(() => storage.close());
    const { id } = inodeAt(storage, "f");
    await assert.rejects(readAll(storage, id), refusal("CORRUPT"));
    await until(() => storage.damagedFiles().count === 1);
    await assert.rejects(readAll(storage, id), refusal("CORRUPT"));
  });
}

test("the checksum of any range is that of its bytes; a range outside is refused (D15)", async (context) => {
  const { storage, rootDirectoryId: parentId } = await freshStorage(context);
  const bytes = patterned(2 * CHUNK_BYTES + 100_000);
  const { inode } = await upload(storage, { parentId, name: "f", bytes });
  const { inode: small } = await upload(storage, { parentId, name: "s", bytes: bytes.subarray(0, 5_000) });
  const content = storage.openFile(inode.id);
  const inline = storage.openFile(small.id);
  context.after(() => [content, inline].forEach((open) => open.close()));
  for (const [offset, length] of [
    [0, 0],
    [0, bytes.length],
    [0, CHUNK_BYTES],
    [CHUNK_BYTES, CHUNK_BYTES],
    [2 * CHUNK_BYTES, 100_000],
    [BLOCK_BYTES, BLOCK_BYTES * 2],
    [1, 5],
    [BLOCK_BYTES - 1, CHUNK_BYTES],
    [7, bytes.length - 8],
  ] as const) {
    const expected = crc32(bytes.subarray(offset, offset + length));
    assert.equal(await content.rangeCrc32(offset, length), expected, `${length} bytes at ${offset}`);
  }
  assert.equal(typeof content.rangeCrc32(CHUNK_BYTES, CHUNK_BYTES), "number");
  assert.equal(inline.rangeCrc32(10, 100), crc32(bytes.subarray(10, 110)));
  for (const [offset, length] of [
    [-1, 1],
    [0, bytes.length + 1],
    [0.5, 1],
  ] as const) {
    assert.throws(() => content.rangeCrc32(offset, length), refusal("BAD_ARGUMENT"));
  }
  await assert.rejects(async () => content.readBlock(bytes.length), refusal("BAD_ARGUMENT"));
});

test("flipped, cut and missing chunks are CORRUPT, never wrong bytes, and mark their file (A-08)", async (context) => {
  const {
    storage,
    directory,
    rootDirectoryId: parentId,
  } = await freshStorage(context, { isCheckedAfterwards: false });
  const damages: Record<string, (path: string) => void> = {
    flipped: (path) => writeFileSync(path, patterned(300_000, 8)),
    cut: (path) => truncateSync(path, 299_999),
    missing: (path) => rmSync(path),
  };
  for (const [name, damage] of Object.entries(damages)) {
    const before = new Set(chunkFiles(directory));
    const { inode } = await upload(storage, { parentId, name, bytes: patterned(300_000, 7) });
    const [path = ""] = chunkFiles(directory).filter((file) => !before.has(file));
    damage(path);
    await assert.rejects(readAll(storage, inode.id), refusal("CORRUPT"), name);
    await until(() => inodeAt(storage, name).damaged);
    assert.equal(etagOf(inodeAt(storage, name)), etagOf(inode));
    const write = {
      ...BY_OWNER,
      fileId: inode.id,
      offset: 299_000,
      data: Buffer.alloc(1),
      ifMatch: undefined,
    };
    await assert.rejects(storage.writeRange(write), refusal("CORRUPT"));
    const { inode: replaced } = await upload(storage, { parentId, name, bytes: patterned(5) });
    assert.equal(replaced.damaged, false);
    assert.ok((await readAll(storage, inode.id)).equals(patterned(5)));
  }
  assert.equal(storage.failure, undefined);
});
