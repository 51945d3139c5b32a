// Tests the text about a rollout that ended half way: each node's state, and the ways forward and back.
import assert from "node:assert/strict";
import { test } from "node:test";
import type { RolloutRecord } from "#wire/webapi/rollout.ts";
import { standText } from "./rollout-end.ts";

type Node = RolloutRecord["nodes"][number];

const node = (name: string, state: Node["state"], more: Partial<Node> = {}): Node =>
  ({ node_name: name, state, changed: true, ...more }) as Node;
const record = (fields: Partial<RolloutRecord>): RolloutRecord =>
  ({ state: "cancelled", direction: "forward", can_go_back: true, ...fields }) as RolloutRecord;
const half = [
  node("n1", "succeeded", { step: "gate" }),
  node("n2", "cancelled", { step: "build" }),
  node("n3", "skipped", { changed: false }),
  node("n4", "skipped", { changed: false }),
];

test("a rollout that was stopped half way says which nodes have it, where the others stand, how to go on and how to undo it", () => {
  assert.equal(
    standText(record({ nodes: half })),
    "When it ended, it was done on n1, it stood at the step “build” on n2 and nothing had changed on n3 and n4. " +
      "Nothing of it goes on by itself. To go on, begin the same rollout again; to undo it, go back on n1 and n2.",
  );
});

test("one that has changed nothing cannot be undone, and one that went back half way goes on from the rollout before", () => {
  const none = [node("n1", "failed", { changed: false, step: "check" })];
  assert.match(standText(record({ state: "failed", nodes: none, can_go_back: false })), /again\.$/);
  const back = standText(record({ state: "interrupted", direction: "back", nodes: half }));
  assert.match(back, /To go on, go back from the rollout before again\.$/);
});

test("nothing is said while it runs, when all went well, and once it was gone back from", () => {
  for (const state of ["planned", "running", "succeeded"] as const) {
    assert.equal(standText(record({ state, nodes: half })), "");
  }
  assert.equal(standText(record({ nodes: half, back_by: "other" })), "");
});
