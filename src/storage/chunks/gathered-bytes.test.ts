// Tests of gathered bytes: order, own and pooled buffers, and buffers that return to the pool.
import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { GatheredBytes } from "./gathered-bytes.ts";
import { WRITE_BUFFER_BYTES, WriteBuffers } from "./write-buffers.ts";

test("gathered bytes come out as they went in, whatever the slices", () => {
  const sizes = fc.array(fc.nat({ max: 3 * WRITE_BUFFER_BYTES }), { maxLength: 6 });
  fc.assert(
    fc.property(sizes, sizes, fc.constantFrom(0, 10, WRITE_BUFFER_BYTES), (first, second, ownBytes) => {
      const pool = new WriteBuffers();
      const gathered = new GatheredBytes(pool, ownBytes);
      let byte = 0;
      for (const part of [first, second]) {
        const slices = part.map((size) => Buffer.alloc(size, ++byte));
        for (const slice of slices) gathered.add(slice);
        const whole = Buffer.concat(slices);
        assert.equal(gathered.byteCount, whole.length);
        assert.deepEqual(Buffer.concat(gathered.peek()), whole);
        const taken = gathered.take();
        assert.deepEqual([Buffer.concat(taken.slices), taken.byteCount], [whole, whole.length]);
        assert.equal(gathered.byteCount, 0);
        taken.release();
      }
    }),
    { numRuns: 30 },
  );
});

test("filled buffers come out before the last one, which goes on filling", () => {
  const sizes = fc.array(fc.nat({ max: 3 * WRITE_BUFFER_BYTES }), { maxLength: 6 });
  fc.assert(
    fc.property(sizes, fc.constantFrom(0, 10), (parts, ownBytes) => {
      const gathered = new GatheredBytes(new WriteBuffers(), ownBytes);
      const slices = parts.map((size, at) => Buffer.alloc(size, at + 1));
      const taken: Buffer[] = [];
      for (const slice of slices) {
        gathered.add(slice);
        if (gathered.byteCount < 2 * WRITE_BUFFER_BYTES) continue;
        const filled = gathered.takeFilled();
        assert.ok(filled.slices.every(({ length }) => length === WRITE_BUFFER_BYTES || length === ownBytes));
        assert.ok(gathered.byteCount < WRITE_BUFFER_BYTES);
        taken.push(...filled.slices);
      }
      assert.deepEqual(Buffer.concat([...taken, ...gathered.take().slices]), Buffer.concat(slices));
      assert.equal(gathered.takeFilled().byteCount, 0);
    }),
    { numRuns: 30 },
  );
});

test("a buffer is used again once it is released, and not before", () => {
  const pool = new WriteBuffers();
  const gathered = new GatheredBytes(pool, 0);
  gathered.add(Buffer.alloc(10, 1));
  const first = gathered.take();
  gathered.add(Buffer.alloc(10, 2));
  assert.notEqual(gathered.peek()[0]?.buffer, first.slices[0]?.buffer);
  assert.deepEqual(first.slices[0], Buffer.alloc(10, 1));
  first.release();
  assert.equal(pool.take().buffer, first.slices[0]?.buffer);
});

test("the pool keeps 16 MiB at most, and no buffer of a small file", () => {
  const pool = new WriteBuffers();
  const buffers = Array.from({ length: 257 }, () => pool.take());
  pool.give([Buffer.alloc(10), ...buffers]);
  const again = new Set(Array.from({ length: 257 }, () => pool.take()));
  assert.equal(buffers.filter((buffer) => again.has(buffer)).length, 256);
  pool.give(buffers);
  pool.drop();
  assert.ok(!buffers.includes(pool.take()));
});
