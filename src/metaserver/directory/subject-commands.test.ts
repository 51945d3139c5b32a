// How many statements it takes to rebind many addresses: a command has seconds for all of them.
import assert from "node:assert/strict";
import { test } from "node:test";
import type { SqlAsk } from "#metaserver/sql/sql-plan.ts";
import type { Rebinding } from "./subject.ts";
import { rebindSubjects } from "./subject-commands.ts";

test("a cluster's users go over to another provider by a few statements of many rows", () => {
  const rebindings = Array.from({ length: 50_000 }, (_, at): Rebinding => {
    const from = { issuer: "old.example.com", subject: String(at) };
    return { username: `u${at}@x.de`, from, to: { ...from, issuer: "new.example.com" } };
  });
  const plan = rebindSubjects({ wallMs: 1 }, rebindings);
  const asks: SqlAsk[] = [];
  let step = plan.next();
  while (step.done !== true) {
    asks.push(step.value);
    const isUpdate = step.value.sql.startsWith("UPDATE");
    step = plan.next({ rows: [], changes: isUpdate ? (step.value.values.length - 1) / 5 : 0 });
  }
  assert.equal(asks.length, 101);
  // Each database takes at most so many values in one statement.
  assert.ok(asks.every(({ values }) => values.length < 32_766));
});
