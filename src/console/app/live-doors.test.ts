// Tests access to WebSockets and their end: origins, sessions, caps, silence, shutdown (D8, D17, W-07).
import assert from "node:assert/strict";
import { once } from "node:events";
import { request as httpRequest, type IncomingMessage } from "node:http";
import { type TestContext, test } from "node:test";
import type { HubDeps } from "#console/live/hub.ts";
import { TrustedProxies } from "#os/client-address.ts";
import { type LiveUnderTest, startLive } from "./live.fixture.ts";

async function start(t: TestContext, overrides: Partial<HubDeps> = {}): Promise<LiveUnderTest> {
  const live = await startLive(overrides);
  t.after(() => live.close());
  return live;
}

/** Lets frames arrive. */
async function travel(): Promise<void> {
  // Many short turns: after one long wait a stalled process would see its deadline before its sockets.
  for (let turn = 0; turn < 20; turn++) await new Promise((resolve) => setTimeout(resolve, 1));
}

test("a page of another site is closed with 4403 whatever it shows, and its ticket stays unused (D8, W-07)", async (t) => {
  const live = await start(t);
  const host = live.url.replace("http://", "");
  const ticket = "cd".repeat(32);
  live.tickets.set(ticket, live.session);
  const foreign: Record<string, string>[] = [
    { origin: "http://evil.example" },
    { origin: "null" },
    { origin: `https://${host}` },
    { origin: `http://${host}.evil.example` },
    { origin: `http://${host}`, "sec-fetch-site": "cross-site" },
    { origin: "http://evil.example", cookie: `svc_admin_token=${live.token}` },
    { origin: "http://evil.example", authorization: `Bearer ${live.token}` },
  ];
  for (const headers of foreign) {
    for (const path of ["/ws/cluster", "/ws/actions"]) {
      const socket = await live.open(path, { headers, protocols: ["svc.v1", `ticket.${ticket}`] });
      assert.equal(await socket.closed, 4403, JSON.stringify(headers));
      assert.deepEqual(socket.received, []);
    }
  }
  assert.ok(live.tickets.has(ticket));
  // Programs send no origin; a page cannot omit it.
  for (const headers of [
    {},
    { origin: `http://${host}` },
    { origin: `HTTP://${host}`, "sec-fetch-site": "same-origin" },
  ]) {
    const socket = await live.open("/ws/cluster", { headers });
    await socket.next("hello");
    socket.socket.close();
  }
});

test("/ws/actions is for operators: everybody else is answered 401 before the upgrade (spec 4.1, 5.8.3)", async (t) => {
  const live = await start(t);
  const ended = live.sessions.create("0".repeat(64));
  live.sessions.end(ended.session);
  const ways: { headers?: Record<string, string>; protocols?: string[] }[] = [
    {},
    { headers: { cookie: "svc_admin_token=1" } },
    { headers: { authorization: `Bearer ${"0".repeat(64)}` } },
    { headers: { cookie: `svc_admin_token=${ended.token}` } },
    { headers: { origin: "http://evil.example" } },
    {
      headers: { cookie: `svc_admin_token=${live.token}` },
      protocols: ["svc.v1", `ticket.${"0".repeat(64)}`],
    },
  ];
  for (const way of ways) {
    await assert.rejects(live.open("/ws/actions", way), /status 401/, JSON.stringify(way));
    await assert.rejects(live.open("/ws/%61ctions", way), /status 401/, JSON.stringify(way));
  }
  assert.deepEqual([live.hub.counts.visitors, live.hub.counts.operators], [0, 0]);
  live.tickets.set("t", live.session);
  await (await live.open("/ws/actions", { protocols: ["svc.v1", "ticket.t"] })).next("hello");
  const operator = await live.openAsOperator("/ws/actions");
  await operator.next("hello");
  live.hub.broadcastSnapshot();
  await travel();
  assert.deepEqual(
    operator.received.map(({ type }) => type),
    ["hello"],
  );
});

test("a visitor whose cookie is of a session that is over sees what visitors see", async (t) => {
  const live = await start(t);
  live.sessions.end(live.session);
  const visitor = await live.openAsOperator("/ws/cluster");
  assert.equal((await visitor.next("hello")).data["session_expires_at"], null);
});

test("signing out closes the session's sockets with 4401, and no other (decision D3)", async (t) => {
  const live = await start(t);
  const other = live.sessions.create("0".repeat(64));
  const mine = await live.openAsOperator("/ws/cluster");
  const actions = await live.openAsOperator("/ws/actions");
  const others = await live.open("/ws/cluster", { headers: { authorization: `Bearer ${other.token}` } });
  const visitor = await live.open("/ws/cluster");
  live.sessions.end(live.session);
  assert.deepEqual([await mine.closed, await actions.closed], [4401, 4401]);
  await travel();
  assert.deepEqual([others.socket.readyState, visitor.socket.readyState], [1, 1]);
});

