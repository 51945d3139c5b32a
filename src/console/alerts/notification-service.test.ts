// What is sent and when: groups, repeats, mutes, flapping and restarts (decision D11).
import assert from "node:assert/strict";
import { test } from "node:test";
import type { Condition } from "./condition.ts";
import { diskCondition, nodeCondition, ServiceRun } from "./notification-service.fixture.ts";
import {
  NOTIFICATION_KEYS_MAX,
  NOTIFICATION_USER_KEYS_MAX,
  NotificationService,
} from "./notification-service.ts";
import { NOTIFICATION_ALERTS_MAX } from "./tracked-alert.ts";

const QUIET_START = 60;
/** A run after its start-up hold, with every disk at 50 %. */
function started(options: ConstructorParameters<typeof ServiceRun>[0] = {}): ServiceRun {
  const run = new ServiceRun(options);
  run.run(QUIET_START, () => [diskCondition("n1", 50)]);
  return run;
}

test("news wait 30 s for others of their group and go out as one message (D11)", () => {
  const run = started();
  run.run(40, (second) => [diskCondition("n1", 90), diskCondition("n2", second >= 70 ? 99 : 50)]);
  assert.deepEqual(run.told(), [
    "95 raised storage_warning:n1 warning",
    "95 raised storage_warning:n2 critical",
  ]);
  assert.equal(run.notices.length, 1);
  assert.deepEqual(run.notices[0]?.notice.group, { alertname: "storage_warning" });
});

test("what comes and goes within the wait of its group is not told at all", () => {
  const run = started();
  run.run(300, (second) => [
    {
      key: "auth_mock:n1",
      type: "auth_mock",
      level: second < 80 ? "warning" : "clear",
      nodeId: "n1",
    },
  ]);
  assert.deepEqual(run.told(), []);
});

test("a quota of which nothing is heard after its one clear reading is over ten minutes later, not sooner", () => {
  const run = started();
  const quota = (level: "warning" | "clear", value: number): Condition => ({
    key: "quota_exceeded:a@b.c",
    type: "quota_exceeded",
    level,
    value,
    username: "a@b.c",
  });
  run.run(1_000, (second) =>
    second < 100 ? [quota("warning", 96)] : second === 100 ? [quota("clear", 94)] : [diskCondition("n1", 50)],
  );
  assert.deepEqual(run.told(), [
    "90 raised quota_exceeded:a@b.c warning",
    "730 over quota_exceeded:a@b.c warning",
  ]);
});

test("nothing is told in the first 30 s, and what stands then is told after them (D11)", () => {
  const run = new ServiceRun({ groupMs: 0 });
  run.run(29, () => [diskCondition("n1", 99)]);
  assert.deepEqual(run.told(), []);
  assert.equal(run.service.alerts(run.now).length, 0);
  run.run(10, () => [diskCondition("n1", 99)]);
  assert.deepEqual(run.told(), ["30 raised storage_warning:n1 critical"]);
});

test("what becomes worse is told, what becomes less bad is not, and its end is told once with its time", () => {
  const run = started();
  const value = (second: number): number => (second < 200 ? 90 : second < 400 ? 97 : second < 600 ? 85 : 70);
  run.run(800, (second) => [diskCondition("n1", value(second))]);
  assert.deepEqual(run.told(), [
    "95 raised storage_warning:n1 warning",
    "235 worse storage_warning:n1 critical",
    "690 over storage_warning:n1 critical",
  ]);
  const over = run.notices.at(-1)?.notice;
  assert.equal(over?.status, "resolved");
  const [alert] = over?.alerts ?? [];
  assert.equal(alert?.startsAtMs, 1_790_000_060_000);
  assert.equal(alert?.value, 70);
  assert.equal(alert?.endsAtMs, 1_790_000_660_000);
});

