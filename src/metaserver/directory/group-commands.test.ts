// Tests how many statements the store needs to forget people: on PostgreSQL each one is a journey.
import assert from "node:assert/strict";
import { test } from "node:test";
import type { SqlAnswer, SqlAsk } from "#metaserver/sql/sql-plan.ts";
import { changeGroups } from "./group-commands.ts";

const PEOPLE = 50_000;

function answer({ sql }: SqlAsk): SqlAnswer {
  if (sql.startsWith("SELECT COUNT")) return { rows: [{ count: BigInt(PEOPLE) }], changes: 0 };
  if (!sql.includes("LIKE")) return { rows: [], changes: 0 };
  const people = Array.from({ length: PEOPLE }, (_, at) => ({
    value: JSON.stringify({ username: `u${at}@example.com`, issuedMs: 1, seenMs: at, values: [] }),
  }));
  return { rows: people, changes: 0 };
}

test("a newcomer beyond the limit has the thousand forgotten that were not seen for longest, with few statements", () => {
  const record = { username: "new@example.com", issuedMs: 2, seenMs: PEOPLE, values: [] };
  const plan = changeGroups({ kind: "person", record });
  const asked: SqlAsk[] = [];
  for (let step = plan.next(); step.done !== true; step = plan.next(answer(step.value)))
    asked.push(step.value);
  const forgotten = asked.filter(({ sql }) => sql.startsWith("DELETE")).flatMap(({ values }) => values);
  assert.deepEqual(
    forgotten,
    Array.from({ length: 1_000 }, (_, at) => `group_claims:u${at}@example.com`),
  );
  assert.ok(asked.length <= 15, String(asked.length));
});
