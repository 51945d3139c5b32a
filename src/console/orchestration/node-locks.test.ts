// Tests node locks: all or none, holders, expiry, and interleavings against a model (spec 4.7, D7, E-04).
import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { ManualClock } from "#base/clock.ts";
import { type BatchLock, NodeLocks } from "./node-locks.ts";

const MINUTE_MS = 60_000;

test("a batch gets all of its nodes or none, and the refusal names who holds which (spec 4.7)", () => {
  const clock = new ManualClock();
  const locks = new NodeLocks(clock);
  assert.equal(locks.acquire("a", ["n3", "n1", "n1"], MINUTE_MS).isHeld, true);
  const second = locks.acquire("b", ["n2", "n3", "n1", "n4"], MINUTE_MS);
  assert.ok(!second.isHeld);
  const since = { actionId: "a", sinceWallMs: clock.wallMs() };
  assert.deepEqual(second.heldBy, [
    { nodeId: "n1", ...since },
    { nodeId: "n3", ...since },
  ]);
  assert.deepEqual(
    locks.held().map(({ nodeId }) => nodeId),
    ["n1", "n3"],
  );
  assert.equal(locks.acquire("b", ["n2", "n4"], MINUTE_MS).isHeld, true);
});

test("nodes are given back one by one or all at once, and twice does no harm", () => {
  const locks = new NodeLocks(new ManualClock());
  const batch = locks.acquire("a", ["n1", "n2", "n3"], MINUTE_MS);
  assert.ok(batch.isHeld);
  batch.release("n2");
  assert.equal(locks.holder("n2"), undefined);
  assert.equal(locks.acquire("b", ["n2"], MINUTE_MS).isHeld, true);
  batch.release();
  batch.release();
  assert.deepEqual(
    locks.held().map(({ nodeId, actionId }) => [nodeId, actionId]),
    [["n2", "b"]],
  );
});

test("a lock ends with its lease, not before, whatever the wall clock does; its late release leaves the next holder's alone", () => {
  const clock = new ManualClock();
  const locks = new NodeLocks(clock);
  const first = locks.acquire("a", ["n1"], MINUTE_MS);
  assert.ok(first.isHeld);
  clock.jumpWall(24 * 3_600_000);
  clock.advance(MINUTE_MS - 1);
  assert.equal(locks.acquire("b", ["n1"], MINUTE_MS).isHeld, false);
  clock.advance(1);
  assert.equal(locks.acquire("b", ["n1"], MINUTE_MS).isHeld, true);
  first.release();
  assert.equal(locks.holder("n1")?.actionId, "b");
});

type Step =
  | { readonly kind: "acquire"; readonly nodes: readonly string[]; readonly leaseMs: number }
  | { readonly kind: "release"; readonly which: number }
  | { readonly kind: "wait"; readonly ms: number };

const step: fc.Arbitrary<Step> = fc.oneof(
  fc.record({
    kind: fc.constant("acquire" as const),
    nodes: fc.array(fc.constantFrom("n1", "n2", "n3", "n4", "n5"), { minLength: 1, maxLength: 5 }),
    leaseMs: fc.constantFrom(10, 1_000),
  }),
  fc.record({ kind: fc.constant("release" as const), which: fc.nat(20) }),
  fc.record({ kind: fc.constant("wait" as const), ms: fc.constantFrom(5, 10, 600) }),
);

test("any interleaving of batches: no node has two holders, none leaks, and the model agrees on who got what (E-04)", () => {
  fc.assert(
    fc.property(fc.array(step, { maxLength: 60 }), (steps) => {
      const clock = new ManualClock();
      const locks = new NodeLocks(clock);
      /** Every granted batch: its nodes, and when it ends. */
      const granted: { nodes: Set<string>; endsMs: number; lock: BatchLock }[] = [];
      const live = (): typeof granted => granted.filter(({ endsMs }) => clock.steadyMs() < endsMs);
      for (const [at, each] of steps.entries()) {
        if (each.kind === "wait") clock.advance(each.ms);
        else if (each.kind === "release") {
          const batch = granted[each.which % Math.max(1, granted.length)];
          if (batch?.lock.isHeld !== true) continue;
          batch.lock.release();
          batch.endsMs = 0;
        } else {
          const isFree = !live().some(({ nodes }) => each.nodes.some((node) => nodes.has(node)));
          const lock = locks.acquire(`${at}`, each.nodes, each.leaseMs);
          assert.equal(lock.isHeld, isFree);
          if (lock.isHeld) {
            granted.push({ nodes: new Set(each.nodes), endsMs: clock.steadyMs() + each.leaseMs, lock });
          }
        }
        const expected = live().flatMap(({ nodes }) => [...nodes]);
        assert.deepEqual(
          locks.held().map(({ nodeId }) => nodeId),
          expected.toSorted(),
        );
      }
    }),
    { numRuns: 500 },
  );
});
