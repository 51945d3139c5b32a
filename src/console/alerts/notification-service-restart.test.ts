// What a restart keeps of sent notifications, and what is sent after it (decision D11).
import assert from "node:assert/strict";
import { test } from "node:test";
import type { Condition, Occurrence } from "./condition.ts";
import { diskCondition, nodeCondition, ServiceRun } from "./notification-service.fixture.ts";
import { NOTIFICATION_KEYS_MAX } from "./notification-service.ts";
import { storedNotifications } from "./tracked-alert.ts";

/** A run after its start-up hold, with every disk at 50 %. */
function started(options: ConstructorParameters<typeof ServiceRun>[0] = {}): ServiceRun {
  const run = new ServiceRun(options);
  run.run(60, () => [diskCondition("n1", 50)]);
  return run;
}

test("a restart forgets nothing that was told, and tells nothing twice (D11)", () => {
  const before = started();
  before.run(200, () => [diskCondition("n1", 90), diskCondition("n2", 97)]);
  before.service.acked("storage_warning:n1");
  const kept = storedNotifications.parse(JSON.parse(JSON.stringify(before.service.kept(before.now))));
  const after = new ServiceRun();
  after.service.restore(kept, { wallMs: before.now.wallMs, steadyMs: after.now.steadyMs });
  after.run(3_600, () => [diskCondition("n1", 90), diskCondition("n2", 97)]);
  assert.deepEqual(after.told(), []);
  assert.deepEqual(
    after.service.alerts(after.now).map(({ tracked }) => tracked.isAcked),
    [true, false],
  );
  after.run(4 * 3_600, () => [diskCondition("n1", 90), diskCondition("n2", 97)]);
  assert.equal(after.told().length, 1);
  assert.match(after.told()[0] ?? "", /repeat storage_warning:n2/);
  after.run(100, () => [diskCondition("n1", 10), diskCondition("n2", 10)]);
  assert.deepEqual(
    after
      .told()
      .slice(1)
      .map((line) => line.split(" ")[1]),
    ["over", "over"],
  );
});

test("a key that flaps says so to people, and goes on being held after a restart (D11)", () => {
  const run = started({ groupMs: 0 });
  const swinging = (second: number): Condition[] => [diskCondition("n1", second % 200 < 100 ? 90 : 10)];
  run.run(760, swinging);
  assert.deepEqual(
    run.told().map((line) => line.split(" ")[1]),
    ["raised", "over", "raised", "over", "raised", "over", "flapping"],
  );
  run.run(20, () => [diskCondition("n1", 90)]);
  const mutes = (of: ServiceRun): unknown[] => of.service.alerts(of.now).map(({ mutedBy }) => mutedBy);
  assert.deepEqual(mutes(run), ["flapping"]);
  const again = new ServiceRun({ groupMs: 0 });
  again.service.restore(storedNotifications.parse(run.service.kept(run.now)), again.now);
  again.run(1_795, () => [diskCondition("n1", 90)]);
  assert.deepEqual([mutes(again), again.told()], [["flapping"], []]);
  again.run(100, () => [diskCondition("n1", 10)]);
  assert.deepEqual(mutes(again), []);
});

test("a user's quota that was told before a restart, and of which nothing is heard after it, is over ten minutes later (D11)", () => {
  const before = started();
  before.run(60, () => [
    { key: "quota_exceeded:a@b.c", type: "quota_exceeded", level: "warning", value: 96, username: "a@b.c" },
  ]);
  const after = new ServiceRun();
  after.service.restore(storedNotifications.parse(before.service.kept(before.now)), after.now);
  after.run(599, () => [diskCondition("n1", 50)]);
  assert.deepEqual(after.told(), []);
  after.run(60, () => [diskCondition("n1", 50)]);
  assert.deepEqual(after.told(), ["630 over quota_exceeded:a@b.c warning"]);
});

test("a group that is heard of for the first time is kept over a restart only once it was told", () => {
  const run = started();
  run.run(20, () => [diskCondition("n1", 90)]);
  assert.deepEqual(run.service.kept(run.now), { alerts: [], groups: [], untold: [] });
  run.run(20, () => [diskCondition("n1", 90)]);
  const { alerts, groups } = run.service.kept(run.now);
  assert.deepEqual([alerts.length, groups.length], [1, 1]);
});

test("groups are the same in whatever order their labels are given, also after a restart", () => {
  const before = started({ groupBy: ["node_id", "alertname"] });
  before.run(60, () => [diskCondition("n1", 90)]);
  const after = new ServiceRun({ groupBy: ["alertname", "node_id"], repeatMs: 600_000 });
  after.service.restore(storedNotifications.parse(before.service.kept(before.now)), {
    ...after.now,
    wallMs: before.now.wallMs,
  });
  after.run(700, () => [diskCondition("n1", 90)]);
  assert.equal(after.told().length, 1, "the last time that its group was heard of was kept");
});

const attempt = (level: "warning" | "critical"): Occurrence => ({
  key: "mock_token:n1",
  type: "mock_token",
  level,
  nodeId: "n1",
});

test("an event in the first 30 s is told after them: no later reading would tell of it (D11, D22)", () => {
  const run = new ServiceRun({ groupMs: 0 });
  run.run(
    100,
    () => [],
    (second) => (second === 5 ? [attempt("critical")] : second === 10 ? [attempt("warning")] : []),
  );
  assert.deepEqual(run.told(), ["30 raised mock_token:n1 critical"]);
});

test("an event that waited for its group when the console ended is told by the next one, once (D11)", () => {
  const before = new ServiceRun();
  before.run(
    70,
    () => [],
    (second) => (second === 60 ? [attempt("critical")] : []),
  );
  assert.deepEqual(before.told(), []);
  const kept = storedNotifications.parse(JSON.parse(JSON.stringify(before.service.kept(before.now))));
  const after = new ServiceRun();
  after.service.restore(kept, after.now);
  // A second restart within the hold loses nothing either.
  const again = new ServiceRun();
  again.service.restore(storedNotifications.parse(after.service.kept(after.now)), again.now);
  again.run(1_000, () => []);
  assert.deepEqual(again.told(), ["60 raised mock_token:n1 critical", "665 over mock_token:n1 critical"]);
  const last = new ServiceRun();
  last.service.restore(storedNotifications.parse(again.service.kept(again.now)), last.now);
  last.run(1_000, () => []);
  assert.deepEqual(last.told(), []);
});

test("more full quotas than their part, which a version before has told, keep no node's alert from being sent (D11)", () => {
  const quota = (at: number): Condition => ({
    key: `quota_exceeded:${at}`,
    type: "quota_exceeded",
    level: "warning",
  });
  const before = started({ groupMs: 0 });
  before.run(5, () => [quota(0)]);
  const kept = before.service.kept(before.now);
  const alerts = kept.alerts.flatMap((alert) =>
    Array.from({ length: NOTIFICATION_KEYS_MAX }, (_, at) => ({ ...alert, key: quota(at).key })),
  );
  assert.equal(alerts.length, NOTIFICATION_KEYS_MAX);
  const after = new ServiceRun({ groupMs: 0 });
  after.service.restore({ ...kept, alerts }, after.now);
  after.run(60, () => [nodeCondition("corruption", "n1", "critical")]);
  assert.deepEqual(
    after.told().map((line) => line.replace(/^\d+ /, "")),
    ["raised corruption:n1 critical"],
  );
  after.service.observe([quota(NOTIFICATION_KEYS_MAX)], [], after.now);
  assert.equal(after.service.unwatched, 1);
});
