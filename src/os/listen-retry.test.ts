// A port that is held for a moment is waited for; an error names one that stays taken and the remedy.
import assert from "node:assert/strict";
import { once } from "node:events";
import { connect, createServer, type Server } from "node:net";
import { test } from "node:test";
import { systemClock } from "#base/clock.ts";
import { isGroveError } from "#base/errors.ts";
import { freePort } from "#testing/free-ports.ts";
import { listenWithRetries } from "./listen-retry.ts";
import { serveStatus } from "./status-server.ts";

const HOST = "127.0.0.1";
const otherwise = "choose another with -listen";

async function listen(port: number): Promise<Server> {
  const server = createServer().listen(port, HOST);
  await once(server, "listening");
  return server;
}

/** How often the port was tried until it was taken; undefined when something else holds it still. */
async function triesBehindAConnection(peerPort: number): Promise<number | undefined> {
  const outgoing = connect({ host: HOST, port: peerPort });
  await once(outgoing, "connect");
  const port = outgoing.localPort ?? 0;
  let tries = 0;
  const attempt = (): Promise<Server> => {
    // Reset, so that no TIME_WAIT keeps the port.
    if (++tries === 3) outgoing.resetAndDestroy();
    return listen(port);
  };
  try {
    const server = await listenWithRetries({ host: HOST, port }, { listen: attempt, otherwise });
    server.close();
    return tries;
  } catch (error) {
    if (isGroveError(error, "BAD_ARGUMENT")) return undefined;
    throw error;
  }
}

test("a port that an outgoing connection holds is taken as soon as that has ended", async (t) => {
  const peer = await listen(0);
  peer.on("connection", (socket) => socket.on("error", () => undefined));
  t.after(() => peer.close());
  const { port } = peer.address() as { port: number };
  // Connections of other processes, to other ports, may have the same port here.
  let tries: number | undefined;
  for (let round = 0; tries === undefined && round < 5; round++) tries = await triesBehindAConnection(port);
  assert.ok(tries !== undefined && tries >= 3, String(tries));
});

test("a port that stays taken is named, with how to see by whom and what to do; nothing else is tried twice", async (t) => {
  const holder = await listen(await freePort());
  t.after(() => holder.close());
  const { port } = holder.address() as { port: number };
  await assert.rejects(
    listenWithRetries({ host: HOST, port }, { listen: () => listen(port), otherwise, waitMs: 300 }),
    (error) =>
      isGroveError(error, "BAD_ARGUMENT") &&
      error.message ===
        `cannot listen on 127.0.0.1:${port}: another process has had that port for 1 s. See which by 'ss -tanp sport = :${port}', end it, or ${otherwise}`,
  );
  let tries = 0;
  const elsewhere = { host: "203.0.113.1", port };
  const attempt = async (): Promise<void> => {
    tries++;
    const server = createServer().listen(port, elsewhere.host);
    await once(server, "listening");
  };
  await assert.rejects(
    listenWithRetries(elsewhere, { listen: attempt, otherwise }),
    /cannot listen on 203\.0\.113\.1:\d+: .*EADDRNOTAVAIL/,
  );
  assert.equal(tries, 1);
});

test("the metrics listener waits for its port too", async () => {
  const holder = await listen(await freePort());
  const { port } = holder.address() as { port: number };
  setTimeout(() => holder.close(), 300);
  const answer = async (): Promise<void> => undefined;
  const deps = { answer, failed: () => undefined, clock: systemClock, otherwise: "" };
  const server = await serveStatus(deps, { host: HOST, port });
  assert.equal(server.address.port, port);
  await server.close();
});
