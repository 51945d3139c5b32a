// Tests hostile clients and readers that do not read: other sockets are unaffected (D8, D17, W-07).
import assert from "node:assert/strict";
import { connect, type Socket } from "node:net";
import { type TestContext, test } from "node:test";
import { ProblemError } from "#console/http/route.ts";
import type { HubDeps } from "#console/live/hub.ts";
import { LIVE_REQUESTS_PER_WINDOW } from "#console/live/live-client.ts";
import { LIVE_BUFFER_MAX_BYTES, LiveOutbox } from "#console/live/live-outbox.ts";
import { LIVE_TOPICS_PER_SOCKET } from "#console/live/live-requests.ts";
import type { AlertRecord } from "#wire/webapi/alert.ts";
import { problem } from "#wire/webapi/problem.ts";
import { type LiveUnderTest, startLive } from "./live.fixture.ts";

async function start(t: TestContext, overrides: Partial<HubDeps> = {}): Promise<LiveUnderTest> {
  const live = await startLive(overrides);
  t.after(() => live.close());
  return live;
}

async function travel(): Promise<void> {
  // Many short turns: after one long wait a stalled process would see its deadline before its sockets.
  for (let turn = 0; turn < 20; turn++) await new Promise((resolve) => setTimeout(resolve, 1));
}

function alert(message: string): AlertRecord {
  return {
    id: "01",
    timestamp: 1,
    severity: "info",
    type: "node_online",
    title: "t",
    message,
    resolved: true,
    key: "node_online:a",
    raised_count: 1,
  };
}

test("what is no message gets an error message, and the socket goes on (D8)", async (t) => {
  const live = await start(t);
  const visitor = await live.open("/ws/cluster");
  const nonsense: [string, string][] = [
    ["", "BAD_JSON"],
    ["{", "BAD_JSON"],
    ["null", "REQUEST_INVALID"],
    ["[]", "REQUEST_INVALID"],
    ['{"type":"hello"}', "REQUEST_INVALID"],
    ['{"type":"resume"}', "REQUEST_INVALID"],
    ['{"type":"resume","after_seq":-1}', "REQUEST_INVALID"],
    ['{"type":"resume","after_seq":1e300}', "REQUEST_INVALID"],
    ['{"type":"pong","more":1}', "REQUEST_INVALID"],
    ['{"type":"subscribe","node":"a"}', "REQUEST_INVALID"],
    ['{"type":"subscribe","action_id":"a"}', "AUTH_REQUIRED"],
    [`{"__proto__":{"type":"pong"}}`, "REQUEST_INVALID"],
    [`"${"x".repeat(4_094)}"`, "REQUEST_INVALID"],
  ];
  for (const [text, code] of nonsense) {
    visitor.say(text);
    const { data } = await visitor.next("error");
    assert.deepEqual([text, problem.parse(data).code], [text, code]);
  }
  visitor.say({ type: "pong" });
  live.hub.broadcastSnapshot();
  await visitor.next("metrics.snapshot");
  assert.equal(visitor.socket.readyState, 1);
});

test("a message above 4 KiB, a binary one, bytes that are no text and a flood end the socket that sent them (D8)", async (t) => {
  const live = await start(t);
  const bystander = await live.open("/ws/cluster");
  const visitor = () => live.open("/ws/cluster");
  const large = await visitor();
  large.say("x".repeat(4_097));
  assert.equal(await large.closed, 1009);
  const binary = await visitor();
  binary.socket.send(Buffer.from("{}"));
  assert.equal(await binary.closed, 1003);
  const broken = await visitor();
  broken.socket.send(Buffer.from([0xff, 0xfe]), { binary: false });
  assert.equal(await broken.closed, 1007);
  const fragments = await visitor();
  for (let i = 0; i < 4_097; i++) fragments.socket.send("x", { fin: false });
  assert.equal(await fragments.closed, 1009);
  const talker = await visitor();
  for (let i = 0; i <= LIVE_REQUESTS_PER_WINDOW; i++) talker.say({ type: "pong" });
  assert.equal(await talker.closed, 1008);
  const pinger = await visitor();
  for (let i = 0; i < 12_000; i++) pinger.socket.ping();
  await travel();
  await until(live, () => live.hub.counts.closedByCode.get(1008) === 2);
  assert.notEqual(await pinger.closed, 1000);
  await bystander.next("hello");
  assert.equal(bystander.socket.readyState, 1);
});

/** Advances the clock by seconds until a condition holds. */
async function until(live: LiveUnderTest, isSo: () => boolean): Promise<void> {
  for (let i = 0; i < 50 && !isSo(); i++) {
    live.clock.advance(1_000);
    await travel();
  }
}

