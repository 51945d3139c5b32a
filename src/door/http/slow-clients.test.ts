// Clients that hold on to a door: by headers, bodies, answers or many connections.
import assert from "node:assert/strict";
import { createServer } from "node:http";
import { type AddressInfo, connect, type Socket } from "node:net";
import { test } from "node:test";
import { type Clock, systemClock } from "#base/clock.ts";
import { MemoryTree } from "#door/webdav/memory-tree.fixture.ts";
import { hurriedClock } from "#testing/hurried-clock.ts";
import { until } from "#testing/until.ts";
import { basic, sendRaw, startTestDoor, type TestDoor } from "./door.fixture.ts";
import { DOOR_UNPROVEN_PER_NETWORK } from "./door-limits.ts";
import { PacedExchange } from "./paced-exchange.ts";
import { Places } from "./places.ts";

const SIGNED_IN = `Authorization: ${basic()}`;

function open(door: TestDoor, text: string): { readonly socket: Socket; readonly closed: Promise<string> } {
  let answer = "";
  const socket = connect(door.port, "127.0.0.1", () => socket.write(text));
  socket.on("error", () => undefined);
  const closed = new Promise<string>((resolve) => {
    socket.on("data", (part) => {
      answer += part.toString("latin1");
    });
    socket.on("close", () => resolve(answer));
  });
  return { socket, closed };
}

test("a body that trickles is answered 408, and leaves nothing behind", async (t) => {
  const tree = new MemoryTree();
  const door = await startTestDoor({ clock: hurriedClock(100), tree });
  t.after(() => door.stop());
  const head = `PUT /dav/slow HTTP/1.1\r\nHost: ${door.host}\r\n${SIGNED_IN}\r\nContent-Length: 100000\r\n\r\n`;
  const { socket, closed } = open(door, head);
  let trickle: NodeJS.Timeout | undefined;
  // After the head, which is written once there is a connection.
  socket.once("connect", () => {
    trickle = setInterval(() => socket.write("a"), 20);
  });
  const answer = await closed;
  clearInterval(trickle);
  assert.match(answer, /^HTTP\/1.1 408 [^]*too slowly/u);
  assert.equal(await tree.look(["slow"]), undefined);
});

test("a reader that takes nothing loses its connection, and its place", async (t) => {
  const tree = new MemoryTree();
  const door = await startTestDoor({ clock: hurriedClock(100), tree });
  t.after(() => door.stop());
  const bytes = Buffer.alloc(64_000_000);
  async function* body(): AsyncGenerator<Uint8Array> {
    yield await Promise.resolve(bytes);
  }
  const wish = { size: bytes.length, ifMatch: undefined, mustBeNew: false, changedMs: 0 };
  await tree.write(["large"], body(), wish, []);
  const head = `GET /dav/large HTTP/1.1\r\nHost: ${door.host}\r\n${SIGNED_IN}\r\n\r\n`;
  const socket = connect(door.port, "127.0.0.1", () => socket.write(head));
  t.after(() => socket.destroy());
  socket.on("error", () => undefined);
  socket.pause();
  await until(() => door.front.load.underWay === 1);
  await until(() => door.front.load.underWay === 0);
});

test("a cut upload leaves nothing behind and is no error of the door", async (t) => {
  const tree = new MemoryTree();
  const door = await startTestDoor({ tree });
  t.after(() => door.stop());
  const head = `PUT /dav/cut HTTP/1.1\r\nHost: ${door.host}\r\n${SIGNED_IN}\r\nContent-Length: 100000\r\n\r\nabc`;
  const { socket, closed } = open(door, head);
  await until(() => door.front.traffic.in === 3);
  socket.destroy();
  await closed;
  await until(() => door.front.load.underWay === 0);
  assert.equal(await tree.look(["cut"]), undefined);
  assert.doesNotMatch(door.lines.join("\n"), /dav_failed|door_failed/u);
});

test("one network cannot have all connections before it signs in, and goes on once some end", async (t) => {
  const door = await startTestDoor();
  t.after(() => door.stop());
  const idle = Array.from({ length: DOOR_UNPROVEN_PER_NETWORK + 20 }, () => open(door, "GET /dav/"));
  t.after(() => idle.map(({ socket }) => socket.destroy()));
  await until(() => door.connections.turnedAway === 20);
  assert.equal(door.connections.size, DOOR_UNPROVEN_PER_NETWORK);
  idle[0]?.socket.destroy();
  await until(() => door.connections.size < DOOR_UNPROVEN_PER_NETWORK);
  const answer = await sendRaw(
    door.port,
    `GET / HTTP/1.1\r\nHost: ${door.host}\r\nConnection: close\r\n\r\n`,
  );
  assert.match(answer, /^HTTP\/1.1 200 /u);
});

