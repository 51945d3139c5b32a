// The node's HTTP listener: its answers, their access rules, and its port.
import assert from "node:assert/strict";
import { request } from "node:http";
import { after, before, test } from "node:test";
import { ManualClock } from "#base/clock.ts";
import { silentLogger } from "#base/log.ts";
import { knownHostOf } from "#fileserver/front/known-host.ts";
import { startMetricsListener } from "#fileserver/front/metrics-listener.ts";
import { startTestNode, type TestNode, type TestUser } from "./node.fixture.ts";

let open: TestNode;
let guarded: TestNode;
let user: TestUser;
before(async () => {
  open = await startTestNode({ env: { SVC_ADMIN_EMAIL: "admin@example.com" } });
  guarded = await startTestNode({ options: { metricsToken: "the-token" } });
  user = await open.signIn("a@example.com");
  await guarded.signIn("a@example.com");
});
after(async () => {
  await open.stop();
  await guarded.stop();
});

const get = async (node: TestNode, path: string, init: RequestInit = {}) => {
  const response = await fetch(`http://127.0.0.1:${node.node.metricsPort}${path}`, init);
  const text = await response.text();
  return { status: response.status, body: (text === "" ? {} : JSON.parse(text)) as Record<string, unknown> };
};

/** All names of spec 2.7. */
const FIELDS =
  "disk_total_bytes disk_used_bytes disk_free_bytes disk_usage_percent per_user_storage per_user_quota users_assigned_count " +
  "active_users cpu_temp_celsius cpu_usage_percent mem_used_bytes mem_total_bytes mem_usage_percent load_avg_1m load_avg_5m " +
  "uptime_seconds last_restart_unix chunk_count active_connections bytes_written_total bytes_read_total write_ops_total " +
  "read_ops_total errors_total failed_writes_total failed_reads_total op_latency_write_ms_p50 op_latency_write_ms_p95 " +
  "op_latency_write_ms_p99 op_latency_read_ms_p50 op_latency_read_ms_p95 op_latency_read_ms_p99";

test("/metrics has every field of spec 2.7, and the usage and quota of each user", async () => {
  await user.call.createFile({ path: "/f", data: Buffer.alloc(1_234) });
  const { status, body } = await get(open, "/metrics");
  assert.equal(status, 200);
  for (const field of FIELDS.split(" ")) assert.ok(field in body, field);
  assert.deepEqual(body["per_user_storage"], { "a@example.com": 1_234 });
  assert.deepEqual(body["per_user_quota"], { "a@example.com": 17_179_869_184 });
  assert.deepEqual([body["users_assigned_count"], body["active_users"]], [1, 1]);
  assert.ok(Number(body["active_connections"]) >= 1);
});

test("a quota that is set shows in per_user_quota at once, exact to 64 bits (spec 2.1, T17)", async () => {
  const admin = await open.signIn("admin@example.com");
  const reply = await admin.call.setQuota({ username: "a@example.com", quotaBytes: 2n ** 64n - 1n });
  assert.equal(reply.success, true);
  const { body } = await get(open, "/metrics");
  assert.equal((body["per_user_quota"] as Record<string, unknown>)["a@example.com"], "18446744073709551615");
});

test("with SVC_METRICS_TOKEN only its bearer sees users and security events (T8)", async () => {
  const maps = ["per_user_storage", "per_user_quota", "per_user_detail"];
  for (const authorization of [undefined, "Bearer wrong", "Bearer ", "Basic the-token", "the-token"]) {
    const init = authorization === undefined ? {} : { headers: { authorization } };
    const { status, body } = await get(guarded, "/metrics", init);
    assert.equal(status, 200);
    assert.equal(body["users_assigned_count"], 1);
    for (const map of maps) assert.ok(!(map in body), map);
    assert.equal((await get(guarded, "/security-events", init)).status, 401);
  }
  const init = { headers: { authorization: "Bearer the-token" } };
  const { body } = await get(guarded, "/metrics", init);
  for (const map of maps) assert.ok(map in body, map);
  assert.deepEqual((await get(guarded, "/security-events", init)).body, { events: [] });
});