test("as many messages as are allowed in ten seconds are allowed in each ten seconds", async (t) => {
  const live = await start(t);
  const talker = await live.open("/ws/cluster");
  for (let window = 0; window < 3; window++) {
    for (let i = 0; i < LIVE_REQUESTS_PER_WINDOW; i++) talker.say({ type: "pong" });
    await travel();
    live.clock.advance(10_000);
  }
  await travel();
  assert.equal(talker.socket.readyState, 1);
});

/** Opens a raw socket that reads nothing after the answer to its upgrade. */
async function openDeaf(live: LiveUnderTest, path = "/ws/cluster"): Promise<Socket> {
  const { hostname, port } = new URL(live.url);
  const socket = connect({
    host: hostname,
    port: Number(port),
    onread: { buffer: Buffer.alloc(4_096), callback: () => false },
  });
  socket.on("error", () => undefined);
  socket.write(
    `GET ${path} HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n` +
      "Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n",
  );
  const before = live.hub.counts.visitors;
  while (live.hub.counts.visitors === before) await travel();
  return socket;
}

test("a reader that does not read is closed with 4429 when a mebibyte of events waits for it; the others get everything (D8)", async (t) => {
  const live = await start(t);
  const deaf = await openDeaf(live);
  const reader = await live.open("/ws/cluster");
  await reader.next("hello");
  const text = "x".repeat(8_192);
  let told = 0;
  while (!live.hub.counts.closedByCode.has(4429) && told < 4_000) {
    live.hub.alertEvent({ kind: "raised", alert: alert(text), public: alert(text) });
    told++;
    if (told % 50 === 0) await travel();
  }
  assert.equal(live.hub.counts.closedByCode.get(4429), 1);
  for (let i = 0; i < told; i++) await reader.next("alert.raised");
  assert.equal(reader.socket.readyState, 1);
  live.clock.advance(4_000);
  deaf.destroy();
  while (live.hub.counts.visitors > 1) await travel();
});

test("snapshots alone close no slow reader: it gets the newest when it reads again", async (t) => {
  const live = await start(t);
  const slow = await live.open("/ws/cluster");
  await slow.next("metrics.snapshot");
  slow.socket.pause();
  const filler = "x".repeat(400_000);
  const rounds = 60;
  for (let round = 1; round <= rounds; round++) {
    live.cluster.visitor = { nodes: [round, filler], cluster: {} };
    live.hub.broadcastSnapshot();
    await travel();
  }
  assert.deepEqual([...live.hub.counts.closedByCode], []);
  slow.socket.resume();
  let newest = 0;
  while (newest < rounds)
    newest = Number(((await slow.next("metrics.snapshot")).data["nodes"] as unknown[])[0]);
  assert.ok(slow.received.length < rounds, `${slow.received.length} messages`);
});

test("the outbox keeps order, drops a snapshot before an event, and is full one byte beyond a mebibyte (D8)", () => {
  const box = new LiveOutbox();
  const large = Buffer.alloc(LIVE_BUFFER_MAX_BYTES * 3, "s");
  box.setSnapshot(large);
  assert.equal(box.next()?.message, large);
  const half = Buffer.alloc(LIVE_BUFFER_MAX_BYTES / 2, "e");
  const [first, second] = [Buffer.from("first"), Buffer.from("second")];
  box.setSnapshot(first);
  assert.ok(box.addEvent(half));
  box.setSnapshot(second);
  // The newer snapshot replaces the older one, behind the event.
  const event = box.next();
  assert.equal(event?.message, half);
  assert.equal(box.next()?.message, second);
  assert.equal(box.next(), undefined);
  box.setSnapshot(second);
  assert.ok(box.addEvent(Buffer.alloc(LIVE_BUFFER_MAX_BYTES / 2 - 6)));
  assert.equal(box.addEvent(Buffer.alloc(1)), true);
  assert.equal(box.addEvent(Buffer.alloc(5)), true);
  assert.equal(box.addEvent(Buffer.alloc(1)), false);
  event?.taken();
  assert.equal(box.eventBytes, LIVE_BUFFER_MAX_BYTES / 2 + 1);
  const sizes: number[] = [];
  for (let next = box.next(); next !== undefined; next = box.next()) sizes.push(next.message.length);
  assert.deepEqual(sizes, [LIVE_BUFFER_MAX_BYTES / 2 - 6, 1, 5, 1]);
});

