// Tests of the removal of what is detached: one root's failures hold up no other, and are tried again by themselves.
import assert from "node:assert/strict";
import { test } from "node:test";
import { setImmediate as turn } from "node:timers/promises";
import { ManualClock } from "#base/clock.ts";
import { silentLogger } from "#base/log.ts";
import { ROOT_STRIDE } from "#storage/contract/inode.ts";
import { MAY_BE_PURGED } from "#storage/metadata/moved-roots.ts";
import { RowCache } from "#storage/shared/row-cache.ts";
import { internal, unavailable } from "#storage/shared/writer-refusals.ts";
import { DETACHING_ROOTS, PURGE_MS, PURGE_PAUSE_MAX_MS, PurgeTurns } from "./purge-turns.ts";

interface Root {
  /** Numbers of what is detached. */
  readonly ids: Set<number>;
  /** Those that the database refuses. */
  readonly odd: Set<number>;
  tries: number;
}

/** Turns over the given roots, by number. */
function turnsOver(roots: Readonly<Record<number, Root>>, failure: Error = internal("a row is odd")) {
  const clock = new ManualClock();
  const warnings: string[] = [];
  const newest = ({ ids }: Root): number => Math.max(0, ...ids);
  const turns = new PurgeTurns({
    detaching: () =>
      Object.entries(roots)
        .map(([number, root]) => ({ number: Number(number), newest: newest(root) }))
        .filter((detaching) => detaching.newest > 0),
    // A root that has left, of which rows are still here, has no owner.
    roots: {
      withNumber: (number) =>
        number === 1 ? undefined : { owner: `${number}`, number, rootId: "", epoch: 1 },
    },
    writer: {
      purgeSlice: async (owner, cursor) => {
        const { ids, odd } = roots[Number(owner)] ?? assert.fail();
        const next = cursor.next((below) => {
          const id = Math.max(0, ...[...ids].filter((other) => other < below));
          return id > 0 ? { id, inodeId: id, contentId: null } : undefined;
        });
        if (next === undefined) return false;
        if (odd.has(next.id)) {
          (roots[Number(owner)] ?? assert.fail()).tries++;
          throw failure;
        }
        return ids.delete(next.id);
      },
    },
    purged: () => undefined,
    clock,
    logger: { ...silentLogger, warn: (event) => warnings.push(event) },
  });
  const pass = async (timeMs = PURGE_MS): Promise<void> => {
    for (let ms = 0; ms < timeMs; ms += PURGE_MS) {
      clock.advance(PURGE_MS);
      await turn();
    }
  };
  return { turns, pass, warnings };
}

/** A root with so much that is detached. */
const root = (count: number, ...odd: readonly number[]): Root => ({
  ids: new Set(Array.from({ length: count }, (_, at) => at + 1)),
  odd: new Set(odd),
  tries: 0,
});
const left = ({ ids }: Root): readonly number[] => [...ids];

test("a pass removes all that is detached, past roots that have left and past those that fail", async () => {
  const roots = { 1: root(3), 2: root(1, 1), 3: root(40), 4: root(1) };
  const { turns, pass, warnings } = turnsOver(roots);
  await pass();
  assert.deepEqual([left(roots[3]), left(roots[4])], [[], []]);
  assert.deepEqual([roots[1].ids.size, roots[2].tries, warnings.length], [3, 1, 1]);
  await turns.stop();
});

test("what cannot be removed keeps nothing of its root, older or newer, and goes once it can", async () => {
  const roots = { 2: root(40, 40, 39, 20) };
  const { turns, pass } = turnsOver(roots);
  await pass();
  assert.deepEqual(left(roots[2]), [20, 39, 40]);
  await pass(PURGE_PAUSE_MAX_MS);
  roots[2].ids.add(41);
  await pass();
  assert.deepEqual(left(roots[2]), [20, 39, 40]);
  roots[2].odd.clear();
  await pass(PURGE_PAUSE_MAX_MS);
  assert.deepEqual(left(roots[2]), []);
  await turns.stop();
});

test("much that is detached while a root waits for what is odd goes at once", async () => {
  const roots = { 2: root(1, 1) };
  const { turns, pass } = turnsOver(roots);
  await pass(10 * PURGE_PAUSE_MAX_MS);
  for (let id = 2; id <= 100; id++) roots[2].ids.add(id);
  await pass();
  assert.deepEqual(left(roots[2]), [1]);
  await turns.stop();
});

test("several in a row that cannot be removed end a turn, and the next one goes on behind them", async () => {
  const roots = { 2: root(40, ...Array.from({ length: 39 }, (_, at) => at + 2)) };
  const { turns, pass } = turnsOver(roots);
  await pass();
  assert.equal(roots[2].tries, 16);
  await pass(PURGE_PAUSE_MAX_MS);
  assert.equal(roots[2].ids.has(1), false);
  await turns.stop();
});

test("a failure that is not for a row's sake is no reason to pass it over", async () => {
  const roots = { 2: root(2, 2) };
  const { turns, pass } = turnsOver(roots, unavailable("the database does not answer"));
  await pass(PURGE_PAUSE_MAX_MS);
  assert.deepEqual(left(roots[2]), [1, 2]);
  await turns.stop();
});

test("what failed is tried again by itself, after pauses that grow to a minute", async () => {
  const roots = { 2: root(2, 1, 2) };
  for (const failure of [internal("a row is odd"), unavailable("the database does not answer")]) {
    roots[2].tries = 0;
    const { turns, pass } = turnsOver(roots, failure);
    await pass(10 * PURGE_PAUSE_MAX_MS);
    const tries = roots[2].tries / (failure.code === "INTERNAL" ? 2 : 1);
    assert.ok(tries > 10 && tries < 20, `${tries} tries`);
    await turns.stop();
  }
});

test("what is detached is found by an index, however much of it there is", () => {
  const cache = new RowCache(":memory:", 0);
  const next = "SELECT id, inode_id AS inodeId, content_id AS contentId FROM purging";
  for (const sql of [
    DETACHING_ROOTS,
    `${next} WHERE ${MAY_BE_PURGED} AND coalesce(inode_id, content_id) / ${ROOT_STRIDE} = 1 AND id < 9 ORDER BY id DESC LIMIT 1`,
  ]) {
    const plan = cache.preparePlain(`EXPLAIN QUERY PLAN ${sql}`).all() as { readonly detail: string }[];
    const ofPurging = plan.map(({ detail }) => detail).filter((detail) => detail.includes("purging"));
    assert.ok(
      ofPurging.length > 0 &&
        ofPurging.every((detail) =>
          /INDEX purging_by_root \(<expr>=\?( AND rowid<\?| AND id<\?)?\)/.test(detail),
        ),
      JSON.stringify(plan),
    );
    assert.ok(!plan.some(({ detail }) => detail.includes("TEMP B-TREE")), JSON.stringify(plan));
  }
  cache.close();
});
