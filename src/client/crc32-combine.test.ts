// Tests that checksums of parts join to that of the whole.
import assert from "node:assert/strict";
import { test } from "node:test";
import { crc32 } from "node:zlib";
import fc from "fast-check";
import { crc32Combine } from "./crc32-combine.ts";

test("the checksum of two ranges is that of both together, empty ones too", () => {
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 3_000 }), fc.uint8Array({ maxLength: 3_000 }), (first, second) => {
      const whole = crc32(Buffer.concat([first, second]));
      assert.equal(crc32Combine(crc32(first), crc32(second), second.length), whole);
    }),
  );
});