test("operators follow topics: what is kept, then what comes, until they stop; others hear nothing of it (D8)", async (t) => {
  const live = await start(t);
  const idle: string[] = [];
  live.hub.addSource({
    open: (request) => {
      if (!("action_id" in request)) return undefined;
      if (request.action_id === "gone") throw new ProblemError("NO_SUCH_ACTION", "that one is gone");
      const data = { id: request.action_id, after: request.after_seq };
      const kept = { type: "action.output", seq: 7, data };
      return { topic: `action:${request.action_id}`, backlog: () => [kept] };
    },
    idle: (topic) => idle.push(topic),
  });
  const follower = await live.openAsOperator("/ws/actions");
  const other = await live.openAsOperator("/ws/actions");
  follower.say({ type: "subscribe", action_id: "A", after_seq: 3 });
  const kept = await follower.next("action.output");
  assert.deepEqual([kept.seq, kept.data], [7, { id: "A", after: 3 }]);
  follower.say({ type: "subscribe", action_id: "A" });
  follower.say({ type: "subscribe", action_id: "gone" });
  assert.equal((await follower.next("error")).data["code"], "NO_SUCH_ACTION");
  follower.say({ type: "subscribe", node: "n", service: "fileserver" });
  assert.equal((await follower.next("error")).data["code"], "NO_SUCH_NODE");
  live.hub.publish("action:A", { type: "action.state", seq: 8, data: { id: "A" } });
  live.hub.publish("action:B", { type: "action.state", seq: 1, data: { id: "B" } });
  assert.equal((await follower.next("action.state")).seq, 8);
  for (let i = 1; i < LIVE_TOPICS_PER_SOCKET; i++) follower.say({ type: "subscribe", action_id: `a${i}` });
  follower.say({ type: "subscribe", action_id: "too many" });
  assert.equal((await follower.next("error")).data["code"], "RATE_LIMITED");
  follower.say({ type: "unsubscribe", action_id: "A" });
  // Messages of a socket are handled in order: after this answer the topic is left.
  follower.say({ type: "subscribe", node: "n", service: "fileserver" });
  assert.equal((await follower.next("error")).data["code"], "NO_SUCH_NODE");
  live.hub.publish("action:A", { type: "action.state", seq: 9, data: { id: "A" } });
  await travel();
  assert.equal(follower.received.filter(({ type }) => type === "action.state").length, 1);
  follower.socket.close();
  while (idle.length < LIVE_TOPICS_PER_SOCKET) await travel();
  assert.equal(new Set(idle).size, LIVE_TOPICS_PER_SOCKET);
  assert.deepEqual(
    other.received.map(({ type }) => type),
    ["hello"],
  );
});

test("a snapshot is serialised once for all who get it, and those who come in between share it (D8)", async (t) => {
  const live = await start(t, { limits: { socketsPerAddress: 100 } });
  const sockets = await Promise.all(Array.from({ length: 60 }, () => live.open("/ws/cluster")));
  for (const socket of sockets) await socket.next("metrics.snapshot");
  assert.equal(live.serialised.count, 1);
  live.cluster.visitor = { nodes: ["later"], cluster: {} };
  live.hub.broadcastSnapshot();
  for (const socket of sockets)
    assert.deepEqual((await socket.next("metrics.snapshot")).data, live.cluster.visitor);
  assert.equal(live.serialised.count, 2);
  await (await live.open("/ws/cluster")).next("metrics.snapshot");
  assert.equal(live.serialised.count, 2);
});

test("two clusters that differ only in what visitors may not know send them the same bytes (spec 5.8.4, W-09)", async (t) => {
  const heard: string[][] = [];
  for (const name of ["bob@example.com", "alice@example.com"]) {
    const live = await start(t);
    live.cluster.operator = { nodes: [name], cluster: {} };
    const visitor = await live.open("/ws/cluster");
    const operator = await live.openAsOperator("/ws/cluster");
    await Promise.all([visitor.next("hello"), operator.next("hello")]);
    for (let i = 0; i < (name.startsWith("bob") ? 1 : 5); i++) {
      live.hub.alertEvent({ kind: "raised", alert: alert(name), public: undefined });
      operator.say({ type: "nonsense" });
    }
    live.hub.alertEvent({ kind: "raised", alert: alert(name), public: alert("a node") });
    live.hub.broadcastSnapshot();
    visitor.say({ type: "resume", after_seq: 0 });
    visitor.say("{");
    await visitor.next("alert.raised");
    await visitor.next("error");
    await travel();
    heard.push(visitor.raw);
  }
  assert.deepEqual(heard[0], heard[1]);
  assert.equal(heard[0]?.length, 5);
});
