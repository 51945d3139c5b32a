// Tests that a file cut or grown to any size holds exactly the bytes of a plain buffer (D15).
import assert from "node:assert/strict";
import { test } from "node:test";
import { crc32 } from "node:zlib";
import fc from "fast-check";
import { crc32Combine } from "#base/crc32-combine.ts";
import { BLOCK_BYTES, CHUNK_BYTES, FILE_MAX_BYTES, INLINE_FILE_MAX_BYTES } from "#base/limits.ts";
import { etagOf } from "#storage/contract/inode.ts";
import { BY_OWNER, freshStorage, OWNER, patterned, readAll, refusal, upload } from "./store.fixture.ts";

const EDGES = [0, 1, INLINE_FILE_MAX_BYTES, BLOCK_BYTES, CHUNK_BYTES, 2 * CHUNK_BYTES].flatMap((size) => [
  Math.max(0, size - 1),
  size,
  size + 1,
]);
const sizes = fc.oneof(fc.constantFrom(...EDGES), fc.nat(2 * CHUNK_BYTES + 1_000));

test("sizes set one after the other leave what a buffer would hold, and the root's bytes follow (D15)", async (context) => {
  const { storage, rootDirectoryId: parentId } = await freshStorage(context);
  let files = 0;
  await fc.assert(
    fc.asyncProperty(sizes, fc.array(sizes, { minLength: 1, maxLength: 3 }), async (first, rest) => {
      let bytes = patterned(first);
      const before = storage.root(OWNER)?.usage.liveBytes ?? 0;
      const { inode } = await upload(storage, { parentId, name: `f${files++}`, bytes });
      let last = inode;
      for (const sizeBytes of rest) {
        const grown = Buffer.alloc(sizeBytes);
        bytes.copy(grown);
        bytes = grown;
        const done = await storage.setSize({
          ...BY_OWNER,
          fileId: inode.id,
          sizeBytes,
          ifMatch: etagOf(last),
        });
        assert.equal(done.inode.sizeBytes, sizeBytes);
        assert.equal(done.inode.crc32, crc32(bytes));
        assert.notEqual(etagOf(done.inode), etagOf(last));
        last = done.inode;
      }
      assert.ok(bytes.equals(await readAll(storage, inode.id)));
      assert.equal(storage.root(OWNER)?.usage.liveBytes, before + bytes.length);
    }),
    { numRuns: 25 },
  );
});

test("a size above 8 TiB, and one for another version, are refused", async (context) => {
  const { storage, rootDirectoryId: parentId } = await freshStorage(context);
  const { inode } = await upload(storage, { parentId, name: "f", bytes: Buffer.from("abc") });
  const change = { ...BY_OWNER, fileId: inode.id, ifMatch: undefined };
  await assert.rejects(
    storage.setSize({ ...change, sizeBytes: FILE_MAX_BYTES + 1 }),
    refusal("BAD_ARGUMENT"),
  );
  await assert.rejects(storage.setSize({ ...change, sizeBytes: -1 }), refusal("BAD_ARGUMENT"));
  await assert.rejects(
    storage.setSize({ ...change, sizeBytes: 1, ifMatch: "0-0" }),
    refusal("ETAG_MISMATCH"),
  );
  const done = await storage.setSize({ ...change, sizeBytes: FILE_MAX_BYTES });
  assert.equal(done.inode.sizeBytes, FILE_MAX_BYTES);
  await storage.setSize({ ...change, sizeBytes: 2 });
  assert.equal((await readAll(storage, inode.id)).toString(), "ab");
});

test("what somebody other than the owner cuts is whole in the owner's trash (D13)", async (context) => {
  const { storage, rootDirectoryId: parentId } = await freshStorage(context);
  const bytes = patterned(CHUNK_BYTES + 100_000);
  const { inode } = await upload(storage, { parentId, name: "f", bytes });
  const by = "eve@example.com";
  const sizeBytes = CHUNK_BYTES + 7;
  const done = await storage.setSize({ ...BY_OWNER, by, fileId: inode.id, sizeBytes, ifMatch: undefined });
  assert.equal(done.usedDeltaBytes, sizeBytes);
  const { liveBytes, trashBytes } = storage.root(OWNER)?.usage ?? assert.fail();
  assert.deepEqual([liveBytes, trashBytes], [sizeBytes, bytes.length]);
  assert.ok(bytes.subarray(0, sizeBytes).equals(await readAll(storage, inode.id)));
});

test("while a huge file is cut others have their turns, and its checksum is that of what is left (D15)", async (context) => {
  const { storage, rootDirectoryId: parentId } = await freshStorage(context);
  const { inode } = await upload(storage, { parentId, name: "huge", bytes: patterned(70_000) });
  const change = { ...BY_OWNER, fileId: inode.id, ifMatch: undefined };
  // 100,000 chunks, all but the first of them holes.
  const sizeBytes = 100_000 * CHUNK_BYTES;
  const grown = await storage.setSize({ ...change, sizeBytes });
  let turns = 0;
  let isDone = false;
  const count = (): void => {
    turns++;
    if (!isDone) setImmediate(count);
  };
  setImmediate(count);
  const half = await storage.setSize({ ...change, sizeBytes: sizeBytes / 2 });
  isDone = true;
  assert.ok(turns > 150, `${turns} turns`);
  const again = await storage.setSize({ ...change, sizeBytes });
  assert.equal(again.inode.crc32, grown.inode.crc32);
  const short = await storage.setSize({ ...change, sizeBytes: sizeBytes / 2 + 1 });
  assert.equal(crc32Combine(half.inode.crc32, crc32(Buffer.alloc(1)), 1), short.inode.crc32);
});