test("a stop lets an upload end that is under way, and takes no new connection", async (t) => {
  const tree = new MemoryTree();
  const door = await startTestDoor({ tree });
  const head = `PUT /dav/last HTTP/1.1\r\nHost: ${door.host}\r\n${SIGNED_IN}\r\nContent-Length: 6\r\n\r\nabc`;
  const { socket, closed } = open(door, head);
  t.after(() => socket.destroy());
  await until(() => door.front.traffic.in === 3);
  const stopped = door.stop(20_000);
  socket.write("def");
  assert.match(await closed, /^HTTP\/1.1 201 /u);
  await stopped;
  assert.equal((await tree.look(["last"]))?.size, 6);
  assert.equal(await sendRaw(door.port, "GET / HTTP/1.1\r\n\r\n"), "");
});

test("places go round among those that wait, and one that gives up leaves the line", async () => {
  const places = new Places({ total: 2, perParty: 1, waiting: 3, waitingPerParty: 2 });
  const { signal } = new AbortController();
  const leaveAlice = await places.take("alice", { gone: signal });
  const second = places.take("alice", { gone: signal });
  const impatient = new AbortController();
  const third = places.take("alice", { gone: impatient.signal });
  await assert.rejects(places.take("alice", { gone: signal }), /too many requests wait/u);
  const leaveBob = await places.take("bob", { gone: signal });
  const rejected = assert.rejects(third, /gone/u);
  impatient.abort();
  await rejected;
  assert.equal(places.used, 2);
  leaveAlice();
  leaveAlice();
  const leaveSecond = await second;
  assert.equal(places.used, 2);
  leaveSecond();
  leaveBob();
  assert.equal(places.used, 0);
});

test("a whole answer of some size goes on while its reader takes it, however slowly", async (t) => {
  const bytes = 24_000_000;
  const traffic = { in: 0, out: 0 };
  const server = createServer((request, response) => {
    const exchange = new PacedExchange(request, response, { url: "/", clock: hurriedClock(30), traffic });
    exchange.setHeader("content-length", bytes);
    exchange.end(Buffer.alloc(bytes));
  });
  await new Promise<void>((listening) => server.listen(0, "127.0.0.1", listening));
  t.after(() => server.close());
  const { port } = server.address() as AddressInfo;
  let taken = 0;
  const socket = connect(port, "127.0.0.1", () => socket.write("GET / HTTP/1.1\r\nHost: a\r\n\r\n"));
  t.after(() => socket.destroy());
  // Some part is taken in each look of the door, and all of it in many times its patience.
  socket.on("data", (part) => {
    taken += part.length;
    socket.pause();
    setTimeout(() => socket.resume(), 10);
  });
  const closed = new Promise<void>((resolve) => socket.once("close", () => resolve()));
  await Promise.race([closed, until(() => taken > bytes)]);
  assert.ok(taken > bytes, `${taken} bytes`);
});

test("an answer is watched once something waits for its reader, and a small one that has left is not", async (t) => {
  let watches = 0;
  const every: Clock["every"] = (intervalMs, look) => {
    watches++;
    const cancel = systemClock.every(intervalMs, look);
    return () => {
      watches--;
      cancel();
    };
  };
  const clock = { ...systemClock, every };
  const seen: number[] = [];
  const server = createServer((request, response) => {
    const bytes = Number(request.url?.slice(1));
    const exchange = new PacedExchange(request, response, { url: "/", clock, traffic: { in: 0, out: 0 } });
    exchange.setHeader("content-length", bytes);
    exchange.end(Buffer.alloc(bytes));
    seen.push(watches);
  });
  await new Promise<void>((listening) => server.listen(0, "127.0.0.1", listening));
  t.after(() => server.close());
  const { port } = server.address() as AddressInfo;
  const ask = (path: string): Socket => {
    const socket = connect(port, "127.0.0.1", () => socket.write(`GET ${path} HTTP/1.1\r\nHost: a\r\n\r\n`));
    t.after(() => socket.destroy());
    return socket.on("error", () => undefined).pause();
  };
  ask("/4096");
  await until(() => seen.length === 1);
  const held = ask("/24000000");
  await until(() => seen.length === 2);
  assert.deepEqual(seen, [0, 1]);
  held.destroy();
  await until(() => watches === 0);
});