test("a session is told five minutes before its end, and its sockets are closed at the end (D8)", async (t) => {
  const live = await start(t, { isSessionLive: () => true });
  const open = async (minutes: number) => {
    const expiresAtWallMs = live.clock.wallMs() + minutes * 60_000;
    const endsSteadyMs = live.clock.steadyMs() + minutes * 60_000;
    live.tickets.set("t", { ...live.session, expiresAtWallMs, endsSteadyMs });
    const socket = await live.open("/ws/cluster", { protocols: ["svc.v1", "ticket.t"] });
    await socket.next("hello");
    return { ...socket, expires_at: Math.floor(expiresAtWallMs / 1000) };
  };
  const [six, five] = [await open(6), await open(5)];
  const pass = async (seconds: number): Promise<void> => {
    for (let left = seconds; left > 0; left -= 20) {
      live.clock.advance(Math.min(left, 20) * 1_000);
      await travel();
    }
  };
  // A jump of the wall clock changes no session's end.
  live.clock.jumpWall(86_400_000);
  await pass(59);
  assert.ok(!six.received.some(({ type }) => type === "session.expiring"));
  await pass(1);
  assert.deepEqual((await six.next("session.expiring")).data, { expires_at: six.expires_at });
  await pass(239);
  assert.deepEqual([six.socket.readyState, five.socket.readyState], [1, 1]);
  await pass(1);
  // A client that connects in the last five minutes has read the end in its hello.
  assert.deepEqual(
    [await five.closed, five.received.some(({ type }) => type === "session.expiring")],
    [4401, false],
  );
  await pass(60);
  assert.equal(await six.closed, 4401);
  assert.equal(six.received.filter(({ type }) => type === "session.expiring").length, 1);
});

test("a socket that is opened after the wall clock was set stays open as long as its session (W-04, C-01)", async (t) => {
  const live = await start(t);
  // A machine without a clock of its own hears of the time after the operator has signed in.
  live.clock.jumpWall(86_400_000);
  const operator = await live.openAsOperator("/ws/cluster");
  await operator.next("hello");
  live.clock.advance(20_000);
  await travel();
  assert.equal(operator.socket.readyState, 1);
  live.clock.jumpWall(-2 * 86_400_000);
  live.tickets.set("t", { ...live.session, endsSteadyMs: live.clock.steadyMs() + 40_000 });
  const ending = await live.open("/ws/cluster", { protocols: ["svc.v1", "ticket.t"] });
  await ending.next("hello");
  for (let turn = 0; turn < 2; turn++) {
    live.clock.advance(20_000);
    await travel();
  }
  assert.equal(await ending.closed, 4401);
});

test("a session that ended without a word is noticed within 30 s (W-07)", async (t) => {
  let isLive = true;
  const live = await start(t, { isSessionLive: () => isLive });
  const operator = await live.openAsOperator("/ws/cluster");
  await operator.next("hello");
  isLive = false;
  live.clock.advance(29_000);
  await travel();
  assert.equal(operator.socket.readyState, 1);
  live.clock.advance(1_000);
  assert.equal(await operator.closed, 4401);
});

test("sockets are pinged each 20 s, and one of which nothing is heard for 60 s is closed with 4408 (D8)", async (t) => {
  const live = await start(t);
  const mute = await live.open("/ws/cluster", { autoPong: false });
  const alive = await live.open("/ws/cluster");
  await Promise.all([mute.next("hello"), alive.next("hello")]);
  for (let i = 0; i < 3; i++) {
    const pinged = once(mute.socket, "ping");
    live.clock.advance(20_000);
    await pinged;
    await travel();
  }
  assert.deepEqual([mute.socket.readyState, alive.socket.readyState], [1, 1]);
  live.clock.advance(1_000);
  assert.equal(await mute.closed, 4408);
  assert.equal(alive.socket.readyState, 1);
});

test("a console that stood still closes no socket for it", async (t) => {
  const live = await start(t);
  const mute = await live.open("/ws/cluster", { autoPong: false });
  await mute.next("hello");
  live.clock.advance(30_000);
  live.clock.standStill(3_600_000);
  await travel();
  assert.equal(mute.socket.readyState, 1);
  live.clock.advance(30_000);
  assert.equal(await mute.closed, 4408);
});