/** An answer to a request that names a host of its own. */
const asHost = (
  at: { readonly host: string; readonly port: number },
  path: string,
  host: string,
): Promise<{ status: number; text: string }> =>
  new Promise((resolve, reject) => {
    request({ ...at, path, headers: { host } }, (response) => {
      let text = "";
      response.setEncoding("utf8").on("data", (part: string) => {
        text += part;
      });
      response.on("end", () => resolve({ status: response.statusCode ?? 0, text }));
    })
      .on("error", reject)
      .end();
  });

test("a node that listens on its own machine tells nothing about users under a foreign name (T8)", async () => {
  const { metricsPort: port } = open.node;
  const at = { host: "127.0.0.1", port };
  for (const host of [`127.0.0.1:${port}`, "127.0.0.1", `LocalHost:${port}`, `[::1]:${port}`]) {
    assert.match((await asHost(at, "/metrics", host)).text, /a@example\.com/, host);
    assert.equal((await asHost(at, "/audit", host)).status, 200, host);
  }
  for (const host of [
    `rebound.example:${port}`,
    "rebound.example",
    "localhost.rebound.example",
    "127.0.0.1.rebound.example",
  ]) {
    const { status, text } = await asHost(at, "/metrics", host);
    assert.equal(status, 200);
    assert.match(text, /"users_assigned_count":\d/);
    assert.doesNotMatch(text, /example\.com/, host);
    assert.doesNotMatch((await asHost(at, "/metrics/prometheus", host)).text, /example\.com/, host);
    for (const path of ["/audit", "/security-events"])
      assert.equal((await asHost(at, path, host)).status, 421, host);
    assert.equal((await asHost(at, "/health", host)).status, 200);
  }
});

test("a node that others reach, or that is advertised by a name, is asked by that name", () => {
  assert.ok(knownHostOf({ host: "0.0.0.0" }, undefined)("any.example", "127.0.0.1"));
  assert.ok(knownHostOf({ host: "n1.example.net" }, undefined)("any.example", "192.0.2.1"));
  const isKnown = knownHostOf({ host: "127.0.0.1" }, "N1.example.net:50051");
  const hosts = ["n1.example.net:9051", "n1.example.net", "n2.example.net", undefined];
  assert.deepEqual(
    hosts.map((host) => isKnown(host, "127.0.0.1")),
    [true, true, false, true],
  );
});

test("a node that listens by a name of its own machine is asked by that name, as it is advertised then", () => {
  const isKnown = knownHostOf({ host: "N1.example.net" }, undefined);
  assert.ok(isKnown("n1.example.net:9051", "127.0.1.1"));
  assert.equal(isKnown("rebound.example:9051", "127.0.1.1"), false);
});

test("a node listens on its own machine alone however its address is written, or named", async () => {
  const log = silentLogger;
  for (const host of ["LocalHost", "0:0:0:0:0:0:0:1", "::ffff:127.0.0.1"]) {
    const listener = await startMetricsListener(
      {
        metrics: () => assert.fail(),
        securityEvents: () => [],
        audit: () => assert.fail(),
        notReady: () => [],
        token: undefined,
        isKnownHost: knownHostOf({ host }, undefined),
        clock: new ManualClock(),
        log,
      },
      { host, port: 0 },
    );
    const { port } = listener.address;
    assert.equal((await asHost({ host, port }, "/security-events", "rebound.example")).status, 421, host);
    assert.equal((await asHost({ host, port }, "/security-events", `localhost:${port}`)).status, 200, host);
    await listener.close();
  }
});

