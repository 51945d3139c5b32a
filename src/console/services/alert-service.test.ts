// Tests alerts from polls to their records: raised, changed, ended and sent (spec 3.1, 3.3, D11).
import assert from "node:assert/strict";
import { after, test } from "node:test";
import type { Condition } from "#console/alerts/condition.ts";
import { listedNode, nodeReading } from "#console/cluster/cluster-state.fixture.ts";
import type { NodeReading, SecurityEvent } from "#console/cluster/cluster-state.ts";
import { VANISHED_NODE_KEPT_MS } from "#console/cluster/cluster-state-store.ts";
import { scratchFolder } from "#testing/scratch-folder.ts";
import { startService } from "./alert-service.fixture.ts";
import { NODE_FORGOTTEN_MS } from "./gone-nodes.ts";

const GIB = 2n ** 30n;
const ends: (() => Promise<unknown>)[] = [];
after(async () => {
  for (const end of ends.toReversed()) await end();
});

test("a disk that fills and is emptied: each step within one poll (spec 3.1)", async () => {
  const { round } = await startService(ends, ["n1"]);
  assert.deepEqual(await round({ n1: { diskUsagePercent: 80 } }), []);
  assert.deepEqual(await round({ n1: { diskUsagePercent: 80.01 } }), ["raised storage_warning:n1 warning"]);
  assert.deepEqual(await round({ n1: { diskUsagePercent: 95.01 } }), ["changed storage_warning:n1 critical"]);
  assert.deepEqual(await round({ n1: { diskUsagePercent: null } }), []);
  assert.deepEqual(await round({ n1: null }), []);
  assert.deepEqual(await round({ n1: { diskUsagePercent: 90 } }), ["changed storage_warning:n1 warning"]);
  assert.deepEqual(await round({ n1: { diskUsagePercent: 79.99 } }), [
    "resolved storage_warning:n1 warning",
    "recorded storage_warning:n1 info",
  ]);
});

test("a disk that comes down to its reserve warns first and is critical while it refuses uploads, for visitors too (spec 4.6.3)", async () => {
  const { round, service } = await startService(ends, ["n1"]);
  const left = (bytes: bigint): Partial<NodeReading> => ({
    diskUsagePercent: 40,
    reserveBytes: 500n * GIB,
    diskFreeBytes: 500n * GIB + bytes,
  });
  assert.deepEqual(await round({ n1: left(100n * GIB) }), []);
  assert.deepEqual(await round({ n1: left(9n * GIB) }), ["raised storage_reserve:n1 warning"]);
  assert.deepEqual(await round({ n1: left(0n) }), ["changed storage_reserve:n1 critical"]);
  const [seen] = service.list("visitor", { types: new Set(["storage_reserve"]) }, {}).alerts;
  assert.match(seen?.message ?? "", /^n1 refuses uploads now: its disk is down to the reserve of 500 GiB/);
  assert.deepEqual(await round({ n1: left(9n * GIB) }), ["changed storage_reserve:n1 warning"]);
  assert.deepEqual(await round({ n1: left(100n * GIB) }), [
    "resolved storage_reserve:n1 warning",
    "recorded storage_reserve:n1 info",
  ]);
});

test("a silent node is offline after 30 s, and its other alerts stay as they are; its way back is recorded (spec 3.3, T5)", async () => {
  const { round, service } = await startService(ends, ["n1"]);
  await round({ n1: { cpuTempCelsius: 70, usersAssignedCount: 3 } });
  const told: string[][] = [];
  for (let i = 0; i < 7; i++) told.push(await round({ n1: null }));
  assert.deepEqual(told.flat(), ["raised node_offline:n1 critical"]);
  assert.deepEqual(told.findIndex((events) => events.length > 0) >= 5, true, "not before 30 s");
  assert.deepEqual(service.summary("visitor"), {
    critical: 1,
    warning: 1,
    info: 0,
    total: 2,
    for_operators: 0,
  });
  assert.deepEqual(await round({ n1: { cpuTempCelsius: 70 } }), [
    "resolved node_offline:n1 critical",
    "recorded node_online:n1 info",
  ]);
  const { alerts } = service.list("operator", { types: new Set(["node_online"]) }, {});
  assert.match(alerts[0]?.message ?? "", /^n1 answers again after \d+ s\.$/);
});

