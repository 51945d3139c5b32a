// The MetaServer's HTTP listener: liveness, the store's state, and days of its certificates (B-11, D18).
import assert from "node:assert/strict";
import { Agent, get } from "node:http";
import { test } from "node:test";
import { ManualClock } from "#base/clock.ts";
import { DAY_MS } from "#base/duration.ts";
import { silentLogger } from "#base/log.ts";
import { VERSION } from "#base/version.ts";
import { createClient } from "#wire/grpc/client.ts";
import { MetaServer } from "#wire/proto/gen/grove/v1/meta_server_pb.ts";
import { nodeMessage, startForTest } from "./meta-server.fixture.ts";
import { startStatusListener } from "./status-listener.ts";

test("/metrics has cert_days_left, the authority's days and the nodes by version", async (t) => {
  const server = await startForTest(t);
  const client = createClient(MetaServer, server.channel());
  await client.registerFileServer(nodeMessage("a", { version: "0.1.0" }));
  await client.registerFileServer(nodeMessage("b", { version: "0.2.0" }));
  const clock = new ManualClock();
  const listener = await startStatusListener(
    {
      directory: server.directory,
      certDaysLeft: () => 60,
      authorityEndsWallMs: clock.wallMs() + 10 * DAY_MS,
      clock,
      log: silentLogger,
    },
    { host: "127.0.0.1", port: 0 },
  );
  t.after(() => listener.close());
  const base = `http://127.0.0.1:${listener.address.port}`;
  const get = async (path: string, method = "GET"): Promise<[number, unknown]> => {
    const answer = await fetch(base + path, { method });
    const text = await answer.text();
    return [answer.status, text === "" ? undefined : JSON.parse(text)];
  };
  clock.advance(5_000);
  assert.deepEqual(await get("/metrics"), [
    200,
    {
      version: VERSION,
      uptime_seconds: 5,
      cert_days_left: 60,
      authority_days_left: 9,
      store_available: true,
      nodes_known: 2,
      nodes_live: 2,
      node_versions: { "0.1.0": 1, "0.2.0": 1 },
    },
  ]);
  assert.deepEqual(await get("/health"), [200, { status: "ok" }]);
  assert.deepEqual(await get("/ready?x"), [200, { ready: true, reasons: [] }]);
  assert.equal((await get("/metrics", "POST"))[0], 405);
  assert.equal((await get("/x"))[0], 404);
});

test("one address has 16 connections to it, another still gets its answer (B-02)", async (t) => {
  const listener = await startStatusListener(
    {
      directory: { nodes: () => Promise.resolve([]), watch: () => () => {} },
      certDaysLeft: () => null,
      authorityEndsWallMs: undefined,
      clock: new ManualClock(),
      log: silentLogger,
    },
    { host: "127.0.0.1", port: 0 },
  );
  t.after(() => listener.close());
  const { port } = listener.address;
  const ask = (agent: Agent | false, localAddress: string): Promise<number | "cut off"> =>
    new Promise((resolve) => {
      get({ host: "127.0.0.1", port, path: "/health", localAddress, agent }, (response) => {
        response.resume();
        resolve(response.statusCode ?? 0);
      }).on("error", () => resolve("cut off"));
    });
  const agent = new Agent({ keepAlive: true });
  t.after(() => agent.destroy());
  const held = Array.from({ length: 16 }, () => ask(agent, "127.0.0.1"));
  assert.deepEqual(await Promise.all(held), Array(16).fill(200));
  assert.equal(await ask(false, "127.0.0.1"), "cut off");
  assert.equal(await ask(false, "127.0.0.2"), 200);
});
