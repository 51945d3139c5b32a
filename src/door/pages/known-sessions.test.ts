// Sessions from a network that wrong ones have shut, and what counts as a wrong one.
import assert from "node:assert/strict";
import { test } from "node:test";
import { systemClock } from "#base/clock.ts";
import { GroveError } from "#base/errors.ts";
import { silentLogger } from "#base/log.ts";
import type { PageExchange } from "#door/http/pages.ts";
import { KnownSessions, UNKNOWN_SESSIONS_PER_NETWORK } from "#door/session/known-sessions.ts";
import { openPages, type PagesDeps } from "./pages.ts";

/** Asks who is signed in; resolves with the status. */
async function ask(pages: Awaited<ReturnType<typeof openPages>>, session: string): Promise<number> {
  const exchange = {
    method: "GET",
    path: "/api/me",
    headers: { cookie: `grove-door-session=${session}` },
    query: new URLSearchParams(),
    host: "localhost",
    facts: { address: "198.51.100.7", isLoopback: true, isSecure: false },
    gone: new AbortController().signal,
    whenGone: () => undefined,
    statusCode: 0,
    headersSent: false,
    destroyed: false,
    setHeader: () => undefined,
    removeHeader: () => undefined,
    end: () => undefined,
    prove: () => undefined,
  };
  assert.ok(await pages.answer(exchange as unknown as PageExchange));
  return exchange.statusCode;
}

/** Pages of a door where these secrets are right. */
async function pagesFor(
  right: Set<string>,
): Promise<{ pages: Awaited<ReturnType<typeof openPages>>; sessions: KnownSessions; asked: string[] }> {
  const asked: string[] = [];
  const people = {
    async bySession(secret: string) {
      asked.push(secret);
      // As long as a MetaServer takes, while other requests come.
      await new Promise(setImmediate);
      if (!right.has(secret)) throw new GroveError("TOKEN_REJECTED", "no");
      return { username: "alice@example.com", recentUntilMs: 0, release: () => undefined };
    },
  };
  const signIn = { answer: async () => false };
  const sessions = new KnownSessions(systemClock);
  const deps = { signIn, people, sessions, publicUrl: "http://localhost", log: silentLogger };
  return { pages: await openPages(deps as unknown as PagesDeps), sessions, asked };
}

test("wrong sessions shut a network for unknown ones, and not for who is signed in there", async () => {
  const right = new Set(["gds_right"]);
  const { pages, sessions } = await pagesFor(right);
  assert.equal(await ask(pages, "gds_right"), 200);
  for (let wrong = 0; wrong < UNKNOWN_SESSIONS_PER_NETWORK; wrong++)
    assert.equal(await ask(pages, `gds_wrong${wrong}`), 401);
  assert.equal(await ask(pages, "gds_other"), 429);
  assert.equal(await ask(pages, "gds_right"), 200);
  // Who signs in now is known from then on.
  right.add("gds_new");
  assert.equal(await ask(pages, "gds_new"), 429);
  sessions.opened("gds_new");
  assert.equal(await ask(pages, "gds_new"), 200);
  right.delete("gds_new");
  assert.equal(await ask(pages, "gds_new"), 401);
});

test("a session that has ended is one guess, however many requests a page sends with it", async () => {
  const right = new Set(["gds_ended"]);
  const { pages, asked } = await pagesFor(right);
  assert.equal(await ask(pages, "gds_ended"), 200);
  right.clear();
  const many = Array.from({ length: 2 * UNKNOWN_SESSIONS_PER_NETWORK }, () => ask(pages, "gds_ended"));
  assert.deepEqual([...new Set(await Promise.all(many))], [401]);
  asked.length = 0;
  assert.equal(await ask(pages, "gds_ended"), 401);
  assert.deepEqual(asked, [], "what is known to be wrong is not asked about again");
  right.add("gds_neighbour");
  assert.equal(await ask(pages, "gds_neighbour"), 200);
  // Different ones are a guess each.
  for (let wrong = 1; wrong < UNKNOWN_SESSIONS_PER_NETWORK; wrong++)
    assert.equal(await ask(pages, `gds_wrong${wrong}`), 401);
  assert.equal(await ask(pages, "gds_other"), 429);
});
