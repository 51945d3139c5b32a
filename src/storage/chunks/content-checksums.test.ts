// Tests of streaming checksums of message, block, chunk, file and list: each as if it were read alone.
import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { BLOCK_BYTES, CHUNK_BYTES } from "#base/limits.ts";
import { crc32 } from "#os/crc32.ts";
import { ContentChecksums, crcOfBlocks } from "./content-checksums.ts";
import { crcWithZeros, ListChecksum } from "./list-checksum.ts";

const BYTES = Buffer.from(
  Uint8Array.from({ length: 3 * BLOCK_BYTES }, (_, at) => (at * 2_654_435_761) >>> 24),
);

test("however content is cut into slices, messages and chunks, each checksum is that of its bytes", () => {
  const cuts = fc.array(
    fc.record({
      length: fc.oneof(fc.nat(40), fc.constantFrom(BLOCK_BYTES - 1, BLOCK_BYTES, BLOCK_BYTES + 1)),
      next: fc.constantFrom("slice", "message", "broken message", "chunk", "both"),
    }),
    { minLength: 1, maxLength: 12 },
  );
  fc.assert(
    fc.property(cuts, (list) => {
      const sums = new ContentChecksums();
      const file: Buffer[] = [];
      let chunk: Buffer[] = [];
      let message: Buffer[] = [];
      sums.beginMessage();
      for (const { length, next } of list) {
        const slice = BYTES.subarray(length % 1_000, (length % 1_000) + length);
        sums.update(slice);
        for (const all of [file, chunk, message]) all.push(slice);
        assert.equal(sums.chunkLength, Buffer.concat(chunk).length);
        if (next === "message" || next === "both") {
          assert.equal(sums.endMessage(), crc32(Buffer.concat(message)));
          sums.beginMessage();
          message = [];
        }
        if (next === "broken message") {
          sums.beginMessage();
          message = [];
        }
        if (next !== "chunk" && next !== "both") continue;
        const bytes = Buffer.concat(chunk);
        const blocks = Array.from({ length: Math.ceil(bytes.length / BLOCK_BYTES) }, (_, index) =>
          crc32(bytes.subarray(index * BLOCK_BYTES, (index + 1) * BLOCK_BYTES)),
        );
        assert.deepEqual(sums.endChunk(), { crc32: crc32(bytes), blockCrcs: blocks });
        assert.equal(sums.fileCrc, crc32(Buffer.concat(file)));
        assert.equal(sums.chunkLength, 0);
        chunk = [];
      }
      assert.equal(sums.endMessage(), crc32(Buffer.concat(message)));
    }),
    { numRuns: 40 },
  );
});

test("an upload that goes on behind whole chunks ends with the checksum of the whole", () => {
  const [first, second] = [BYTES.subarray(0, 100), BYTES.subarray(100, 300)];
  const sums = new ContentChecksums(crc32(first));
  assert.equal(sums.fileCrc, crc32(first));
  sums.update(second);
  sums.endChunk();
  assert.equal(sums.fileCrc, crc32(BYTES.subarray(0, 300)));
  assert.equal(new ContentChecksums().fileCrc, 0);
});

test("blocks give the checksum of their chunk, the last as short as it is", () => {
  for (const length of [0, 1, BLOCK_BYTES - 1, BLOCK_BYTES, BLOCK_BYTES + 1, 2 * BLOCK_BYTES]) {
    const chunk = BYTES.subarray(0, length);
    const blocks: number[] = [];
    for (let at = 0; at < length; at += BLOCK_BYTES) blocks.push(crc32(chunk.subarray(at, at + BLOCK_BYTES)));
    assert.equal(crcOfBlocks(blocks, length), crc32(chunk));
  }
});

test("a list of chunks gives the checksum of its file, its holes as zeros (D15)", () => {
  const list = new ListChecksum();
  assert.equal(list.endBytes, 0);
  assert.equal(list.crcOf(5), crc32(Buffer.alloc(5)));
  const one = BYTES.subarray(0, CHUNK_BYTES % 1_000 || 1_000);
  list.add({ position: 0, length: one.length, crc32: crc32(one) });
  assert.equal(list.endBytes, one.length);
  assert.equal(list.crcOf(one.length), crc32(one));
  assert.equal(list.crcOf(one.length + 7), crc32(Buffer.concat([one, Buffer.alloc(7)])));
  const two = BYTES.subarray(500, 700);
  list.add({ position: 2, length: two.length, crc32: crc32(two) });
  assert.equal(list.endBytes, 2 * CHUNK_BYTES + 200);
  const whole = Buffer.alloc(2 * CHUNK_BYTES + 300);
  one.copy(whole);
  two.copy(whole, 2 * CHUNK_BYTES);
  assert.equal(list.crcOf(whole.length), crc32(whole));
});

test("zeros behind a range count", () => {
  assert.equal(crcWithZeros(crc32(Buffer.from("a")), 3), crc32(Buffer.from("a\0\0\0")));
  assert.equal(crcWithZeros(crc32(Buffer.from("a")), 0), crc32(Buffer.from("a")));
});