test("what lasts is told again every 4 hours, but not once an operator has acknowledged it (D11)", () => {
  const run = started();
  const full = (): Condition[] => [diskCondition("n1", 90), diskCondition("n2", 90)];
  run.run(4 * 3_600 + 100, full);
  assert.equal(run.service.acked("storage_warning:n1"), true);
  assert.equal(run.service.acked("storage_warning:n1"), false);
  assert.equal(run.service.acked("storage_warning:n9"), false);
  run.run(4 * 3_600, full);
  assert.deepEqual(run.told(), [
    "95 raised storage_warning:n1 warning",
    "95 raised storage_warning:n2 warning",
    "14495 repeat storage_warning:n1 warning",
    "14495 repeat storage_warning:n2 warning",
    "28895 repeat storage_warning:n2 warning",
  ]);
  // A worse level is news, and so is its end.
  run.run(100, () => [diskCondition("n1", 99), diskCondition("n2", 90)]);
  run.run(200, () => [diskCondition("n1", 10), diskCondition("n2", 90)]);
  assert.deepEqual(
    run
      .told()
      .slice(5)
      .map((line) => line.split(" ").slice(1).join(" ")),
    ["worse storage_warning:n1 critical", "over storage_warning:n1 critical"],
  );
});

test("a node that is down mutes the rest of its alerts, and of no other node (D11)", () => {
  const run = started();
  run.run(600, () => [
    nodeCondition("node_offline", "n1", "critical"),
    diskCondition("n1", 99),
    nodeCondition("node_offline", "n2", "clear"),
    diskCondition("n2", 99),
  ]);
  assert.deepEqual(run.told(), [
    "95 raised storage_warning:n2 critical",
    "120 raised node_offline:n1 critical",
  ]);
  assert.deepEqual(
    run.service.alerts(run.now).map(({ tracked, mutedBy }) => [tracked.key, mutedBy]),
    [
      ["node_offline:n1", undefined],
      ["storage_warning:n1", "node_offline"],
      ["storage_warning:n2", undefined],
    ],
  );
  run.run(100, () => [
    nodeCondition("node_offline", "n1", "clear"),
    diskCondition("n1", 99),
    diskCondition("n2", 99),
  ]);
  assert.deepEqual(run.told().slice(2), [
    "695 over node_offline:n1 critical",
    "695 raised storage_warning:n1 critical",
  ]);
});

test("no data is no news: neither a raise nor an end comes of it (M-07)", () => {
  const run = started();
  run.run(200, () => [diskCondition("n1", 90)]);
  run.run(3_000, () => [{ ...diskCondition("n1", 0), level: "unknown" }]);
  run.run(60, () => []);
  assert.deepEqual(run.told(), ["95 raised storage_warning:n1 warning"]);
});

test("a silence mutes what it matches and no more; what was told before is told to be over (D11)", () => {
  let isOn = false;
  const run = started({
    isSilenced: ({ node_id, type }) => isOn && node_id === "n1" && type === "storage_warning",
  });
  const disks = (first: number, second: number) => (): Condition[] => [
    diskCondition("n1", first),
    diskCondition("n2", second),
  ];
  run.run(100, disks(90, 50));
  isOn = true;
  run.run(100, disks(99, 90));
  run.run(200, disks(10, 90));
  run.run(100, disks(99, 90));
  assert.deepEqual(run.told(), [
    "95 raised storage_warning:n1 warning",
    "195 raised storage_warning:n2 warning",
    "350 over storage_warning:n1 warning",
  ]);
  isOn = false;
  run.run(100, disks(99, 90));
  assert.deepEqual(run.told().slice(3), ["590 raised storage_warning:n1 critical"]);
});

