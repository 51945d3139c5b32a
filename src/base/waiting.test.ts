// Waiting on the steady clock: for exactly the given time, and no longer than a signal or the work takes.
import assert from "node:assert/strict";
import { test } from "node:test";
import { setImmediate as turn } from "node:timers/promises";
import { ManualClock } from "./clock.ts";
import { pause, waitAtMost } from "./waiting.ts";

/** Whether a promise has resolved, at any time of asking. */
function watched(promise: Promise<unknown>): () => Promise<boolean> {
  let isOver = false;
  void promise.then(() => {
    isOver = true;
  });
  return async () => {
    await turn();
    return isOver;
  };
}

test("a pause ends when its time is over, not before", async () => {
  const clock = new ManualClock();
  const isOver = watched(pause(clock, 100));
  clock.advance(99);
  assert.equal(await isOver(), false);
  clock.advance(1);
  assert.equal(await isOver(), true);
});

test("a pause ends with its signal, also with one that was aborted before", async () => {
  const clock = new ManualClock();
  const abort = new AbortController();
  const isOver = watched(pause(clock, 100, abort.signal));
  assert.equal(await isOver(), false);
  abort.abort();
  assert.equal(await isOver(), true);
  assert.equal(await watched(pause(clock, 100, abort.signal))(), true);
});

test("work is waited for until it is done or its time is over; what it rejects with is passed on", async () => {
  const clock = new ManualClock();
  const quick = Promise.withResolvers<void>();
  const isQuickOver = watched(waitAtMost(clock, 100, quick.promise));
  const isSlowOver = watched(waitAtMost(clock, 100, new Promise(() => undefined)));
  quick.resolve();
  assert.equal(await isQuickOver(), true);
  clock.advance(99);
  assert.equal(await isSlowOver(), false);
  clock.advance(1);
  assert.equal(await isSlowOver(), true);
  await assert.rejects(waitAtMost(clock, 100, Promise.reject(new Error("broken"))), /broken/);
});
