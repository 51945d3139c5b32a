// Requests that a client sends at once on a connection of HTTP/1.1 happen in their order.
import assert from "node:assert/strict";
import { once } from "node:events";
import { connect } from "node:net";
import { type TestContext, test } from "node:test";
import { MemoryTree } from "#door/webdav/memory-tree.fixture.ts";
import { until } from "#testing/until.ts";
import { HeldTree, requestText, sendRaw, startTestDoor, type TestDoor } from "./door.fixture.ts";

/** A tree that gives a file's first byte and keeps the rest. */
class HalfTree extends MemoryTree {
  override async read(...[path, etag, { start }, take]: Parameters<MemoryTree["read"]>): Promise<void> {
    await super.read(path, etag, { start, end: start + 1 }, take);
    await new Promise(() => undefined);
  }
}

async function doorOf(t: TestContext): Promise<{ readonly door: TestDoor; readonly tree: HeldTree }> {
  const tree = new HeldTree(1);
  const door = await startTestDoor({ tree });
  t.after(() => door.stop());
  return { door, tree };
}

test("of two changes sent at once the second begins when the first has its answer", async (t) => {
  const { door, tree } = await doorOf(t);
  const answers = sendRaw(
    door.port,
    requestText(door, "PUT /dav/a", "first") + requestText(door, "PUT /dav/a", "second", "Connection: close"),
  );
  await until(() => door.front.load.underWay === 2);
  for (let turn = 0; turn < 20; turn++) await new Promise(setImmediate);
  assert.equal(await tree.look(["a"]), undefined, "the second waits");
  tree.letGo();
  const statuses = [...(await answers).matchAll(/^HTTP\/1\.1 (\d+)/gmu)].map(([, status]) => status);
  assert.deepEqual(statuses, ["201", "204"]);
  const { etag = "", size = 0 } = (await tree.look(["a"])) ?? {};
  const parts: Uint8Array[] = [];
  await tree.read(["a"], etag, { start: 0, end: size }, (bytes) => {
    parts.push(...bytes);
    return true;
  });
  assert.equal(Buffer.concat(parts).toString(), "second");
});

test("a change that waits behind another is not begun once its client has gone", async (t) => {
  const { door, tree } = await doorOf(t);
  await tree.makeCollection(["b"], []);
  const socket = connect(door.port, "127.0.0.1");
  t.after(() => socket.destroy());
  await once(socket, "connect");
  socket.write(requestText(door, "PUT /dav/a", "first") + requestText(door, "DELETE /dav/b", ""));
  await until(() => door.front.load.underWay === 2);
  socket.resetAndDestroy();
  await until(() => door.front.load.underWay === 0);
  tree.letGo();
  for (let turn = 0; turn < 20; turn++) await new Promise(setImmediate);
  assert.notEqual(await tree.look(["b"]), undefined);
});

test("a change behind an answer that ends the connection is not done (RFC 9112, section 9.6)", async (t) => {
  const { door, tree } = await doorOf(t);
  tree.letGo();
  await tree.makeCollection(["b"], []);
  await tree.makeCollection(["c"], []);
  const answers = await sendRaw(
    door.port,
    // The body that nobody reads has the connection end.
    requestText(door, "MKCOL /dav/a", "body") +
      requestText(door, "DELETE /dav/b") +
      requestText(door, "DELETE /dav/c"),
  );
  assert.deepEqual(answers.match(/^HTTP\/1\.1 \d+/gmu), ["HTTP/1.1 415"]);
  await until(() => door.front.load.underWay === 0);
  for (const name of ["b", "c"]) assert.notEqual(await tree.look([name]), undefined, name);
});

test("what is no HTTP and comes within an answer adds nothing to its bytes", async (t) => {
  const tree = new HalfTree();
  const door = await startTestDoor({ tree });
  t.after(() => door.stop());
  await tree.create(["a"], { data: Buffer.from("all of it"), changedMs: 0, tokens: [] });
  const request = requestText(door, "GET /dav/a", "", "Range: bytes=0-8");
  const socket = connect(door.port, "127.0.0.1", () => socket.write(request));
  let answer = "";
  socket.on("data", (part) => {
    if (answer === "") socket.write("\0 no HTTP\r\n\r\n");
    answer += part.toString("latin1");
  });
  socket.on("error", () => undefined);
  await new Promise((resolve) => socket.once("close", resolve));
  assert.match(answer, /^HTTP\/1\.1 206 [^]*\r\n\r\na?$/u);
});

test("a request on its way at a stop has its answer, which ends the connection, and idle ones end soon", async (t) => {
  const { door, tree } = await doorOf(t);
  tree.letGo();
  const answers = Array.from({ length: 3 }, () => "");
  const sockets = answers.map((_, at) =>
    connect(door.port, "127.0.0.1").on("data", (part: Buffer) => {
      answers[at] += part.toString("latin1");
    }),
  );
  t.after(() => {
    for (const socket of sockets) socket.destroy();
  });
  const ends = sockets.map((socket) => once(socket, "close"));
  for (const socket of sockets) socket.write(requestText(door, "OPTIONS /dav/"));
  await until(() => answers.every((answer) => answer.endsWith("\r\n\r\n")));
  for (const [at, socket] of sockets.slice(1).entries()) socket.write(requestText(door, `MKCOL /dav/${at}`));
  await door.stop(60_000);
  await Promise.all(ends);
  const statuses = answers.map((answer) =>
    [...answer.matchAll(/^HTTP\/1\.1 (\d+)/gmu)].map(([, code]) => code),
  );
  assert.deepEqual(statuses, [["200"], ["200", "201"], ["200", "201"]]);
  for (const answer of answers.slice(1)) assert.match(answer, /201 Created[^]*\r\nconnection: close\r\n/iu);
});

test("the answer to a request that a stop finds under way says that it ends the connection", async (t) => {
  const { door, tree } = await doorOf(t);
  const answers = sendRaw(
    door.port,
    requestText(door, "PUT /dav/a", "first") + requestText(door, "PUT /dav/b", "second"),
  );
  await until(() => door.front.load.underWay === 2);
  const stopped = door.stop(60_000);
  tree.letGo();
  await stopped;
  const ends = (await answers)
    .split(/(?=HTTP\/1\.1 201)/u)
    .map((answer) => /^connection: (.*)\r$/imu.exec(answer)?.[1]);
  assert.deepEqual(ends, ["keep-alive", "close"]);
});
