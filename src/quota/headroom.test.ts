// Both edges of the quota rules, and their arithmetic up to and beyond 2^64.
import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { headroomBytes, mayCreate, mayWrite } from "./headroom.ts";

const U64 = 2n ** 64n - 1n;

test("a create is allowed one byte below the quota and refused at it and over it, even when empty (spec 4.6.1, T2)", () => {
  assert.equal(mayCreate(100n, 99n), true);
  assert.equal(mayCreate(100n, 100n), false);
  assert.equal(mayCreate(100n, 101n), false);
});

test("a write may fill the quota to the last byte, and not one more (spec 4.6.2, T2)", () => {
  assert.equal(mayWrite(100n, 40n, 60n), true);
  assert.equal(mayWrite(100n, 40n, 61n), false);
  assert.equal(mayWrite(100n, 100n, 0n), true);
  assert.equal(mayWrite(100n, 100n, 1n), false);
});

test("a root over its quota takes no write, not even an empty one (spec 4.6.2)", () => {
  assert.equal(mayWrite(100n, 101n, 0n), false);
  assert.equal(headroomBytes(100n, 101n), 0n);
});

test("sizes near 2^64 neither wrap nor round (spec 4.6.2)", () => {
  assert.equal(mayWrite(U64, U64, 1n), false);
  assert.equal(mayWrite(U64, U64 - 1n, 1n), true);
  assert.equal(mayWrite(U64, U64 - 1n, 2n), false);
  assert.equal(mayWrite(U64, 1n, U64), false);
  assert.equal(mayWrite(U64 - 1n, U64, 0n), false);
  assert.equal(headroomBytes(U64, 1n), U64 - 1n);
});

test("a write is allowed exactly when used + additional <= quota in unbounded arithmetic (spec 4.6.2)", () => {
  const edge = fc.bigInt({ min: 0n, max: 3n }).map((near) => U64 - near);
  const u64 = fc.oneof(fc.bigInt({ min: 0n, max: U64 }), fc.bigInt({ min: 0n, max: 5n }), edge);
  fc.assert(
    fc.property(u64, u64, u64, (quota, used, additional) => {
      assert.equal(mayWrite(quota, used, additional), used + additional <= quota);
      assert.equal(mayCreate(quota, used), used + 1n <= quota);
      const room = headroomBytes(quota, used);
      assert.ok(room >= 0n && room <= quota);
      if (used <= quota) assert.equal(used + room, quota);
    }),
    { numRuns: 2_000 },
  );
});