test("a restart and an absence under maintenance are never told; an absence that outlasts it is (D7, D11)", () => {
  let isOn = true;
  const run = started({ isMaintained: (type) => isOn && ["service_restart", "node_offline"].includes(type) });
  const restart = {
    key: "service_restart:n1",
    type: "service_restart",
    level: "warning",
    nodeId: "n1",
  } as const;
  run.run(120, () => [nodeCondition("node_offline", "n1", "critical")]);
  run.run(
    60,
    () => [nodeCondition("node_offline", "n1", "clear")],
    (second) => (second === 200 ? [restart] : []),
  );
  isOn = false;
  run.run(900, () => [nodeCondition("node_offline", "n1", "clear")]);
  assert.deepEqual(run.told(), []);
  run.run(
    900,
    () => [nodeCondition("node_offline", "n1", "clear")],
    (second) => (second === 1_200 ? [restart] : []),
  );
  assert.deepEqual(run.told(), [
    "1230 raised service_restart:n1 warning",
    "1835 over service_restart:n1 warning",
  ]);
  isOn = true;
  run.run(100, () => [nodeCondition("node_offline", "n1", "critical")]);
  isOn = false;
  run.run(100, () => [nodeCondition("node_offline", "n1", "critical")]);
  assert.deepEqual(run.told().slice(2), ["2170 raised node_offline:n1 critical"]);
});

test("a key that is raised a fourth time within 30 min is told as flapping, then not at all for 30 stable min (D11)", () => {
  const run = started({ groupMs: 0 });
  // 100 s above and 100 s far below: raised every 200 s.
  run.run(1_800, (second) => [diskCondition("n1", second % 200 < 100 ? 90 : 10)]);
  run.run(3_600, () => [diskCondition("n1", 10)]);
  const reasons = run.told().map((line) => line.split(" ")[1]);
  assert.deepEqual(reasons, ["raised", "over", "raised", "over", "raised", "over", "flapping", "over"]);
  const lastEnd = Number(run.told().at(-1)?.split(" ")[0]);
  // The last time above ends at 1860 s, which counts from 1920 s on.
  assert.equal(lastEnd, 1_920 + 1_800);
});

test("a large outage goes out as several messages of at most 50 alerts, none of them left out", () => {
  const run = started();
  run.run(60, () => Array.from({ length: 120 }, (_, at) => diskCondition(`n${at}`, 90)));
  assert.deepEqual(
    run.notices.map(({ notice }) => [notice.alerts.length, notice.truncated, notice.status]),
    [
      [NOTIFICATION_ALERTS_MAX, 0, "firing"],
      [NOTIFICATION_ALERTS_MAX, 0, "firing"],
      [20, 0, "firing"],
    ],
  );
  run.run(60, () => [diskCondition("n500", 99)]);
  const last = run.notices.at(-1)?.notice;
  assert.deepEqual([last?.alerts.length, last?.truncated], [50, 71]);
  assert.equal(last?.alerts[0]?.key, "storage_warning:n500");
});

test("as many news as a message holds are one message, and what stands beside them is counted", () => {
  const run = started();
  const disks = (count: number): Condition[] =>
    Array.from({ length: count }, (_, at) => diskCondition(`n${at}`, 90));
  run.run(60, () => disks(1));
  run.run(60, () => disks(NOTIFICATION_ALERTS_MAX + 1));
  assert.deepEqual(
    run.notices.map(({ notice }) => [notice.alerts.length, notice.truncated]),
    [
      [1, 0],
      [NOTIFICATION_ALERTS_MAX, 1],
    ],
  );
});

test("a message that tells of an end is over only when nothing of its group stands any more", () => {
  const run = started();
  run.run(60, () => [diskCondition("n1", 90), diskCondition("n2", 90)]);
  run.run(200, () => [diskCondition("n1", 90), diskCondition("n2", 10)]);
  run.run(200, () => [diskCondition("n1", 10), diskCondition("n2", 10)]);
  assert.deepEqual(
    run.notices.map(({ notice }) => notice.status),
    ["firing", "firing", "resolved"],
  );
});

test("groups by node, by user, or all in one (D11)", () => {
  for (const [groupBy, count] of [
    [["node_id"], 2],
    [["alertname", "node_id"], 4],
    [[], 1],
  ] as const) {
    const run = started({ groupBy: [...groupBy] });
    run.run(60, () =>
      ["n1", "n2"].flatMap((id) => [diskCondition(id, 90), nodeCondition("corruption", id, "critical", 3)]),
    );
    assert.equal(run.notices.length, count);
  }
});