test("one address has 20 sockets of visitors; operators come in beside them, and a place that is free again is given (D17)", async (t) => {
  const live = await start(t);
  const visitors = await Promise.all(Array.from({ length: 20 }, () => live.open("/ws/cluster")));
  await assert.rejects(live.open("/ws/cluster"), /status 429/);
  // An invented ticket grants no session.
  await assert.rejects(
    live.open("/ws/cluster", { protocols: ["svc.v1", `ticket.${"0".repeat(64)}`] }),
    /status 429/,
  );
  await (await live.openAsOperator("/ws/cluster")).next("hello");
  assert.deepEqual(
    [live.hub.counts.visitors, live.hub.counts.operators, live.hub.counts.refused],
    [20, 1, 2],
  );
  visitors[0]?.socket.close();
  await visitors[0]?.closed;
  await travel();
  await (await live.open("/ws/cluster")).next("hello");
});

test("the addresses of one /64 count as one, those of another /64 do not (D17)", async (t) => {
  const live = await startLive(
    { limits: { socketsPerAddress: 2 } },
    { proxies: new TrustedProxies(["127.0.0.1"]) },
  );
  t.after(() => live.close());
  const from = (address: string) => live.open("/ws/cluster", { headers: { "x-forwarded-for": address } });
  await from("2001:db8::1");
  await from("2001:db8::2:3");
  await assert.rejects(from("2001:db8::4"), /status 429/);
  await from("2001:db8:0:1::4");
  await from("192.0.2.1");
});

test("visitors leave places to operators, and nobody is let in beyond the last (D17)", async (t) => {
  const live = await start(t, { limits: { sockets: 4, socketsForOperators: 2 } });
  await live.open("/ws/cluster");
  await live.open("/ws/cluster");
  await assert.rejects(live.open("/ws/cluster"), /status 429/);
  await live.openAsOperator("/ws/cluster");
  await live.openAsOperator("/ws/actions");
  await assert.rejects(live.openAsOperator("/ws/cluster"), /status 429/);
});

test("whoever comes without an upgrade gets a problem document", async (t) => {
  const live = await start(t);
  const answers = [
    [await live.ask("/ws/cluster"), 400, "BAD_REQUEST"],
    [await live.ask("/ws/actions"), 401, "AUTH_REQUIRED"],
    [await live.askAsOperator("/ws/actions"), 400, "BAD_REQUEST"],
    [await live.ask("/ws/cluster", { method: "POST", body: {} }), 405, "METHOD_NOT_ALLOWED"],
    [await live.ask("/ws/other"), 404, "NO_SUCH_ROUTE"],
  ] as const;
  for (const [{ status, problem }, expected, code] of answers)
    assert.deepEqual([status, problem?.code], [expected, code]);
  await assert.rejects(live.open("/ws/other"), /status 404/);
  await assert.rejects(live.open("/api/none"), /status 404/);
  // Some clients offer HTTP/2 with every request: the offer is ignored.
  const offer = { connection: "upgrade, http2-settings", upgrade: "h2c", "http2-settings": "AAMAAABk" };
  assert.equal((await live.ask("/api/users", { headers: offer })).problem?.code, "AUTH_REQUIRED");
  assert.equal((await live.ask("/ws/cluster", { headers: offer })).problem?.code, "BAD_REQUEST");
});

test("a handshake that is none gets a problem document too (D2)", async (t) => {
  const live = await start(t);
  const upgrade = { connection: "upgrade", upgrade: "websocket" };
  const key = { "sec-websocket-key": "dGhlIHNhbXBsZSBub25jZQ==" };
  for (const headers of [upgrade, { ...upgrade, ...key, "sec-websocket-version": "7" }]) {
    const request = httpRequest(`${live.url}/ws/cluster`, { headers });
    request.end();
    const [answer] = (await once(request, "response")) as [IncomingMessage];
    assert.equal(answer.statusCode, 400);
    assert.equal(answer.headers["content-type"], "application/problem+json; charset=utf-8");
    assert.equal(answer.headers["sec-websocket-version"], "13, 8");
    const problem = JSON.parse(Buffer.concat(await answer.toArray()).toString()) as { code: string };
    assert.equal(problem.code, "BAD_REQUEST");
  }
});

test("nothing is compressed, whatever a client offers (W-07)", async (t) => {
  const live = await start(t);
  const socket = await live.open("/ws/cluster", { perMessageDeflate: true });
  assert.equal(socket.socket.extensions, "");
});

test("a stop closes all sockets with 1001 and lets nobody in meanwhile", async (t) => {
  const live = await start(t);
  const sockets = [await live.open("/ws/cluster"), await live.openAsOperator("/ws/actions")];
  const stopped = live.hub.close();
  await assert.rejects(live.open("/ws/cluster"), /status 503/);
  assert.deepEqual(await Promise.all(sockets.map(({ closed }) => closed)), [1001, 1001]);
  await stopped;
});
