// Visits that are kept at a door: one network has a part of them.
import assert from "node:assert/strict";
import { test } from "node:test";
import { type KeptVisit, VISITS_KEPT, VISITS_KEPT_PER_NETWORK, visitToDrop } from "./visit-room.ts";

test("a network with its part of the visits gives up its own oldest, and others theirs only when all are full", () => {
  const kept = new Map<string, KeptVisit>([["other", { network: "b", usedMs: 0 }]]);
  for (let at = 0; at < VISITS_KEPT_PER_NETWORK; at++) {
    assert.equal(visitToDrop(kept, "a"), undefined);
    kept.set(`a${at}`, { network: "a", usedMs: 100 - at });
  }
  assert.equal(visitToDrop(kept, "a"), `a${VISITS_KEPT_PER_NETWORK - 1}`);
  assert.equal(visitToDrop(kept, "b"), undefined);
  for (let at = kept.size; at < VISITS_KEPT; at++) kept.set(`n${at}`, { network: `n${at}`, usedMs: 200 });
  assert.equal(visitToDrop(kept, "c"), "other");
});
