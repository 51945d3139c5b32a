// What one connection may hold of the console: few requests without answers, and no answer that it does not take.
import assert from "node:assert/strict";
import { once } from "node:events";
import { connect, type Socket } from "node:net";
import { type TestContext, test } from "node:test";
import { systemClock } from "#base/clock.ts";
import { createAuthority } from "#security/authority/authority.ts";
import { scratchFolder } from "#testing/scratch-folder.ts";
import { until } from "#testing/until.ts";
import { type AppUnderTest, startApp } from "./app.fixture.ts";

/** A console whose one address answers nothing, and how many requests have come there. */
async function startHeld(
  t: TestContext,
): Promise<{ readonly held: AppUnderTest; readonly came: () => number }> {
  let came = 0;
  const held = await startApp((app) => {
    app.get("/held", { config: { auth: "public" }, schema: { hide: true } }, () => {
      came++;
      return new Promise(() => undefined);
    });
  });
  t.after(held.close);
  return { held, came: () => came };
}

function sendTo({ url }: AppUnderTest, requests: number): Socket {
  const { host, port } = new URL(url);
  const text = `GET /held HTTP/1.1\r\nHost: ${host}\r\n\r\n`.repeat(requests);
  return connect(Number(port), "127.0.0.1", function (this: Socket) {
    this.write(text);
  }).on("error", () => undefined);
}

/** Resolves with a connection's end, by a reset too. */
function endOf(socket: Socket): Promise<void> {
  return new Promise((resolve) => socket.once("close", () => resolve()));
}

test("a connection that sends many requests at once is ended, and what it sent is not done", async (t) => {
  const { held, came } = await startHeld(t);
  await endOf(sendTo(held, 1_000));
  assert.ok(came() <= 4, String(came()));
  assert.equal((await held.ask("/api/nothing")).status, 404);
});

test("a connection that does not take its answer is ended after five minutes", async (t) => {
  const { held, came } = await startHeld(t);
  const socket = sendTo(held, 1);
  await until(() => came() === 1);
  held.clock.advance(299_999);
  assert.equal(socket.closed, false);
  const closed = endOf(socket);
  held.clock.advance(1);
  await closed;
});

test("a connection whose TLS handshake does not end is ended", async (t) => {
  const authority = await createAuthority(scratchFolder("https-"), { clock: systemClock });
  const { certificatePem, keyPem } = await authority.issueNodeCertificate({ id: "console" });
  const tls = { cert: certificatePem, key: keyPem };
  const { url, close } = await startApp(() => undefined, { tls, handshakeMs: 50 });
  t.after(close);
  // A record's head and the first bytes of a ClientHello of 196.
  const begun = Buffer.concat([Buffer.from("16030100c8010000c40303", "hex"), Buffer.alloc(32)]);
  const socket = connect(Number(new URL(url).port), "127.0.0.1", () => socket.write(begun));
  socket.on("error", () => undefined).resume();
  await endOf(socket);
});

test("requests on their way at a stop have their answers, which end their connections, and idle ones end soon", async (t) => {
  const ways: string[] = [];
  const { app, url, close } = await startApp((plugged) => {
    plugged.get("/kept", { config: { auth: "public" }, schema: { hide: true } }, () => ({}));
    plugged.post("/done", { config: { auth: "public" }, schema: { hide: true } }, ({ body }) => {
      ways.push(String(body));
      return {};
    });
  });
  t.after(close);
  const { host, port } = new URL(url);
  const answers = ["", "", "", ""];
  const sockets = answers.map((_, at) =>
    connect(Number(port), "127.0.0.1").on("data", (part: Buffer) => {
      answers[at] += part.toString("latin1");
    }),
  );
  const ends = sockets.map((socket) => endOf(socket));
  for (const socket of sockets) socket.write(`GET /kept HTTP/1.1\r\nHost: ${host}\r\n\r\n`);
  await until(() => answers.every((answer) => answer.endsWith("{}")));
  const post = `POST /done HTTP/1.1\r\nHost: ${host}\r\nContent-Type: application/json\r\nContent-Length: 1\r\n\r\n`;
  for (const [at, socket] of sockets.slice(2).entries()) socket.write(`${post}${at}`);
  const closed = app.close();
  await until(() => !app.server.listening);
  sockets[1]?.write(
    `GET /ws/none HTTP/1.1\r\nHost: ${host}\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n`,
  );
  await closed;
  await Promise.all(ends);
  assert.deepEqual(ways.toSorted(), ["0", "1"]);
  const statuses = answers.map((answer) =>
    [...answer.matchAll(/HTTP\/1\.1 (\d+)/gu)].map(([, code]) => code),
  );
  assert.deepEqual(statuses, [["200"], ["200", "404"], ["200", "200"], ["200", "200"]]);
  for (const answer of answers.slice(1)) assert.match(answer, /HTTP[^]*HTTP[^]*\r\nconnection: close\r\n/iu);
});

test("half a request does not hold a console that stops", async () => {
  const { app, url, clock } = await startApp(() => undefined);
  const socket = connect(Number(new URL(url).port), "127.0.0.1").on("error", () => undefined);
  const ended = endOf(socket);
  const came = once(app.server, "connection") as Promise<[Socket]>;
  socket.write("GET / HTTP/1.1\r\n");
  const [arrived] = await came;
  await until(() => arrived.bytesRead > 0);
  const closed = app.close();
  await until(() => !app.server.listening);
  clock.advance(5_000);
  await Promise.all([closed, ended]);
});

test("the answer to a request that a stop finds under way ends its connection", async () => {
  const letGo = Promise.withResolvers<object>();
  let came = 0;
  const held = await startApp((app) => {
    app.get("/held", { config: { auth: "public" }, schema: { hide: true } }, () => {
      came++;
      return letGo.promise;
    });
  });
  let answer = "";
  const socket = sendTo(held, 1).on("data", (part: Buffer) => {
    answer += part.toString("latin1");
  });
  const ended = endOf(socket);
  await until(() => came === 1);
  const closed = held.app.close();
  await until(() => !held.app.server.listening);
  letGo.resolve({});
  await Promise.all([closed, ended]);
  assert.match(answer, /^HTTP\/1\.1 200 [^]*\r\nconnection: close\r\n/iu);
});
