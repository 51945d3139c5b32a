// Tests of connections to a server that lets in and then says nothing.
import assert from "node:assert/strict";
import { createServer, type Socket } from "node:net";
import { type TestContext, test } from "node:test";
import { systemClock } from "#base/clock.ts";
import { until } from "#testing/until.ts";
import { connectToPrimary, type SharedAddress } from "./shared-connection.ts";
import { SharedLine } from "./shared-line.ts";

/** A message of PostgreSQL's protocol. */
function message(type: string, body: string): Buffer {
  const bytes = Buffer.alloc(5 + body.length, body, "latin1");
  bytes.write(type);
  bytes.writeUInt32BE(4 + body.length, 1);
  bytes.write(body, 5, "latin1");
  return bytes;
}

const READY = message("Z", "I");
const LET_IN = Buffer.concat([message("R", "\0\0\0\0"), READY]);
const DONE = Buffer.concat([message("C", "SET\0"), message("C", "SET\0"), READY]);

interface SilentServer {
  readonly address: SharedAddress;
  /** Connections that are open. */
  readonly open: () => number;
  /** Connections that ever were. */
  readonly seen: () => number;
}

/** Lets everybody in, carries out so many statements, and says nothing more. */
async function silentAfter(t: TestContext, statements: number): Promise<SilentServer> {
  const sockets = new Set<Socket>();
  let seen = 0;
  const server = createServer((socket) => {
    seen++;
    sockets.add(socket);
    socket.on("error", () => undefined).on("close", () => sockets.delete(socket));
    let messages = 0;
    socket.on("data", () => {
      if (messages === 0) socket.write(LET_IN);
      else if (messages <= statements) socket.write(DONE);
      messages++;
    });
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  t.after(() => {
    for (const socket of sockets) socket.destroy();
    server.close();
  });
  const { port } = server.address() as { port: number };
  const config = { host: "127.0.0.1", port, user: "grove", password: "", connectionTimeoutMillis: 100 };
  return { address: { config, schema: "s" }, open: () => sockets.size, seen: () => seen };
}

for (const statements of [0, 1]) {
  test(`a server that says nothing after ${statements} statements of a new connection is left for the next one`, {
    timeout: 60_000,
  }, async (t) => {
    const [first, second] = [await silentAfter(t, statements), await silentAfter(t, statements)];
    await assert.rejects(connectToPrimary([first.address, second.address]), /timeout/);
    assert.deepEqual([first.seen(), second.seen()], [1, 1]);
    await until(() => first.open() + second.open() === 0, "the end of both connections");
  });
}

test("a line goes on with a new connection where the first statements of one had no answer", {
  timeout: 60_000,
}, async (t) => {
  const { address, seen } = await silentAfter(t, 0);
  const line = new SharedLine({
    connect: () => connectToPrimary([address]),
    clock: systemClock,
    answerMs: 5_000,
  });
  t.after(() => line.close());
  const asked = [1, 2].map(() => line.run((client) => client.query("SELECT 1")));
  for (const one of asked) await assert.rejects(one, /timeout/);
  assert.equal(seen(), 2);
});
