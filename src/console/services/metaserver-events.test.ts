// Tests that an attempt at a MetaServer becomes one alert, for operators only (spec 5.7, D22).
import assert from "node:assert/strict";
import { after, test } from "node:test";
import { setImmediate as turn } from "node:timers/promises";
import { ADDRESS_REREAD_INTERVAL_MS } from "#base/limits.ts";
import { silentLogger } from "#base/log.ts";
import type { SecurityReport } from "#metaserver/directory/directory.ts";
import { type ServiceUnderTest, startService } from "./alert-service.fixture.ts";
import { NODE_FORGOTTEN_MS } from "./gone-nodes.ts";
import { watchMetaServers } from "./metaserver-events.ts";

const ends: (() => Promise<unknown>)[] = [];
after(async () => {
  for (const end of ends.toReversed()) await end();
});

const ID = "01K5YDWV000000000000000000";
const reported = (source: string, count: number, more: object = {}): SecurityReport => {
  const event = {
    id: ID,
    ts: 1,
    type: "mock_token",
    fatal: true,
    username: null,
    ip_bound: null,
    ip_seen: "203.0.113.7",
    count,
  };
  return { source, document: JSON.stringify({ events: [{ ...event, ...more }] }) };
};

/** A service over these reports; `read` waits for the next poll. */
async function watched(
  reports: SecurityReport[],
): Promise<ServiceUnderTest & { read: () => Promise<void>; fail: { with?: Error } }> {
  const service = await startService(ends, ["n1"]);
  const { clock } = service;
  const fail: { with?: Error } = {};
  const securityReports = async (): Promise<SecurityReport[]> => {
    if (fail.with !== undefined) throw fail.with;
    return reports;
  };
  const end = watchMetaServers({
    directory: { securityReports },
    alerts: service.service,
    clock,
    log: silentLogger,
  });
  ends.push(async () => end());
  const settle = async (): Promise<void> => {
    for (let turns = 0; turns < 5; turns++) await turn();
    await service.service.saved();
  };
  await settle();
  return {
    ...service,
    fail,
    async read() {
      clock.advance(ADDRESS_REREAD_INTERVAL_MS);
      await settle();
    },
  };
}

test("a mock token at a MetaServer is one critical alert, which names it and no node, and counts on", async () => {
  const reports = [reported("meta.example:50050", 3)];
  const { service, read, fail, clock } = await watched(reports);
  const latest = () => service.list("operator", { types: new Set(["mock_token"]) }, {}).alerts[0];
  const [alert, ...others] = service.list("operator", {}, {}).alerts;
  assert.deepEqual(others, []);
  assert.deepEqual(
    [alert?.key, alert?.severity, alert?.node_id, alert?.raised_count],
    ["mock_token:metaserver:meta.example:50050", "critical", undefined, 3],
  );
  assert.equal(alert?.title, "Somebody tried a mock token on the MetaServer meta.example:50050");
  assert.match(
    alert?.message ?? "",
    /^The MetaServer meta\.example:50050 rejected 3 mock tokens from 203\.0\.113\.7\./,
  );
  await read();
  fail.with = new Error("away");
  await read();
  delete fail.with;
  await read();
  assert.equal(latest()?.raised_count, 3, "read again is no news");
  reports[0] = reported("meta.example:50050", 5);
  await read();
  assert.equal(latest()?.raised_count, 5);
  clock.advance(NODE_FORGOTTEN_MS * 2);
  await read();
  assert.equal(latest()?.resolved, false, "no node is missing");
  assert.deepEqual(service.list("visitor", { types: new Set(["mock_token"]) }, {}).alerts, []);
  assert.equal(service.summary("visitor").for_operators, 0);
});

test("what one has told in no valid form keeps no other's from being read", async () => {
  const { service } = await watched([
    { source: "a:1", document: "{" },
    { source: "b:1", document: '{"events":7}' },
    reported("c:1", 1, { count: "many" }),
    reported("d:1", 1),
  ]);
  assert.deepEqual(
    service.list("operator", {}, {}).alerts.map(({ key }) => key),
    ["mock_token:metaserver:d:1"],
  );
});
