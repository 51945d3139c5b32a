// Tests that joined checksums equal those of the bytes in one piece.
import assert from "node:assert/strict";
import { test } from "node:test";
import { crc32 } from "node:zlib";
import fc from "fast-check";
import { crc32Combine, crc32OfZeros, crc32Replace, crc32Without } from "./crc32-combine.ts";

test("the checksum of two ranges is made from those of each, wherever the cut is (D15)", () => {
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 5_000 }), fc.nat(5_000), (bytes, at) => {
      const cut = Math.min(at, bytes.length);
      const joined = crc32Combine(
        crc32(bytes.subarray(0, cut)),
        crc32(bytes.subarray(cut)),
        bytes.length - cut,
      );
      assert.equal(joined, crc32(bytes));
    }),
  );
});

test("ranges of a few bytes join like long ones, each length next to each other (D15)", () => {
  const bytes = Buffer.from("a few bytes");
  for (let end = 0; end <= bytes.length; end++) {
    for (let cut = 0; cut <= end; cut++) {
      const [first, second] = [bytes.subarray(0, cut), bytes.subarray(cut, end)];
      assert.equal(crc32Combine(crc32(first), crc32(second), second.length), crc32(bytes.subarray(0, end)));
    }
  }
});

test("the checksum of what comes before a range follows from that of both, whatever their lengths (D15)", () => {
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 5_000 }), fc.nat(5_000), (bytes, at) => {
      const cut = Math.min(at, bytes.length);
      const [first, second] = [bytes.subarray(0, cut), bytes.subarray(cut)];
      assert.equal(crc32Without(crc32(bytes), crc32(second), second.length), crc32(first));
    }),
  );
  const checksums = fc.integer({ min: 0, max: 2 ** 32 - 1 });
  const lengths = fc.oneof(fc.integer({ min: 0, max: 10 }), fc.integer({ min: 0, max: 2 ** 43 }));
  fc.assert(
    fc.property(checksums, checksums, lengths, (first, second, length) => {
      assert.equal(crc32Without(crc32Combine(first, second, length), second, length), first);
    }),
  );
});

test("a difference of one bit is carried through whatever follows, like any other (D15)", () => {
  const bits = fc.oneof(fc.constant(1), fc.integer({ min: 0, max: 2 ** 32 - 1 }));
  const lengths = fc.oneof(fc.integer({ min: 1, max: 10 }), fc.integer({ min: 1, max: 2 ** 52 }));
  fc.assert(
    fc.property(bits, bits, bits, lengths, (whole, range, difference, length) => {
      const changed = (range ^ difference) >>> 0;
      const carried = (crc32Combine(range, 0, length) ^ crc32Combine(changed, 0, length)) >>> 0;
      assert.equal(crc32Combine(difference, 0, length), carried);
      assert.equal((crc32Replace(whole, range, changed, length) ^ whole) >>> 0, carried);
    }),
  );
});

test("the checksum of zeros needs no zeros, up to lengths beyond 2^32 (D15)", () => {
  for (const length of [0, 1, 7, 65_536, 65_537, 4_000_000]) {
    assert.equal(crc32OfZeros(length), crc32(Buffer.alloc(length)));
  }
  const half = crc32OfZeros(2 ** 40);
  assert.equal(crc32OfZeros(2 ** 41), crc32Combine(half, half, 2 ** 40));
});

test("a changed range changes the whole's checksum as its bytes would (D15)", () => {
  fc.assert(
    fc.property(
      fc.uint8Array({ maxLength: 2_000 }),
      fc.uint8Array({ minLength: 1, maxLength: 500 }),
      fc.uint8Array({ maxLength: 2_000 }),
      fc.nat(),
      (before, range, after, seed) => {
        const changed = range.map((byte, index) => (byte * 31 + index * seed) & 255);
        const replaced = crc32Replace(
          crc32(Buffer.concat([before, range, after])),
          crc32(range),
          crc32(changed),
          after.length,
        );
        assert.equal(replaced, crc32(Buffer.concat([before, changed, after])));
      },
    ),
  );
});
