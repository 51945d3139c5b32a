// The exact words of the refusal for the disk's reserve.
import assert from "node:assert/strict";
import { test } from "node:test";
import { DISK_RESERVE_BYTES } from "./limits.ts";
import { reserveText } from "./refusal-texts.ts";

const refusal = (
  writeBytes: bigint,
  usableBytes: bigint,
  reserveBytes: bigint = DISK_RESERVE_BYTES,
): string => reserveText({ writeBytes, usableBytes, reserveBytes });

test("the refusal has the words of spec 7 with both numbers", () => {
  assert.equal(
    refusal(4_000_000n, 7n),
    "fileserver storage limit reached: cannot write 4000000 bytes (usable free space: 7 bytes, 20 GiB reserved for system safety)",
  );
  assert.equal(
    refusal(1n, 0n),
    "fileserver storage limit reached: cannot write 1 bytes (usable free space: 0 bytes, 20 GiB reserved for system safety)",
  );
});

test("a reserve other than 20 GiB prints its own amount (spec 7)", () => {
  assert.match(refusal(1n, 0n, 2n ** 30n), /, 1 GiB reserved for system safety\)$/);
  assert.match(refusal(1n, 0n, 1_000_000n), /, 1000000 bytes reserved for system safety\)$/);
  assert.match(refusal(1n, 0n, 0n), /, 0 bytes reserved for system safety\)$/);
});
