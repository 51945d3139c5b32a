// Tests that a node with thousands of moves hears of them in few statements: on PostgreSQL each one is a journey.
import assert from "node:assert/strict";
import { test } from "node:test";
import { movesOf } from "./root-move-commands.ts";

test("a node in which thousands of moves wait to be confirmed hears of all with few statements", () => {
  const moves = Array.from({ length: 3_000 }, (_, at) => ({
    value: JSON.stringify({
      owner: `u${at}@x.de`,
      moveId: `m${at}`,
      source: "a",
      target: "b",
      state: "switched",
    }),
  }));
  const caller = { fsId: "a", epoch: 1, speaker: { kind: "mock" } } as const;
  const now = { wallMs: 1, isLive: () => true, renew: () => undefined, placementWaitMs: () => 0 };
  const plan = movesOf({ ...now, holdPlacement: () => undefined }, caller);
  let statements = 0;
  let step = plan.next();
  while (step.done !== true) {
    statements++;
    const { sql } = step.value;
    const nodes = [
      { fs_id: "a", epoch: 1n, address: "a:1" },
      { fs_id: "b", epoch: 1n, address: "b:1" },
    ];
    const rows = sql.includes("LIKE") ? moves : sql.includes("FROM nodes") ? nodes : [];
    step = plan.next({ rows, changes: 0 });
  }
  assert.ok(statements <= 5, String(statements));
  assert.equal(step.value.length, 3_000);
  assert.equal(step.value[0]?.otherAddress, "b:1");
});
