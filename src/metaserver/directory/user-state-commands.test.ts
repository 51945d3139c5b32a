// Tests how many statements the store needs for decisions about users: on PostgreSQL each one is a journey.
import assert from "node:assert/strict";
import { test } from "node:test";
import type { UserState } from "#base/user-state.ts";
import { putUserStates } from "./user-state-commands.ts";

test("a thousand decisions cost the store some dozens of statements, not thousands", () => {
  const states = Array.from(
    { length: 1_000 },
    (_, at): UserState => ({
      username: `u${at}@example.com`,
      disabled: true,
      closesShares: false,
      version: 1,
      reason: "has left",
      setBy: "root@example.com",
      setAtMs: 1_790_000_000_000,
      tokensFromMs: 0,
      issuer: "",
      subject: "",
    }),
  );
  const plan = putUserStates(states);
  let statements = 0;
  for (let step = plan.next(); step.done !== true; step = plan.next({ rows: [], changes: 0 })) statements++;
  assert.ok(statements <= 40, String(statements));
});
