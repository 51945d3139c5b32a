// Tests of plans by which roots move: room is never exceeded, and a rebalancing brings nodes closer together.
import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { planDrain, planDrainToEngine, planRebalance, type SizedNode } from "./move-plan.ts";
import { bytesAboveReserve } from "./placement.ts";
import type { RootSize } from "./root-move.ts";

const node = (fsId: string, free: number, facts: Partial<SizedNode> = {}): SizedNode => ({
  fsId,
  live: true,
  draining: false,
  diskTotalBytes: 1_000n,
  diskFreeBytes: BigInt(free),
  diskReserveBytes: 20n,
  rootCount: facts.roots?.length ?? 0,
  roots: [],
  ...facts,
});
const root = (owner: string, bytes: number): RootSize => ({ owner, bytes });

test("a drained node's roots go where most is free, the largest first, and never to a node that takes none", () => {
  const nodes = [
    node("a", 900),
    node("b", 320),
    node("c", 220),
    node("d", 999, { live: false }),
    node("e", 999, { draining: true }),
  ];
  const plan = planDrain("a", [root("u", 50), root("v", 250), root("w", 100)], nodes);
  assert.deepEqual(
    plan.moves.map(({ owner, source, target }) => `${owner} ${source} ${target}`),
    ["v a b", "w a c", "u a c"],
  );
  assert.deepEqual(plan.withoutRoom, []);
});

test("a root without room is named with the bytes that are missing; what fits beside it is planned", () => {
  const plan = planDrain("a", [root("u", 301), root("v", 300)], [node("a", 0), node("b", 320)]);
  assert.deepEqual(plan.withoutRoom, [{ owner: "u", bytes: 301, missingBytes: 1n }]);
  assert.deepEqual(plan.moves, [{ owner: "v", bytes: 300, source: "a", target: "b" }]);
  assert.deepEqual(planDrain("a", [root("u", 5)], [node("a", 0)]).withoutRoom, [
    { owner: "u", bytes: 5, missingBytes: 5n },
  ]);
  // Bytes on their way to a node are no room any more.
  const onTheWay = planDrain("a", [root("v", 300)], [node("b", 320)], new Map([["b", 1]]));
  assert.deepEqual(onTheWay.withoutRoom, [{ owner: "v", bytes: 300, missingBytes: 1n }]);
});

test("no plan of a drain fills a node beyond its reserve, and each root is planned or named once", () => {
  const sizes = fc.array(fc.nat(400), { maxLength: 12 });
  const frees = fc.array(fc.nat(900), { maxLength: 4 });
  fc.assert(
    fc.property(sizes, frees, (bytes, free) => {
      const roots = bytes.map((size, index) => root(`u${index}`, size));
      const nodes = free.map((left, index) => node(`n${index}`, left));
      const { moves, withoutRoom } = planDrain("away", roots, nodes);
      assert.equal(moves.length + withoutRoom.length, roots.length);
      for (const target of nodes) {
        const sum = moves
          .filter((one) => one.target === target.fsId)
          .reduce((all, one) => all + one.bytes, 0);
        assert.ok(BigInt(sum) <= bytesAboveReserve(target));
      }
    }),
  );
});

test("a rebalancing moves bytes from the fullest node to the emptiest, each root once", () => {
  const roots = [root("u", 300), root("v", 200), root("w", 100)];
  const moves = planRebalance([
    node("a", 120, { roots }),
    node("b", 920),
    node("c", 999, { draining: true }),
  ]);
  assert.deepEqual(
    moves.map(({ owner, source, target }) => `${owner} ${source} ${target}`),
    ["u a b", "w a b"],
  );
  assert.deepEqual(planRebalance([node("a", 500), node("b", 520)]), []);
  // A node that has not told the sizes keeps its roots.
  assert.deepEqual(planRebalance([node("a", 120, { roots: undefined }), node("b", 920)]), []);
});

test("nodes with the same share free are brought into balance by the number of roots, with the smallest ones", () => {
  const roots = [root("u", 9), root("v", 1), root("w", 1), root("x", 0)];
  const moves = planRebalance([node("a", 500, { roots }), node("b", 500)]);
  assert.deepEqual(moves.map(({ owner }) => owner).toSorted(), ["w", "x"]);
});

test("no rebalancing turns the balance around, moves a root twice, or proposes what the next one takes back", () => {
  const roots = fc.array(fc.nat(300), { maxLength: 8 });
  // Two nodes whose shares allow a move for the number's sake, and a third one that it leaves behind.
  const thirdNodeApart = [
    { free: 69, roots: [2, 2] },
    { free: 23, roots: [] },
    { free: 20, roots: [0] },
  ];
  const arbitrary = fc.array(fc.record({ free: fc.integer({ min: 20, max: 900 }), roots }), { maxLength: 4 });
  fc.assert(
    fc.property(arbitrary, (facts) => {
      const nodes = facts.map(({ free, roots: sizes }, index) =>
        node(`n${index}`, free, { roots: sizes.map((size, place) => root(`u${index}.${place}`, size)) }),
      );
      const moves = planRebalance(nodes);
      assert.equal(new Set(moves.map(({ owner }) => owner)).size, moves.length);
      const after = nodes.map((one) => {
        const come = moves.filter(({ target }) => target === one.fsId);
        const go = moves.filter(({ source }) => source === one.fsId);
        const change =
          go.reduce((all, { bytes }) => all + bytes, 0) - come.reduce((all, { bytes }) => all + bytes, 0);
        const kept = (one.roots ?? []).filter(({ owner }) => !go.some((move) => move.owner === owner));
        return {
          ...one,
          diskFreeBytes: one.diskFreeBytes + BigInt(change),
          roots: [...kept, ...come],
          rootCount: one.rootCount + come.length - go.length,
        };
      });
      const spread = (all: readonly SizedNode[]): number => {
        const free = all.map((one) => Number(bytesAboveReserve(one)));
        return Math.max(0, ...free) - Math.min(1_000, ...free);
      };
      assert.ok(spread(after) <= Math.max(50, spread(nodes)));
      assert.deepEqual(planRebalance(after), []);
    }),
    { numRuns: 2_000, examples: [[thirdNodeApart]] },
  );
});

test("no rebalancing for the number's sake puts a root on a node without room above its reserve", () => {
  const roots = [root("u", 5), root("v", 5), root("w", 5)];
  assert.deepEqual(planRebalance([node("a", 22, { roots }), node("b", 22)]), []);
  assert.equal(planRebalance([node("a", 22, { roots }), node("b", 25)]).length, 1);
});

test("a drain to the shared engine fills its nodes by numbers of roots, whatever their disks have free", () => {
  const roots = [root("u", 500), root("v", 400), root("w", 300)];
  const engine = { onEngine: true } as const;
  const nodes = [
    node("a", 900),
    { ...node("e1", 0), ...engine, rootCount: 1 },
    { ...node("e2", 0), ...engine },
  ];
  const { moves, withoutRoom } = planDrainToEngine("a", roots, nodes);
  assert.deepEqual(
    moves.map(({ owner, target }) => [owner, target]),
    [
      ["u", "e2"],
      ["v", "e1"],
      ["w", "e2"],
    ],
  );
  assert.deepEqual(withoutRoom, []);
  const dead = nodes.map((one) => ({ ...one, live: false }));
  assert.equal(planDrainToEngine("a", roots, dead).withoutRoom.length, 3);
});
