// Tests of the checksum: both libraries agree, below and above the length from which the compiled one runs.
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { crc32 as portable } from "node:zlib";
import fc from "fast-check";
import { crc32 } from "./crc32.ts";

describe("CRC-32 (D15)", () => {
  it("is zlib's for any bytes and any checksum before them, on both sides of 4,096 bytes", () => {
    fc.assert(
      fc.property(
        fc.uint8Array({ minLength: 0, maxLength: 8_192, size: "max" }),
        fc.integer({ min: 0, max: 0xffff_ffff }),
        (bytes, before) => assert.equal(crc32(bytes, before), portable(bytes, before)),
      ),
    );
    for (const length of [0, 1, 4_095, 4_096, 4_097, 262_144]) {
      const bytes = Buffer.alloc(length, 0x5a);
      assert.equal(crc32(bytes), portable(bytes));
    }
  });

  it("reads only the slice that it is given, and does not change it", () => {
    const whole = Buffer.alloc(20_000, 7);
    whole.fill(9, 5_000, 15_000);
    assert.equal(crc32(whole.subarray(5_000, 15_000)), portable(Buffer.alloc(10_000, 9)));
    assert.equal(whole[4_999], 7);
    assert.equal(whole[5_000], 9);
  });

  it("of known text is the published check value", () => {
    assert.equal(crc32(Buffer.from("123456789")), 0xcbf4_3926);
  });
});
