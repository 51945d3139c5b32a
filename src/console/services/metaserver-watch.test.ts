// Tests the watch of a MetaServer: late at once, offline after 30 s, back with its next answer, alerted.
import assert from "node:assert/strict";
import { createServer, type Server } from "node:http";
import { after, test } from "node:test";
import { ManualClock } from "#base/clock.ts";
import { startFakeNode } from "#base/fake-nodes.fixture.ts";
import { NODE_OFFLINE_AFTER_MS, POLL_INTERVAL_MS } from "#base/limits.ts";
import { silentLogger } from "#base/log.ts";
import { METRICS_PORT_OFFSET } from "#base/metrics-port.ts";
import { MetaServerWatch } from "#console/cluster/metaserver-watch.ts";
import { until } from "#testing/until.ts";
import { startService } from "./alert-service.fixture.ts";

const ends: (() => Promise<unknown>)[] = [];
after(async () => {
  for (const end of ends.toReversed()) await end();
});

/** A listener beside a gRPC port that answers every request with this status. */
async function listener(): Promise<{
  server: Server;
  port: number;
  status: { now: number };
  /** What /metrics has of certificates. */
  days: Record<string, unknown>;
  asked: string[];
}> {
  const node = await startFakeNode("m");
  const port = Number(new URL(node.metricsUrl).port);
  await node.close();
  const [status, asked]: [{ now: number }, string[]] = [{ now: 200 }, []];
  const days: Record<string, unknown> = {};
  const server = createServer((request, response) => {
    asked.push(`${request.url} ${request.headers.authorization ?? "without a token"}`);
    const body = request.url === "/metrics" ? days : { status: "ok" };
    response.writeHead(status.now, { "content-type": "application/json" }).end(JSON.stringify(body));
  });
  await new Promise<void>((resolve) => server.listen(port, "127.0.0.1", resolve));
  ends.push(() => new Promise((resolve) => server.close(resolve)));
  ends.push(() => Promise.resolve(server.closeAllConnections()));
  return { server, port, status, days, asked };
}

test("a MetaServer that does not answer is late at once, offline after 30 s, and well with its next answer", async () => {
  const { port, status, asked } = await listener();
  const clock = new ManualClock();
  const address = { host: "127.0.0.1", port: port + METRICS_PORT_OFFSET };
  const watch = new MetaServerWatch({ addresses: [address], clock, log: silentLogger });
  ends.push(() => Promise.resolve(watch.close()));
  const state = (): string => {
    const [reading] = watch.readings();
    return `${reading?.isLate} ${reading?.isOffline} ${reading?.reason ?? "well"}`;
  };
  const round = async (): Promise<string> => {
    clock.advance(POLL_INTERVAL_MS);
    await until(() => !watch.isAsking);
    return state();
  };
  assert.equal(state(), "true false it has not been asked yet");
  await until(() => !watch.isAsking);
  assert.equal(state(), "false false well");
  assert.deepEqual(asked, ["/health without a token", "/metrics without a token"]);
  status.now = 500;
  assert.equal(await round(), "true false the answer has status 500");
  for (let ms = POLL_INTERVAL_MS; ms < NODE_OFFLINE_AFTER_MS; ms += POLL_INTERVAL_MS) {
    assert.equal(await round(), "true false the answer has status 500");
  }
  assert.equal(await round(), "true true the answer has status 500");
  status.now = 200;
  assert.equal(await round(), "false false well");
});

test("that the console itself stood still is no silence of a MetaServer", async () => {
  const { port, status } = await listener();
  status.now = 500;
  const clock = new ManualClock();
  const address = { host: "127.0.0.1", port: port + METRICS_PORT_OFFSET };
  const watch = new MetaServerWatch({ addresses: [address], clock, log: silentLogger });
  ends.push(() => Promise.resolve(watch.close()));
  await until(() => !watch.isAsking);
  clock.standStill(10 * NODE_OFFLINE_AFTER_MS);
  await until(() => !watch.isAsking);
  assert.equal(watch.readings()[0]?.isOffline, false);
});

test("the service raises one alert for a MetaServer that is away, tells its way back, and drops one that is not watched any more", async () => {
  const now = { isLate: true, isOffline: false, lastSeenWallMs: 1_790_000_000_000, reason: "refused" };
  const days = { certDaysLeft: null, authorityDaysLeft: null };
  let addresses = ["a:50050"];
  const { round, service } = await startService(ends, ["n1"], {
    metaServers: () => addresses.map((address) => ({ address, ...now, ...days })),
  });
  assert.deepEqual(await round({ n1: {} }), []);
  now.isOffline = true;
  assert.deepEqual(await round({ n1: {} }), ["raised metaserver_offline:a:50050 critical"]);
  assert.deepEqual(await round({ n1: {} }), []);
  const [seen] = service.list("visitor", { types: new Set(["metaserver_offline"]) }, {}).alerts;
  assert.deepEqual([seen?.key, seen?.title], ["metaserver_offline", "A MetaServer is offline"]);
  Object.assign(now, { isLate: false, isOffline: false, reason: undefined });
  const over = ["resolved metaserver_offline:a:50050 critical", "recorded metaserver_offline:a:50050 info"];
  assert.deepEqual(await round({ n1: {} }), over);
  Object.assign(now, { isLate: true, isOffline: true });
  await round({ n1: {} });
  const ids = service
    .list("visitor", { types: new Set(["metaserver_offline"]) }, {})
    .alerts.map(({ id }) => id);
  assert.equal(new Set(ids).size, 3);
  addresses = [];
  assert.deepEqual(await round({ n1: {} }), over);
});

test("the certificates of MetaServers and the authority's have an alert before their end, which names no address to visitors (B-11)", async () => {
  const { port, days, status } = await listener();
  const clock = new ManualClock();
  const address = { host: "127.0.0.1", port: port + METRICS_PORT_OFFSET };
  const watch = new MetaServerWatch({ addresses: [address], clock, log: silentLogger });
  ends.push(() => Promise.resolve(watch.close()));
  await until(() => !watch.isAsking);
  const { round, service } = await startService(ends, ["n1"], { metaServers: () => watch.readings() });
  const after = async (told: Record<string, unknown>): Promise<string[]> => {
    Object.assign(days, told);
    for (let ms = 0; ms < 60_000; ms += POLL_INTERVAL_MS) {
      clock.advance(POLL_INTERVAL_MS);
      await until(() => !watch.isAsking);
    }
    return (await round({ n1: {} })).filter((event) => event.includes("cert_expiring"));
  };
  assert.deepEqual(await round({ n1: {} }), [], "nothing was told yet");
  assert.deepEqual(await after({ cert_days_left: 80, authority_days_left: 3_000 }), []);
  assert.deepEqual(await after({ cert_days_left: 13 }), ["raised cert_expiring:a metaserver warning"]);
  assert.deepEqual(await after({ authority_days_left: 1 }), ["raised cert_expiring:the authority critical"]);
  const seen = service.list("visitor", { types: new Set(["cert_expiring"]) }, {}).alerts;
  assert.doesNotMatch(JSON.stringify(seen), /127\.0\.0\.1/);
  const [authority] = service.list("operator", { types: new Set(["cert_expiring"]) }, {}).alerts;
  assert.match(authority?.message ?? "", /Make a new one in time/);
  // One that is away has told what it had.
  status.now = 500;
  assert.deepEqual(await after({}), []);
  status.now = 200;
  assert.deepEqual(await after({ cert_days_left: 89 }), [
    "resolved cert_expiring:a metaserver warning",
    "recorded cert_expiring:a metaserver info",
  ]);
});