test("the alert of a silent node keeps its last answer and its users over a restart of the console (spec 3.3)", async () => {
  const folder = scratchFolder("grove-service-");
  const before = await startService(ends, ["n1"], { folder });
  await before.round({ n1: { usersAssignedCount: 3 } });
  for (let i = 0; i < 7; i++) await before.round({ n1: null });
  const messageIn = ({ service }: typeof before): string | undefined =>
    service.list("operator", { isUnresolved: true }, {}).alerts[0]?.message;
  const message = messageIn(before);
  assert.match(message ?? "", /its last answer came at .* 3 users cannot reach their files\.$/);
  before.clusterState.close();
  await before.service.close();
  const after = await startService(ends, ["n1"], { folder });
  for (let i = 0; i < 8; i++) await after.round({ n1: null });
  assert.equal(messageIn(after), message);
  await after.round({ n1: {} });
  const { alerts } = after.service.list("operator", { types: new Set(["node_online"]) }, {});
  assert.match(alerts[0]?.message ?? "", /^n1 answers again after \d+ s\.$/);
});

test("a node that has never answered is offline 30 s after the start, not before (D24)", async () => {
  const { round } = await startService(ends, ["n1"]);
  const told: string[][] = [];
  for (let i = 0; i < 8; i++) told.push(await round({ n1: null }));
  assert.deepEqual(told.flat(), ["raised node_offline:n1 critical"]);
  assert.deepEqual(told.slice(0, 6).flat(), []);
});

test("a user past 95 and 100 % of the quota: operators see it, visitors neither it nor its count (T1, spec 5.8.4)", async () => {
  const { round, service, events } = await startService(ends, ["n1"]);
  const bob = (used: bigint): Partial<NodeReading> => ({
    perUserStorage: new Map([["bob@example.com", used]]),
    perUserQuota: new Map([["bob@example.com", 1_000n]]),
  });
  assert.deepEqual(await round({ n1: bob(950n) }), []);
  assert.deepEqual(await round({ n1: bob(951n) }), ["raised quota_exceeded:bob@example.com warning"]);
  assert.deepEqual(await round({ n1: bob(1_000n) }), ["changed quota_exceeded:bob@example.com critical"]);
  assert.deepEqual(service.summary("operator").total, 1);
  assert.deepEqual(
    [service.summary("visitor"), service.list("visitor", {}, {})],
    [
      { critical: 0, warning: 0, info: 0, total: 0, for_operators: 0 },
      { alerts: [], total: 0 },
    ],
  );
  assert.deepEqual(await round({ n1: { usersWithheld: true } }), [], "not to be told is not to be fine");
  assert.deepEqual(await round({ n1: bob(950n) }), []);
  assert.deepEqual(await round({ n1: bob(949n) }), [
    "resolved quota_exceeded:bob@example.com critical",
    "recorded quota_exceeded:bob@example.com info",
  ]);
  assert.deepEqual(
    events.filter((event) => event.public !== undefined),
    [],
  );
});

test("a root that moves takes its quota's alert along: it has not recovered, and who resolved it has (D11)", async () => {
  const homes = new Map([["bob@example.com", "n1"]]);
  const { round, service } = await startService(ends, ["n1", "n2"], { homeOf: (name) => homes.get(name) });
  const bob = (used: bigint): Partial<NodeReading> => {
    const [storage, limit] = [used, 10n * GIB].map((bytes) => new Map([["bob@example.com", bytes]]));
    if (storage === undefined || limit === undefined) throw new TypeError("two maps");
    return { perUserStorage: storage, perUserQuota: limit, nearQuota: { storage, limit } };
  };
  const none = { nearQuota: { storage: new Map(), limit: new Map() } };
  assert.deepEqual(await round({ n1: bob(10n * GIB), n2: none }), [
    "raised quota_exceeded:bob@example.com critical",
  ]);
  homes.set("bob@example.com", "n2");
  // The former home answers first, with its copy or without.
  assert.deepEqual(await round({ n1: bob(10n * GIB) }), []);
  assert.deepEqual(await round({ n1: none, n2: bob(10n * GIB) }), []);
  assert.equal(service.list("operator", {}, {}).alerts[0]?.node_id, "n2");
  const { resolved } = await service.resolve(
    service.idsOf({ ids: [], key: "quota_exceeded:bob@example.com" }),
  );
  assert.equal(resolved.length, 1);
  homes.set("bob@example.com", "n1");
  await round({ n2: none });
  assert.deepEqual(await round({ n1: bob(10n * GIB) }), []);
  assert.deepEqual(await round({ n1: { ...bob(GIB), ...none } }), [
    "recorded quota_exceeded:bob@example.com info",
  ]);
});

