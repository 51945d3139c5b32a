// Both edges of the disk reserve, and the exact words of its refusal.
import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { DISK_RESERVE_BYTES } from "#base/limits.ts";
import { leavesReserve, reserveText, usableBytes } from "./reserve.ts";

const disk = (freeBytes: bigint, promisedBytes = 0n, reserveBytes: bigint = DISK_RESERVE_BYTES) => ({
  freeBytes,
  promisedBytes,
  reserveBytes,
});

test("free space at the reserve takes nothing, one byte above takes one (spec 4.6.3)", () => {
  assert.equal(leavesReserve(disk(DISK_RESERVE_BYTES - 1n), 0n), false);
  assert.equal(leavesReserve(disk(DISK_RESERVE_BYTES), 0n), false);
  assert.equal(leavesReserve(disk(DISK_RESERVE_BYTES + 1n), 0n), true);
  assert.equal(leavesReserve(disk(DISK_RESERVE_BYTES + 1n), 1n), true);
  assert.equal(leavesReserve(disk(DISK_RESERVE_BYTES + 1n), 2n), false);
});

test("what is promised to other writes is not usable (D16)", () => {
  assert.equal(leavesReserve(disk(DISK_RESERVE_BYTES + 100n, 60n), 40n), true);
  assert.equal(leavesReserve(disk(DISK_RESERVE_BYTES + 100n, 60n), 41n), false);
  assert.equal(usableBytes(disk(DISK_RESERVE_BYTES + 100n, 101n)), 0n);
});

test("the refusal has the words of spec 7 with both numbers", () => {
  assert.equal(
    reserveText(disk(DISK_RESERVE_BYTES + 7n), 4_000_000n),
    "fileserver storage limit reached: cannot write 4000000 bytes (usable free space: 7 bytes, 20 GiB reserved for system safety)",
  );
  assert.equal(
    reserveText(disk(5n), 1n),
    "fileserver storage limit reached: cannot write 1 bytes (usable free space: 0 bytes, 20 GiB reserved for system safety)",
  );
});

test("a reserve other than 20 GiB prints its own amount (spec 7)", () => {
  assert.match(reserveText(disk(0n, 0n, 2n ** 30n), 1n), /, 1 GiB reserved for system safety\)$/);
  assert.match(reserveText(disk(0n, 0n, 1_000_000n), 1n), /, 1000000 bytes reserved for system safety\)$/);
  assert.match(reserveText(disk(0n, 0n, 0n), 1n), /, 0 bytes reserved for system safety\)$/);
});

test("whatever is allowed leaves the reserve and all promises whole, and one byte more would not (spec 4.6.3)", () => {
  const size = fc.bigInt({ min: 0n, max: 2n ** 64n - 1n });
  fc.assert(
    fc.property(size, size, size, (free, promised, reserve) => {
      const room = { freeBytes: free, promisedBytes: promised, reserveBytes: reserve };
      const usable = usableBytes(room);
      assert.ok(usable >= 0n);
      if (usable > 0n) assert.equal(free - usable, reserve + promised);
      if (leavesReserve(room, usable)) assert.ok(free > reserve);
      assert.equal(leavesReserve(room, usable + 1n), false);
    }),
    { numRuns: 2_000 },
  );
});
