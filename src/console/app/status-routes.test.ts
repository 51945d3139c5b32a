// Tests the console's status routes, and their access rules (decisions D12, D18).
import assert from "node:assert/strict";
import { test } from "node:test";
import { ManualClock } from "#base/clock.ts";
import { ConsoleMetrics } from "#console/http/console-metrics.ts";
import { type Obstacle, statusRoutes } from "#console/routes/status-routes.ts";
import { startApp } from "./app.fixture.ts";

/** A proxied request does not count as one of this machine. */
const REMOTE = { via: "1.1 proxy" };

test("/ready is 503 with reasons; what the system says of them is not for visitors (D12)", async (t) => {
  const obstacles: (Obstacle | undefined)[] = [undefined];
  const metrics = new ConsoleMetrics(new ManualClock());
  const under = await startApp((app) =>
    statusRoutes(app, {
      metrics,
      metricsToken: "s3cret",
      settings: () => assert.fail("not asked"),
      unready: [() => obstacles[0], () => undefined],
    }),
  );
  t.after(async () => {
    metrics.close();
    await under.close();
  });
  const ready = await under.ask("/ready", { headers: REMOTE });
  assert.deepEqual([ready.status, ready.json], [200, { ready: true, reasons: [] }]);
  obstacles[0] = { text: "alerts cannot be written", detail: "EACCES: '/home/bob/grove-admin'" };
  const whole = "alerts cannot be written: EACCES: '/home/bob/grove-admin'";
  for (const [answer, reason] of [
    [await under.ask("/ready", { headers: REMOTE }), "alerts cannot be written"],
    [await under.ask("/ready"), whole],
    [await under.askAsOperator("/ready", { headers: REMOTE }), whole],
    [await under.ask("/ready", { headers: { ...REMOTE, authorization: "Bearer s3cret" } }), whole],
  ] as const) {
    assert.deepEqual([answer.status, answer.json], [503, { ready: false, reasons: [reason] }]);
  }
});