test("what happened and is no more than a note is not told", () => {
  const run = started();
  const note = { key: "service_restart:n1", type: "service_restart", nodeId: "n1" } as const;
  run.run(
    100,
    () => [],
    () => [{ ...note, level: "info" }],
  );
  assert.deepEqual([run.told(), run.service.alerts(run.now)], [[], []]);
  run.run(
    100,
    () => [],
    () => [{ ...note, level: "warning" }],
  );
  assert.deepEqual(run.told(), ["190 raised service_restart:n1 warning"]);
});

test("whoever is unknown, or not bad, cannot be gone; another alert's end brings no node back", () => {
  const run = started();
  const down = (): Condition[] => [nodeCondition("node_offline", "n1", "critical"), diskCondition("n1", 99)];
  run.run(100, down);
  run.service.forget("storage_warning:n9", run.now);
  run.service.forget("storage_warning:n1", run.now);
  run.run(60, down);
  assert.deepEqual(
    run.told().map((line) => line.split(" ").slice(1, 3).join(" ")),
    ["raised node_offline:n1"],
  );
});

test("a key whose subject is gone is over", () => {
  const run = started();
  run.run(100, () => [nodeCondition("node_offline", "n1", "critical")]);
  run.service.forget("node_offline:n1", run.now);
  run.run(60, () => [diskCondition("n1", 99)]);
  assert.deepEqual(
    run.told().map((line) => line.split(" ").slice(1, 3).join(" ")),
    ["raised node_offline:n1", "over node_offline:n1", "raised storage_warning:n1"],
  );
});

const AT = { wallMs: 1_790_000_000_000, steadyMs: 60_000 };
const bare = (): NotificationService =>
  new NotificationService({
    groupBy: ["alertname"],
    groupMs: 0,
    repeatMs: 1e9,
    startedSteadyMs: 0,
    isSilenced: () => false,
    isMaintained: () => false,
  });
const many = (
  count: number,
  type: "corruption" | "quota_exceeded",
  level: "warning" | "clear",
): Condition[] => Array.from({ length: count }, (_, n) => ({ key: `${type}:${n}`, type, level }));

test("memory is bounded: calm keys are forgotten, and more bad ones than fit are counted", () => {
  for (const [type, most] of [
    ["corruption", NOTIFICATION_KEYS_MAX],
    ["quota_exceeded", NOTIFICATION_USER_KEYS_MAX],
  ] as const) {
    const service = bare();
    service.observe(many(most + 5, type, "warning"), [], AT);
    assert.equal(service.unwatched, 5);
    assert.equal(service.alerts(AT).length, most);
    service.tick(AT);
    service.observe(many(most, type, "clear"), [], { ...AT, steadyMs: 65_000 });
    service.observe([], [], { ...AT, steadyMs: 665_000 });
    service.tick({ ...AT, steadyMs: 665_000 });
    service.tick({ ...AT, steadyMs: 665_000 + 31 * 60_000 });
    service.observe(many(most, type, "warning"), [], { ...AT, steadyMs: 2_600_000 });
    assert.equal(service.unwatched, 0);
  }
});

test("however many quotas are full, also before a restart, a node's alert is sent (D11, M-05)", () => {
  const before = bare();
  const quotas = many(2 * NOTIFICATION_KEYS_MAX, "quota_exceeded", "warning");
  before.observe(quotas, [], AT);
  before.tick(AT);
  const after = bare();
  after.restore(before.kept(AT), AT);
  for (const service of [before, after]) {
    service.observe([...quotas, nodeCondition("corruption", "n1", "critical")], [], AT);
    const told = service.tick(AT).flatMap(({ alerts }) => alerts.map(({ key }) => key));
    assert.ok(told.includes("corruption:n1"));
    assert.equal(service.unwatched, quotas.length - NOTIFICATION_USER_KEYS_MAX);
  }
});