test("an answer has a version, and ?since= it the next one lists users that changed, for several askers (D25)", async () => {
  const node = await startTestNode({ options: { metricsToken: "the-token" } });
  const headers = { authorization: "Bearer the-token" };
  const ask = async (path: string, init: RequestInit = { headers }) => {
    const answer = await fetch(`http://127.0.0.1:${node.node.metricsPort}${path}`, init);
    const version = answer.headers.get("etag")?.slice(1, -1);
    return { version, body: (await answer.json()) as Record<string, Record<string, unknown>> };
  };
  const listed = ({ body }: { body: Record<string, Record<string, unknown>> }): unknown =>
    ["users_since", "per_user_storage", "per_user_quota"].map((name) => body[name]);
  try {
    const [a, b] = [await node.signIn("a@example.com"), await node.signIn("b@example.com")];
    await a.call.createFile({ path: "/f", data: Buffer.alloc(10) });
    await b.call.createFile({ path: "/f", data: Buffer.alloc(20) });
    const quota = 17_179_869_184;
    const all = [
      undefined,
      { "a@example.com": 10, "b@example.com": 20 },
      { "a@example.com": quota, "b@example.com": quota },
    ];
    const first = await ask("/metrics");
    assert.deepEqual(listed(first), all);
    await a.call.createFile({ path: "/g", data: Buffer.alloc(1) });
    const second = await ask(`/metrics?since=${first.version}`);
    assert.deepEqual(listed(second), [first.version, { "a@example.com": 11 }, {}]);
    assert.equal(second.body["users_assigned_count"], 2);
    assert.ok(!("near_quota_storage" in second.body), "none of them is near, nor was");
    await b.call.createFile({ path: "/g", data: Buffer.alloc(2) });
    const changes = { "a@example.com": 11, "b@example.com": 22 };
    assert.deepEqual(listed(await ask(`/metrics?since=${first.version}`)), [first.version, changes, {}]);
    assert.deepEqual(listed(await ask(`/metrics?since=${second.version}`)), [
      second.version,
      { "b@example.com": 22 },
      {},
    ]);
    const strange = [
      `${first.version?.slice(0, -1)}999`,
      `users-${"0".repeat(16)}-1`,
      "",
      "1",
      "users--1",
      "%00",
    ];
    for (const since of strange) {
      const [, ...maps] = all;
      assert.deepEqual(listed(await ask(`/metrics?since=${since}`)), [undefined, changes, maps[1]], since);
    }
    const bare = await ask(`/metrics?since=${first.version}`, {});
    assert.deepEqual(
      [bare.version, ...(listed(bare) as unknown[])],
      [undefined, undefined, undefined, undefined],
    );
    const text = await fetch(`http://127.0.0.1:${node.node.metricsPort}/metrics?since=${first.version}`, {
      headers: { ...headers, accept: "text/plain" },
    });
    assert.equal(text.headers.get("etag"), null);
    assert.match(await text.text(), /svc_user_used_bytes\{user="a@example.com"\} 11/);
  } finally {
    await node.stop();
  }
});

test("/health is ok as long as the process answers, /ready says why it takes no calls (spec 4.4, D12)", async () => {
  const node = await startTestNode();
  try {
    assert.deepEqual(await get(node, "/health"), { status: 200, body: { status: "ok" } });
    assert.deepEqual(await get(node, "/ready"), { status: 200, body: { ready: true, reasons: [] } });
    node.node.state.drain();
    assert.deepEqual(await get(node, "/ready"), {
      status: 503,
      body: { ready: false, reasons: ["draining"] },
    });
    node.node.state.fence("elsewhere");
    assert.deepEqual((await get(node, "/ready")).body["reasons"], ["fenced: elsewhere"]);
    assert.deepEqual(await get(node, "/health"), { status: 200, body: { status: "ok" } });
  } finally {
    await node.stop();
  }
});

test("a wrong administrator's password shows among the security events (D22)", async () => {
  await open.anonymous.setQuota(
    { username: "a@example.com", quotaBytes: 1n },
    { metadata: { "x-admin-password-hash": "0".repeat(64) } },
  );
  const { body } = await get(open, "/security-events");
  const [event] = body["events"] as Record<string, unknown>[];
  assert.deepEqual([event?.["type"], event?.["ip_seen"]], ["admin_hash_failed", "127.0.0.1"]);
});

test("other paths and methods are refused, and queries are ignored", async () => {
  assert.equal((await get(open, "/")).status, 404);
  assert.equal((await get(open, "/metrics/../health")).status, 200);
  assert.equal((await get(open, "/health?x=1")).status, 200);
  assert.equal((await get(open, "/metrics", { method: "POST", body: "x" })).status, 405);
  assert.equal((await get(open, "/metrics", { method: "HEAD" })).status, 200);
});

