// Tests what visitors cannot infer: addresses from ids, users' data, numbers of hidden alerts (D22, W-09).
import assert from "node:assert/strict";
import { test } from "node:test";
import { ManualClock } from "#base/clock.ts";
import { silentLogger } from "#base/log.ts";
import { scratchFolder } from "#testing/scratch-folder.ts";
import { type Alert, alertId } from "./alert.ts";
import { summarizeAlerts } from "./alert-list.ts";
import { publicRecordOf, recordOf } from "./alert-record.ts";
import { AlertStore, momentOf } from "./alert-store.ts";
import { isPublic } from "./alert-visibility.ts";
import { metaServerConditions } from "./metaserver-rule.ts";
import { metaServerAt, type ReportedEvent, SecurityRule } from "./security-rule.ts";

const RAISED_MS = 1_790_000_000_000;
const BARE: Alert = {
  id: "01K5YDWV000000000000000000",
  revision: 1,
  key: "k",
  type: "storage_warning",
  severity: "warning",
  raisedAtMs: RAISED_MS,
  raisedCount: 1,
  isRecovery: false,
};
const at = (steadyMs: number) => ({ wallMs: RAISED_MS + steadyMs, steadyMs });

test("an id is the hash of what its alert is, and random where that would tell an address", () => {
  assert.equal(alertId(BARE), alertId({ ...BARE }));
  assert.notEqual(alertId(BARE), alertId({ ...BARE, key: "other" }));
  const away: Alert = { ...BARE, type: "metaserver_offline", key: "metaserver_offline:10.9.8.7:50050" };
  assert.notEqual(alertId(away), alertId(away));
});

test("what is about users is still known as that after a restart", async () => {
  const folder = scratchFolder("grove-alerts-");
  const clock = new ManualClock();
  const open = () => AlertStore.open({ folder, clock, log: silentLogger });
  const store = await open();
  const about = { type: "bad_metrics", nodeId: "n1", nodeName: "fs-1", level: "warning" } as const;
  const conditions = [
    { ...about, key: "bad_metrics:n1" },
    { ...about, key: "bad_metrics:n1:users", isOfUsers: true } as const,
  ];
  await store.take(store.machine.apply(conditions, momentOf(clock)));
  await store.close();
  const visible = [...(await open()).shown()].filter(isPublic).map(({ key }) => key);
  assert.deepEqual(visible, ["bad_metrics:n1"]);
});

test("of a file that was damaged and of a drift visitors learn that it is, and not how much", () => {
  for (const type of ["quota_drift", "corruption"] as const) {
    const alert: Alert = { ...BARE, type, key: `${type}:n1`, value: 7, threshold: 0 };
    assert.equal(recordOf(alert).value, 7);
    assert.deepEqual(publicRecordOf(alert)?.type, type);
    assert.equal(publicRecordOf(alert)?.value, undefined);
  }
});

test("visitors hear how many more are for operators, as far as that number tells nothing", () => {
  const alerts: Alert[] = [
    BARE,
    { ...BARE, type: "default_password", key: "default_password" },
    { ...BARE, type: "mock_token", key: "mock_token:n1" },
    { ...BARE, type: "quota_exceeded", key: "quota_exceeded:bob@example.com", username: "bob@example.com" },
  ];
  const visitor = summarizeAlerts(alerts, "visitor");
  assert.deepEqual([visitor.total, visitor.for_operators], [1, 1]);
  assert.equal(summarizeAlerts(alerts, "operator").total, 4);
});

test("a reserve that holds again says how much is above it where that is known", () => {
  const said = (detail: Alert["detail"]): string =>
    recordOf({
      ...BARE,
      type: "storage_reserve",
      isRecovery: true,
      nodeId: "n1",
      nodeName: "fs-1",
      ...(detail === undefined ? {} : { detail }),
    }).message;
  assert.match(said({ usable_bytes: 2_147_483_648 }), /fs-1 has 2(\.0)? GiB above the reserve/);
  assert.match(said(undefined), /fs-1 has enough above the reserve/);
});

test("a mock token that a MetaServer was offered names that MetaServer, one of a node the node", () => {
  const event: ReportedEvent = {
    id: "01",
    type: "mock_token",
    username: undefined,
    ipBound: undefined,
    ipSeen: "203.0.113.7",
    count: 1,
  };
  const rule = new SecurityRule(new Map());
  const [atMeta] = rule.occurrences(metaServerAt("10.9.8.7:50050"), [event], at(0));
  assert.deepEqual(
    [atMeta?.detail?.["server"], atMeta?.nodeId],
    ["the MetaServer 10.9.8.7:50050", undefined],
  );
  const [atNode] = rule.occurrences({ id: "n1", name: "fs-1" }, [event], at(0));
  assert.deepEqual([atNode?.detail?.["server"], atNode?.nodeId], [undefined, "n1"]);
  const told = recordOf({ ...BARE, type: "mock_token", nodeId: "n1", nodeName: "fs-1", value: 1 });
  assert.match(told.message, /^Fs-1 rejected 1 mock token/);
});

test("events of a MetaServer that is not watched any more are news when it comes back; nodes are left alone", () => {
  const marks = new Map<string, string>();
  const rule = new SecurityRule(marks);
  const event: ReportedEvent = {
    id: "01",
    type: "mock_token",
    username: undefined,
    ipBound: undefined,
    ipSeen: undefined,
    count: 1,
  };
  const places = [metaServerAt("a:1"), metaServerAt("b:1"), { id: "n1", name: "fs-1" }];
  for (const place of places) rule.occurrences(place, [event], at(0));
  rule.keepMetaServers(new Set(["a:1"]));
  assert.deepEqual([...marks.keys()].toSorted(), ["metaserver:a:1", "n1"]);
  assert.deepEqual(
    places.map((place) => rule.occurrences(place, [event], at(1)).length),
    [0, 1, 0],
  );
});

test("a MetaServer's absence is told without a reason, and its return without a length, where none is known", () => {
  const readings = [
    { address: "a:1", isLate: true, isOffline: true },
    { address: "b:1", isLate: false, isOffline: false },
  ].map((each) => ({
    ...each,
    lastSeenWallMs: RAISED_MS,
    reason: undefined,
    certDaysLeft: null,
    authorityDaysLeft: null,
  }));
  const found = metaServerConditions(readings, RAISED_MS / 1_000 + 60, {
    sinceUnix: () => undefined,
    standing: [],
  });
  assert.deepEqual(
    found.map(({ level, detail }) => [level, Object.keys(detail ?? {})]),
    [
      ["warning", ["address", "others", "last_seen"]],
      ["clear", ["address"]],
    ],
  );
});
