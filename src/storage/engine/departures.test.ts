// Tests of what a process of the shared engine answers about a root that it freezes, over repeated calls.
import assert from "node:assert/strict";
import { test } from "node:test";
import { setImmediate as turn } from "node:timers/promises";
import type { LocalMove } from "#storage/contract/root-move.ts";
import { Departures, type DeparturesDeps } from "./departures.ts";

const OWNER = "ada@example.com";
const MOVE = { moveId: "01MOVE", owner: OWNER, number: 7, address: "", head: "" };
const ROOT = { owner: OWNER, number: 7, rootId: "01ROOT", epoch: 3 };

/** A departure of one root; the writer's steps end when the test says so. */
async function departing() {
  const stored = { state: "copying" as LocalMove["state"], liveBytes: 1 };
  const steps: { readonly state: string | undefined; readonly end: PromiseWithResolvers<void> }[] = [];
  const rig = { isSlow: false };
  const departures = new Departures({
    commits: {
      begin: () => Promise.resolve(true),
      find: () => Promise.resolve({ ...MOVE, state: stored.state }),
      set: async (_: unknown, state: "copying" | "frozen") => void (stored.state = state),
      head: () => Promise.resolve({ owner: OWNER, liveBytes: stored.liveBytes }),
    },
    roots: { of: () => ROOT, withNumber: () => ROOT },
    writer: {
      setMove: (_: number, state: string | undefined) => {
        const end = Promise.withResolvers<void>();
        steps.push({ state, end });
        if (!rig.isSlow) end.resolve();
        return end.promise;
      },
    },
  } as unknown as DeparturesDeps);
  await departures.beginExport(MOVE);
  rig.isSlow = true;
  steps.length = 0;
  return { departures, stored, steps, rig };
}

/** A call with whether it has been answered. */
function watched<T>(call: Promise<T>): { readonly call: Promise<T>; isAnswered: boolean } {
  const one = { call, isAnswered: false };
  const noted = (): void => {
    one.isAnswered = true;
  };
  call.then(noted, noted);
  return one;
}

async function manyTurns(): Promise<void> {
  for (let count = 0; count < 50; count++) await turn();
}

test("a freeze that is asked for again waits as the first does until changes under way are committed", async () => {
  const { departures, stored, steps } = await departing();
  const first = watched(departures.freeze(MOVE.moveId));
  await manyTurns();
  const second = watched(departures.freeze(MOVE.moveId));
  await manyTurns();
  assert.deepEqual([first.isAnswered, second.isAnswered], [false, false]);
  stored.liveBytes = 2;
  for (const { end } of steps) end.resolve();
  assert.equal((await first.call).liveBytes, 2);
  assert.equal((await second.call).liveBytes, 2);
});

test("a freeze whose writer refused is made by the next call", async () => {
  const { departures, steps, rig } = await departing();
  const first = watched(departures.freeze(MOVE.moveId));
  await manyTurns();
  for (const { end } of steps) end.reject(new Error("the disk is full"));
  await assert.rejects(first.call, /the disk is full/);
  rig.isSlow = false;
  await departures.freeze(MOVE.moveId);
  assert.deepEqual(
    steps.map(({ state }) => state),
    ["frozen", "frozen"],
  );
});