test("restarts that nobody asked for, and none for a node in maintenance (D24)", async () => {
  const { round, service } = await startService(ends, ["n1", "n2"]);
  await round({ n1: { lastRestartUnix: 100 }, n2: { lastRestartUnix: 100 } });
  service.touched("n2");
  assert.deepEqual(await round({ n1: { lastRestartUnix: 200 }, n2: { lastRestartUnix: 200 } }), [
    "raised service_restart:n1 warning",
  ]);
});

test("errors: 60 s of answers without one end a spike, the first answer after a start does not (T4)", async () => {
  const { round, window } = await startService(ends, ["n1"]);
  Object.assign(window, { errors: 5, ops: 20 });
  assert.deepEqual(await round({ n1: {} }), ["raised error_spike:n1 critical"]);
  Object.assign(window, { errors: 0, ops: 0 });
  const told: string[][] = [];
  for (let i = 0; i < 13; i++) told.push(await round({ n1: {} }));
  assert.deepEqual(told.slice(0, 11).flat(), []);
  assert.deepEqual(told.flat(), ["resolved error_spike:n1 critical", "recorded error_spike:n1 info"]);
});

test("what nodes report of attempts, and failed sign-ins to the console, are for operators alone (D22, W-03)", async () => {
  const { round, service } = await startService(ends, ["n1"]);
  const event: SecurityEvent = {
    id: "01K5YDWV000000000000000000",
    ts: 1_790_000_000,
    type: "ip_mismatch",
    fatal: false,
    username: "bob@example.com",
    ipBound: "192.0.2.1",
    ipSeen: "203.0.113.7",
    count: 1,
  };
  assert.deepEqual(await round({ n1: {} }, [event]), ["raised ip_mismatch:bob@example.com warning"]);
  for (let i = 0; i < 9; i++) service.loginFailed("203.0.113.9");
  assert.deepEqual(await round({ n1: {} }), []);
  service.loginFailed("203.0.113.9");
  assert.deepEqual(await round({ n1: {} }), ["raised login_failures warning"]);
  const { alerts } = service.list("operator", {}, {});
  assert.match(
    alerts[0]?.message ?? "",
    /^10 attempts to sign in to the console failed, the last from 203\.0\.113\.9\.$/,
  );
  const nothing = { critical: 0, warning: 0, info: 0, total: 0, for_operators: 0 };
  assert.deepEqual(
    service.summary("visitor"),
    nothing,
    "nobody reads from a count that an attempt was noticed",
  );
});

test("a restart of the console counts no failed password of a node again, also where none had raised an alert (W-03)", async () => {
  const folder = scratchFolder("grove-service-");
  const failed = (hour: number): SecurityEvent => ({
    id: `01K5YDWV00000000000000000${hour}`,
    ts: 1_790_000_000 + hour * 3_600,
    type: "admin_hash_failed",
    fatal: false,
    username: undefined,
    ipBound: undefined,
    ipSeen: "203.0.113.7",
    count: 2,
  });
  const before = await startService(ends, ["n1"], { folder });
  const list: SecurityEvent[] = [];
  for (let hour = 0; hour < 9; hour++) {
    list.push(failed(hour));
    assert.deepEqual(await before.round({ n1: {} }, list.slice(-1)), []);
    before.clock.advance(3_600_000);
  }
  before.clusterState.close();
  await before.service.close();
  const after = await startService(ends, ["n1"], { folder });
  assert.deepEqual(await after.round({ n1: {} }, list), []);
});

