// Compares the placement rule with the words of D19 on random clusters.
import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { U64_MAX } from "#base/limits.ts";
import { bytesAboveReserve, chooseNode, type PlacementCandidate } from "./placement.ts";

const candidate: fc.Arbitrary<PlacementCandidate> = fc.record({
  fsId: fc.stringMatching(/^[a-z]{1,3}$/),
  live: fc.boolean(),
  draining: fc.boolean(),
  diskFreeBytes: fc.oneof(fc.bigInt(0n, 5n), fc.bigInt(U64_MAX - 2n, U64_MAX)),
  diskReserveBytes: fc.oneof(fc.bigInt(0n, 5n), fc.bigInt(U64_MAX - 2n, U64_MAX)),
  rootCount: fc.nat(2),
});

test("no live node that takes roots has more bytes above its reserve than the chosen one (D19)", () => {
  fc.assert(
    fc.property(fc.array(candidate), (nodes) => {
      const willing = nodes.filter(({ live, draining }) => live && !draining);
      const chosen = chooseNode(nodes);
      if (chosen === undefined) return willing.length === 0;
      return (
        willing.includes(chosen) &&
        willing.every((node) => bytesAboveReserve(node) <= bytesAboveReserve(chosen))
      );
    }),
  );
});

test("the order in which nodes are listed does not matter", () => {
  fc.assert(
    fc.property(fc.uniqueArray(candidate, { selector: ({ fsId }) => fsId }), (nodes) => {
      assert.equal(chooseNode(nodes), chooseNode(nodes.toReversed()));
    }),
  );
});

test("equal nodes are told apart by fewer roots, then by id", () => {
  const node = (fsId: string, rootCount: number): PlacementCandidate => ({
    fsId,
    live: true,
    draining: false,
    diskFreeBytes: 5n,
    diskReserveBytes: 5n,
    rootCount,
  });
  assert.equal(chooseNode([node("b", 1), node("c", 0), node("a", 1)])?.fsId, "c");
  assert.equal(chooseNode([node("b", 1), node("a", 1)])?.fsId, "a");
});
