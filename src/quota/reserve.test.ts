// Both edges of the disk reserve.
import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { DISK_RESERVE_BYTES } from "#base/limits.ts";
import { leavesReserve, usableBytes } from "./reserve.ts";

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