test("the end of the console's own certificate is an alert that no node has to report (B-11)", async () => {
  let daysLeft = 14;
  const { round, service } = await startService(ends, ["n1"], { certificateDaysLeft: () => daysLeft });
  assert.deepEqual(await round({ n1: {} }), []);
  daysLeft = 13;
  assert.deepEqual(await round({ n1: {} }), ["raised cert_expiring warning"]);
  daysLeft = 0;
  assert.deepEqual(await round({ n1: {} }), ["changed cert_expiring critical"]);
  const [alert] = service.list("operator", {}, {}).alerts;
  assert.equal(alert?.title, "The certificate of the console ends soon");
  assert.match(alert.message, /ends in less than a day/);
  daysLeft = -1;
  await round({ n1: {} });
  daysLeft = 89;
  const events = await round({ n1: {} });
  assert.deepEqual(events, ["resolved cert_expiring critical", "recorded cert_expiring info"]);
});

test("visitors see faults of machine and service without numbers of users, and count what says where the cluster is open (spec 5.8.4, D22)", async () => {
  const { round, service } = await startService(ends, ["n1"], { isDefaultPassword: () => true });
  await round({
    n1: { authMock: true, damagedFileCount: 3, invalidFields: ["load_avg_1m", "per_user_quota"] },
  });
  service.wasReset("admin_metrics_snapshot.json", "admin_metrics_snapshot.json.corrupt-1");
  await service.saved();
  const seen = service
    .list("visitor", {}, {})
    .alerts.toSorted((a, b) => (a.key < b.key ? -1 : 1))
    .map(({ key, value }) => [key, value]);
  assert.deepEqual(seen, [
    ["bad_metrics:n1", 1],
    ["corruption:n1", undefined],
    ["snapshot_reset:admin_metrics_snapshot.json", undefined],
  ]);
  assert.deepEqual(service.summary("visitor"), {
    critical: 1,
    warning: 1,
    info: 1,
    total: 3,
    for_operators: 2,
  });
  assert.deepEqual(service.summary("operator"), { critical: 2, warning: 3, info: 1, total: 6 });
});

test("alerts of a node that was forgotten end an hour later; while no node is known, none is missing", async () => {
  const { round, service, clusterState, clock } = await startService(ends, ["n1", "n2"]);
  await round({ n1: { diskUsagePercent: 90 }, n2: {} });
  clusterState.list([listedNode("n2")]);
  clock.advance(VANISHED_NODE_KEPT_MS + 1);
  clusterState.list([listedNode("n2")]);
  assert.equal(clusterState.node("n1"), undefined);
  clock.advance(NODE_FORGOTTEN_MS - 5_000);
  await service.saved();
  const open = () =>
    service.list("operator", { isUnresolved: true, nodeId: "n1" }, {}).alerts.map(({ key }) => key);
  assert.deepEqual(open().sort(), ["node_offline:n1", "storage_warning:n1"]);
  clock.advance(10_000);
  await service.saved();
  assert.deepEqual(open(), []);
});

test("each round tells the notification layer every condition once, with its value, and what happened", async () => {
  const { round, service, clusterState } = await startService(ends, ["n1", "n2"]);
  const rounds: { conditions: readonly Condition[]; happened: number }[] = [];
  service.onConditions((conditions, happened) => rounds.push({ conditions, happened: happened.length }));
  await round({ n1: { diskUsagePercent: 79 }, n2: null });
  const [first] = rounds;
  const keys = first?.conditions.map(({ key }) => key) ?? [];
  assert.equal(new Set(keys).size, keys.length);
  const storage = first?.conditions.find(({ key }) => key === "storage_warning:n1");
  assert.deepEqual([storage?.level, storage?.value], ["clear", 79]);
  assert.equal(first?.conditions.find(({ key }) => key === "node_offline:n2")?.level, "unknown");
  clusterState.answered("n1", nodeReading({ lastRestartUnix: 1 }));
  await round({});
  assert.equal(rounds[1]?.happened, 1);
});
