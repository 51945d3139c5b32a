// One connection with many requests takes no turns from others, and ends where it guesses.
import assert from "node:assert/strict";
import { once } from "node:events";
import { connect } from "node:net";
import { type TestContext, test } from "node:test";
import { until } from "#testing/until.ts";
import { basic, HeldTree, requestText, sendRaw, startTestDoor, type TestDoor } from "./door.fixture.ts";
import {
  DOOR_REFUSALS_PER_CONNECTION,
  DOOR_REQUESTS_UNANSWERED,
  DOOR_UNPROVEN_REQUESTS_PER_TURN,
} from "./door-limits.ts";

async function doorOf(t: TestContext): Promise<TestDoor> {
  const door = await startTestDoor();
  t.after(() => door.stop());
  return door;
}

function requestBy(door: TestDoor, password: string): string {
  const authorization = basic({ username: "alice@example.com", password });
  const lines = [
    "PROPFIND /dav/ HTTP/1.1",
    `Host: ${door.host}`,
    `Authorization: ${authorization}`,
    "Depth: 0",
  ];
  return `${lines.join("\r\n")}\r\n\r\n`;
}

const statusesIn = (answers: string): string[] =>
  [...answers.matchAll(/^HTTP\/1\.1 (\d+)/gmu)].map(([, status = ""]) => status);

/** Sends requests one after the other and returns their statuses, up to the end of the connection. */
async function statusesOneByOne(
  t: TestContext,
  door: TestDoor,
  requests: readonly string[],
): Promise<string[]> {
  const socket = connect(door.port, "127.0.0.1");
  t.after(() => socket.destroy());
  const ended = once(socket, "close").then(() => "the end" as const);
  const statuses: string[] = [];
  for (const request of requests) {
    socket.write(request);
    const came = await Promise.race([once(socket, "data"), ended]);
    if (came === "the end") break;
    statuses.push(...statusesIn(String(came[0])));
  }
  return statuses;
}

const guesses = (door: TestDoor, count: number): string[] =>
  Array.from({ length: count }, (_, at) => requestBy(door, `guess ${at}`));

test("a connection ends with its twentieth wrong password", async (t) => {
  const door = await doorOf(t);
  const statuses = await statusesOneByOne(t, door, guesses(door, 25));
  assert.deepEqual(statuses, Array<string>(DOOR_REFUSALS_PER_CONNECTION).fill("401"));
});

test("a hundred requests at once on a connection without a sign-in end it, and most are not looked at", async (t) => {
  const door = await doorOf(t);
  await sendRaw(door.port, guesses(door, 100).join(""));
  await until(() => door.front.load.underWay === 0);
  const begun = door.front.answered.values().reduce((sum, count) => sum + count, 0);
  assert.equal(begun, DOOR_UNPROVEN_REQUESTS_PER_TURN);
});

test("right passwords in between keep a connection, such as one with several people behind it", async (t) => {
  const door = await doorOf(t);
  const wrong = guesses(door, 12);
  const right = requestBy(door, "right password");
  const statuses = await statusesOneByOne(t, door, [...wrong, right, ...wrong, right]);
  const refused = Array<string>(12).fill("401");
  assert.deepEqual(statuses, [...refused, "207", ...refused, "207"]);
});

test("one read of a connection with thousands of requests is answered in a turn, then others are heard", async (t) => {
  const door = await doorOf(t);
  const request = `GET /health HTTP/1.1\r\nHost: ${door.host}\r\nX-A: ${"a".repeat(1_000)}\r\n\r\n`;
  const requests = 3_000;
  const flood = connect(door.port, "127.0.0.1");
  t.after(() => flood.destroy());
  await once(flood, "connect");
  flood.write(requestBy(door, "right password"));
  await once(flood, "data");
  flood.resume();
  flood.write(request.repeat(requests));
  const answered = (): number => door.front.answered.get(200) ?? 0;
  let most = 0;
  for (let before = 0; before < requests; ) {
    await new Promise(setImmediate);
    const now = answered();
    most = Math.max(most, now - before);
    before = now;
  }
  // libuv reads 65,536 bytes at a time.
  assert.ok(most <= 65_536 / request.length + 1, `${most} were answered in one turn`);
});

test("a connection with many requests behind one that takes long is read no further until some are answered", async (t) => {
  const tree = new HeldTree(1);
  const door = await startTestDoor({ tree });
  t.after(() => door.stop());
  const socket = connect(door.port, "127.0.0.1");
  t.after(() => socket.destroy());
  await once(socket, "connect");
  socket.write(requestBy(door, "right password"));
  await until(() => tree.underWay === 1);
  const request = `GET /health HTTP/1.1\r\nHost: ${door.host}\r\nX-A: ${"a".repeat(400)}\r\n\r\n`;
  const requests = 5_000;
  const parts: string[] = [];
  socket.on("data", (part) => parts.push(String(part)));
  socket.write(request.repeat(requests));
  await until(() => door.front.load.underWay >= DOOR_REQUESTS_UNANSWERED);
  for (let turn = 0; turn < 100; turn++) await new Promise(setImmediate);
  // libuv reads 65,536 bytes at a time.
  const most = DOOR_REQUESTS_UNANSWERED + 65_536 / request.length + 1;
  assert.ok(door.front.load.underWay <= most, `${door.front.load.underWay} wait`);
  assert.deepEqual(parts, []);
  tree.letGo();
  // A status line may lie in two parts.
  await until(() => door.front.load.underWay === 0 && statusesIn(parts.join("")).length === requests + 1);
});

test("requests that come behind a large answer are answered once that is taken", async (t) => {
  const door = await doorOf(t);
  const size = 20_000_000;
  await sendRaw(door.port, requestText(door, "PUT /dav/a", "a".repeat(size), "Connection: close"));
  const socket = connect(door.port, "127.0.0.1").pause();
  t.after(() => socket.destroy());
  await once(socket, "connect");
  socket.write(requestText(door, "GET /dav/a"));
  const more = requestText(door, "GET /health").repeat(10);
  for (const underWay of [1, 11]) {
    await until(() => door.front.load.underWay === underWay);
    // Until the answer stands still, and the door has read what it wants.
    for (let turn = 0; turn < 200; turn++) await new Promise(setImmediate);
    socket.write(more);
  }
  let last = "";
  socket.on("data", (part) => {
    last = (last + part.toString("latin1")).slice(-16_384);
  });
  socket.resume();
  const end = "a".repeat(64);
  const statuses = (): string[] => statusesIn(last.slice(last.lastIndexOf(end) + end.length));
  await until(() => socket.closed || statuses().length === 20);
  assert.deepEqual(statuses(), Array<string>(20).fill("200"));
});
