// Tests of the sign-in listener: one GET, our host, our path, our state (spec 5.1, failure C-08).
import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer } from "node:http";
import { connect } from "node:net";
import { afterEach, test } from "node:test";
import { CallbackServer } from "./callback-server.ts";
import { findPortOwner } from "./port-owner.ts";

const STATE = "the-expected-state";
let open: CallbackServer[] = [];

afterEach(async () => {
  for (const server of open) await server.close();
  open = [];
});

async function listen(): Promise<CallbackServer> {
  const server = await CallbackServer.listen({
    redirectUri: "http://localhost:0/logincallback",
    state: STATE,
  });
  open.push(server);
  return server;
}

/** Waits with an exchange that records its addresses; failures come out of `ended`. */
function wait(server: CallbackServer, email = "alice@example.com"): { seen: URL[]; ended: Promise<unknown> } {
  const seen: URL[] = [];
  const ended = server
    .wait(async (url) => {
      seen.push(url);
      return email;
    }, new AbortController().signal)
    .then(
      () => "signed in",
      (error: unknown) => error,
    );
  return { seen, ended };
}

/** Sends a raw request, so that the test sets the Host header too. */
async function send(
  port: number,
  options: { path?: string; host?: string; method?: string; address?: string },
): Promise<{ status: number; text: string }> {
  const socket = connect(port, options.address ?? "127.0.0.1");
  await once(socket, "connect");
  const path = options.path ?? `/logincallback?code=c&state=${STATE}`;
  socket.write(
    `${options.method ?? "GET"} ${path} HTTP/1.1\r\nHost: ${options.host ?? `localhost:${port}`}\r\n\r\n`,
  );
  const pieces: Buffer[] = [];
  for await (const piece of socket as AsyncIterable<Buffer>) pieces.push(piece);
  const text = Buffer.concat(pieces).toString();
  return { status: Number(text.split(" ")[1]), text };
}

test("the right state is exchanged, and the page shows the e-mail address", async () => {
  const server = await listen();
  const { seen, ended } = wait(server);
  const { status, text } = await send(server.port, {});
  assert.equal(status, 200);
  assert.match(text, /signed in as alice@example\.com/);
  assert.equal(await ended, "signed in");
  assert.equal(seen[0]?.searchParams.get("code"), "c");
});

test("the page runs nothing, loads nothing, is not kept, and escapes what it shows (C-08)", async () => {
  const server = await listen();
  wait(server, `"><script>alert(1)</script>@x'`);
  const { text } = await send(server.port, {});
  assert.match(text, /content-security-policy: default-src 'none'; style-src 'sha256-/i);
  assert.match(text, /cache-control: no-store/i);
  assert.match(text, /referrer-policy: no-referrer/i);
  assert.ok(!text.includes("<script"));
  assert.match(text, /&quot;&gt;&lt;script&gt;/);
});

for (const [what, query] of [
  ["wrong", "?code=c&state=another"],
  ["missing", "?code=c"],
  ["empty", "?code=c&state="],
  ["doubled", `?code=c&state=${STATE}&state=x`],
] as const) {
  test(`a ${what} state is refused, exchanges nothing and ends the sign-in (spec 5.1.4)`, async () => {
    const server = await listen();
    const { seen, ended } = wait(server);
    assert.equal((await send(server.port, { path: `/logincallback${query}` })).status, 400);
    assert.match(String(await ended), /another state/);
    assert.equal((await send(server.port, {})).status, 410, "also the right state comes too late");
    assert.deepEqual(seen, []);
  });
}

test("a replayed callback is refused (C-08)", async () => {
  const server = await listen();
  const { seen, ended } = wait(server);
  assert.equal((await send(server.port, {})).status, 200);
  assert.equal((await send(server.port, {})).status, 410);
  assert.equal(await ended, "signed in");
  assert.equal(seen.length, 1);
});

test("another host, path or method is refused and does not end the sign-in (C-08)", async () => {
  const server = await listen();
  const { seen, ended } = wait(server);
  const { port } = server;
  assert.equal((await send(port, { host: `evil.example:${port}` })).status, 400);
  assert.equal((await send(port, { host: "localhost" })).status, 400);
  assert.equal((await send(port, { host: `localhost.evil.example:${port}` })).status, 400);
  assert.equal((await send(port, { path: "/favicon.ico" })).status, 404);
  assert.equal((await send(port, { path: `/logincallback/?state=${STATE}` })).status, 404);
  assert.equal((await send(port, { method: "POST" })).status, 405);
  assert.equal((await send(port, { method: "HEAD" })).status, 405);
  assert.deepEqual(seen, []);
  assert.equal((await send(port, { host: `127.0.0.1:${port}` })).status, 200);
  assert.equal(await ended, "signed in");
});

test("the redirect's localhost may be ::1 too (T19)", async (context) => {
  const server = await listen();
  const { ended } = wait(server);
  try {
    assert.equal((await send(server.port, { address: "::1", host: `[::1]:${server.port}` })).status, 200);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "EADDRNOTAVAIL") throw error;
    context.skip("this machine has no ::1");
    await send(server.port, {});
  }
  assert.equal(await ended, "signed in");
});

test("a port that is taken is an error, and its process is found (T19)", async () => {
  const other = createServer();
  other.listen(0, "127.0.0.1");
  await once(other, "listening");
  const { port } = other.address() as { port: number };
  try {
    const taken = CallbackServer.listen({
      redirectUri: `http://localhost:${port}/logincallback`,
      state: STATE,
    });
    await assert.rejects(taken, { code: "EADDRINUSE" });
    if (process.platform === "linux") assert.equal(findPortOwner(port)?.pid, process.pid);
  } finally {
    other.close();
  }
});

test("an exchange that fails is told in the terminal, and in the browser without its text", async () => {
  const server = await listen();
  const ended = server.wait(
    () => Promise.reject(new Error("the provider's words")),
    new AbortController().signal,
  );
  const outcome = ended.then(
    () => "signed in",
    (error: unknown) => (error as Error).message,
  );
  const { status, text } = await send(server.port, {});
  assert.equal(status, 400);
  assert.ok(!text.includes("provider's words"));
  assert.equal(await outcome, "the provider's words");
});
