// Tests of repeated drops: number, pauses, and the end of retries.
import assert from "node:assert/strict";
import { test } from "node:test";
import { ManualClock } from "#base/clock.ts";
import { type ErrorCode, GroveError } from "#base/errors.ts";
import { silentLogger } from "#base/log.ts";
import { DROP_RETRY_MAX_MS, DropRetries } from "./drop-retries.ts";

const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

function dropping(refusals: readonly ErrorCode[]) {
  const clock = new ManualClock();
  const state = { tries: 0, isDone: false };
  const drops = new DropRetries({ clock, logger: silentLogger });
  const drop = async (): Promise<void> => {
    const code = refusals[state.tries++];
    if (code !== undefined) throw new GroveError(code, "no");
  };
  const done = drops.run(drop).then(() => {
    state.isDone = true;
  });
  return { clock, state, done };
}

test("a drop that is refused for now is tried again, at growing intervals, until it is done", async () => {
  const refusals = Array.from({ length: 20 }, (_, index) => (index % 2 === 0 ? "OVERLOADED" : "INTERNAL"));
  const { clock, state, done } = dropping(refusals);
  await turn();
  assert.deepEqual([state.tries, state.isDone], [1, false]);
  clock.advance(49);
  await turn();
  assert.equal(state.tries, 1);
  clock.advance(1);
  await turn();
  assert.equal(state.tries, 2);
  clock.advance(99);
  await turn();
  assert.equal(state.tries, 2);
  while (state.tries <= refusals.length) {
    clock.advance(DROP_RETRY_MAX_MS);
    await turn();
  }
  await done;
  assert.equal(state.tries, refusals.length + 1);
});

test("after a failure of the store, and where nothing is left, it is not tried again", async () => {
  for (const code of ["STORAGE_FAILED", "NO_SUCH_UPLOAD"] as const) {
    const { state, done } = dropping([code]);
    await done;
    assert.equal(state.tries, 1);
  }
});
