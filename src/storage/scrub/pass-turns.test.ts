// Tests what a pass in turns has told when its process ends.
import assert from "node:assert/strict";
import { test } from "node:test";
import { ManualClock } from "#base/clock.ts";
import { silentLogger } from "#base/log.ts";
import { until } from "#testing/until.ts";
import { beginInTurns } from "./pass-turns.ts";

test("a pass that ends while a find is being kept has not passed it: the next process finds it again", async () => {
  const kept = Promise.withResolvers<void>();
  const told: unknown[] = [];
  const run = beginInTurns<number, string>(
    {
      name: "scrub",
      perSecond: 1e9,
      async *steps(from) {
        for (let place = from + 1; place <= 9; place++)
          yield { pass: place, cost: 1, found: place === 2 ? "a damage" : undefined };
      },
      clock: new ManualClock(),
      logger: silentLogger,
    },
    0,
    (message) => {
      if ("pass" in message) told.push(message.pass);
      if (message.kind !== "found") return undefined;
      told.push(message.found);
      return kept.promise;
    },
  );
  await until(() => told.includes("a damage"));
  run.stop();
  // The process that ends now has the place before the find.
  await new Promise(setImmediate);
  assert.deepEqual(told, [1, "a damage"]);
  kept.resolve();
  await run.ended;
  assert.deepEqual(told, [1, "a damage", 2, 2]);
});
