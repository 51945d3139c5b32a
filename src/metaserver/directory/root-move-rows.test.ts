// Tests how many statements the store needs for roots that have moved: on PostgreSQL each one is a journey.
import assert from "node:assert/strict";
import { test } from "node:test";
import type { SqlAnswer, SqlAsk } from "#metaserver/sql/sql-plan.ts";
import { findCopies, movingOwners, noteDepartures, ROOT_MOVES_MAX } from "./root-move-rows.ts";

const COPIES = 1_200;
const roots = Array.from({ length: COPIES }, (_, at) => ({ rootId: `R${at}`, arrival: "" }));
const conflicts = roots.map(({ rootId }, at) => ({
  owner: `u${at}@example.com`,
  heldRootId: rootId,
  recordedRootId: rootId,
  recordedFsId: "b",
}));

/** The statements, and the owners of the copies that are found; so many other roots are under a move. */
function found(moves: readonly string[]): { asked: SqlAsk[]; owners: string[] } {
  const answer = ({ sql, values }: SqlAsk): SqlAnswer => {
    const change = sql.startsWith("INSERT") ? 1 : 0;
    if (sql.includes("LIKE"))
      return { rows: moves.map((owner) => ({ value: JSON.stringify({ owner }) })), changes: 0 };
    const notes = values.map((key) => ({ key, value: "01M" }));
    return { rows: sql.includes(" IN ") ? notes : [], changes: change };
  };
  const asked: SqlAsk[] = [];
  const plan = findCopies({ wallMs: 1 }, "a", { roots, conflicts, moving: movingOwners() });
  let step = plan.next();
  for (; step.done !== true; step = plan.next(answer(step.value))) asked.push(step.value);
  return { asked, owners: step.value.map(({ owner }) => owner) };
}

test("copies that a list brings back cost the store one look at its moves, and one row each", () => {
  const { asked, owners } = found(["u7@example.com"]);
  assert.equal(owners.length, COPIES - 1);
  assert.ok(!owners.includes("u7@example.com"), "a root that is under a move stays as it is");
  assert.equal(asked.filter(({ sql }) => sql.includes("LIKE")).length, 1);
  assert.ok(asked.length <= COPIES + 5, String(asked.length));
});

test("no more moves are made of copies than a cluster may have", () => {
  const moves = Array.from({ length: ROOT_MOVES_MAX - 3 }, (_, at) => `other${at}@example.com`);
  assert.equal(found(moves).owners.length, 3);
});

test("what a node tells of roots that have left it costs the store a few statements for hundreds of them", () => {
  const told = roots.map(({ rootId }, at) => ({ rootId, target: at % 2 === 0 ? "b" : "c", moveId: "02M" }));
  // The same root again, by an earlier move.
  const plan = noteDepartures("a", [...told, { rootId: "R1199", target: "d", moveId: "01M" }]);
  const asked: SqlAsk[] = [];
  for (let step = plan.next(); step.done !== true; ) {
    const { sql, values } = step.value;
    asked.push(step.value);
    const isPlaces = sql.includes("FROM roots");
    const rows = isPlaces ? values.map((root_id) => ({ root_id, fs_id: "a" })) : [];
    step = plan.next({ rows, changes: 0 });
  }
  assert.ok(asked.length <= 30, String(asked.length));
  const noted = asked.flatMap(({ sql, values }) => (sql.startsWith("INSERT INTO settings") ? values : []));
  assert.equal(noted.length, 2 * COPIES);
  assert.equal(noted.at(-1), JSON.stringify({ from: "a", to: "c", moveId: "02M" }));
  const wanted = asked.flatMap(({ sql, values }) => (sql.includes("unlisted_nodes") ? values : []));
  assert.deepEqual(new Set(wanted.filter((value) => typeof value === "string")), new Set(["b", "c"]));
});
