// Tests of the comparison of quota counters with the trees (decision D16, A-13, A-17).
import assert from "node:assert/strict";
import { test } from "node:test";
import { ManualClock } from "#base/clock.ts";
import { GroveError } from "#base/errors.ts";
import { DRIFT_CHECK_INTERVAL_MS } from "#base/limits.ts";
import { type Logger, silentLogger } from "#base/log.ts";
import type { Resolution } from "#storage/storage.ts";
import { DriftWatch } from "./drift-watch.ts";

test("drift is summed over the roots and told; a root that cannot be read is told and stops neither the rest nor the node (A-13, A-17)", async () => {
  const events: string[] = [];
  const log: Logger = {
    ...silentLogger,
    error: (event, fields) => events.push(`${event} ${String(fields?.["user"])}`),
  };
  const sizes: Record<string, [counter: number, tree: number] | undefined> = {
    "a@example.com": [100, 90],
    "c@example.com": [50, 60],
  };
  const resolve = (owner: string): Resolution => {
    const found = sizes[owner];
    if (found === undefined) throw new GroveError("CORRUPT", "the database of this node is damaged");
    const [liveBytes, sizeBytes] = found;
    return { root: { usage: { liveBytes } }, chain: [{ sizeBytes }] } as unknown as Resolution;
  };
  const clock = new ManualClock();
  const owners = ["a@example.com", "b@example.com", "c@example.com"];
  const watch = new DriftWatch({ storage: { resolve }, owners: () => owners, clock, log });
  assert.equal(watch.driftBytes, 20);
  const found = [
    "quota_drift a@example.com",
    "quota_drift_unknown b@example.com",
    "quota_drift c@example.com",
  ];
  assert.deepEqual(events, found);

  sizes["a@example.com"] = [90, 90];
  clock.advance(DRIFT_CHECK_INTERVAL_MS);
  assert.equal(watch.driftBytes, 10);
  watch.stop();
  clock.advance(DRIFT_CHECK_INTERVAL_MS);
  assert.equal(events.length, found.length + 2);
});