const fetchText = async (node: TestNode, path: string, headers: Record<string, string> = {}) => {
  const response = await fetch(`http://127.0.0.1:${node.node.metricsPort}${path}`, { headers });
  return {
    type: response.headers.get("content-type"),
    vary: response.headers.get("vary"),
    text: await response.text(),
  };
};

test("Prometheus text comes at its own path, and at /metrics to whom prefers it (D12)", async () => {
  const own = await fetchText(open, "/metrics/prometheus");
  assert.equal(own.type, "text/plain; version=0.0.4; charset=utf-8");
  assert.match(own.text, /^svc_users_assigned 2$/m);
  assert.match(own.text, /^svc_user_used_bytes\{user="a@example.com"\} 1234$/m);
  const asked = await fetchText(open, "/metrics", { accept: "text/plain;version=0.0.4;q=0.3,*/*;q=0.2" });
  assert.deepEqual([asked.type, asked.vary], [own.type, "Accept, Authorization"]);
  const newer = await fetchText(open, "/metrics", { accept: "application/openmetrics-text; version=1.0.0" });
  assert.equal(newer.type, "application/openmetrics-text; version=1.0.0; charset=utf-8");
  assert.ok(newer.text.endsWith("# EOF\n"));
  const browser = await fetchText(open, "/metrics", { accept: "text/html,*/*;q=0.8" });
  assert.equal(browser.type, "application/json; charset=utf-8");
});

test("with SVC_METRICS_TOKEN the Prometheus form hides users too (T8)", async () => {
  for (const path of ["/metrics/prometheus", "/metrics"]) {
    const accept = "application/openmetrics-text";
    const bare = await fetchText(guarded, path, { accept });
    assert.match(bare.text, /^svc_users_assigned 1$/m);
    assert.doesNotMatch(bare.text, /example\.com|svc_user_/);
    const shown = await fetchText(guarded, path, { accept, authorization: "Bearer the-token" });
    assert.match(shown.text, /svc_user_quota_bytes\{user="a@example.com"\} 17179869184/);
  }
});

test("one address has 16 connections, all together 16 answers under way, and a reader that does not read 15 seconds (B-02, B-06)", async () => {
  const clock = new ManualClock();
  const asked: number[] = [];
  const listener = await startMetricsListener(
    {
      metrics: () => {
        asked.push(clock.steadyMs());
        return new Promise<never>(() => {});
      },
      securityEvents: () => [],
      audit: () => Promise.resolve({ lines: [], nextAfter: 0, headSeq: 0 }),
      notReady: () => [],
      token: undefined,
      isKnownHost: () => true,
      clock,
      log: silentLogger,
    },
    { host: "127.0.0.1", port: 0 },
  );
  const ask = (path: string, localAddress = "127.0.0.1"): Promise<number | string> =>
    new Promise((resolve) => {
      request(
        { host: "127.0.0.1", port: listener.address.port, path, localAddress, agent: false },
        (response) => {
          response.resume();
          resolve(response.statusCode ?? 0);
        },
      )
        .on("error", () => resolve("cut off"))
        .end();
    });
  const isAsked = async (count: number): Promise<void> => {
    while (asked.length < count) await new Promise((resolve) => setImmediate(resolve));
  };
  try {
    const held = Array.from({ length: 15 }, () => ask("/metrics"));
    await isAsked(15);
    assert.equal(await ask("/health"), 200);
    held.push(ask("/metrics"));
    await isAsked(16);
    assert.equal(await ask("/health"), "cut off");
    assert.equal(await ask("/health", "127.0.0.2"), 503);
    clock.advance(14_999);
    assert.equal(await ask("/health", "127.0.0.2"), 503);
    clock.advance(1);
    assert.deepEqual(await Promise.all(held), Array(16).fill("cut off"));
    assert.equal(await ask("/health"), 200);
  } finally {
    await listener.close();
  }
});
