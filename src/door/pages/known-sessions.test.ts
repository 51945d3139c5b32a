// Who comes with a right session from a network that others have shut by wrong ones.
import assert from "node:assert/strict";
import { test } from "node:test";
import { systemClock } from "#base/clock.ts";
import { GroveError } from "#base/errors.ts";
import { silentLogger } from "#base/log.ts";
import type { PageExchange } from "#door/http/pages.ts";
import { UNKNOWN_SESSIONS_PER_NETWORK } from "./limits.ts";
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
    end: () => undefined,
    prove: () => undefined,
  };
  assert.ok(await pages.answer(exchange as unknown as PageExchange));
  return exchange.statusCode;
}

test("wrong sessions shut a network for unknown ones, and not for who is signed in there", async () => {
  let right = "gds_right";
  const people = {
    async bySession(secret: string) {
      if (secret !== right) throw new GroveError("TOKEN_REJECTED", "no");
      return { username: "alice@example.com", recentUntilMs: 0, release: () => undefined };
    },
  };
  const signIn = { answer: async () => false };
  const deps = { signIn, people, publicUrl: "http://localhost", clock: systemClock, log: silentLogger };
  const pages = await openPages(deps as unknown as PagesDeps);
  assert.equal(await ask(pages, "gds_right"), 200);
  for (let wrong = 0; wrong < UNKNOWN_SESSIONS_PER_NETWORK; wrong++)
    assert.equal(await ask(pages, `gds_wrong${wrong}`), 401);
  assert.equal(await ask(pages, "gds_other"), 429);
  assert.equal(await ask(pages, "gds_right"), 200);
  // One that has ended is unknown from then on.
  right = "";
  assert.equal(await ask(pages, "gds_right"), 401);
  assert.equal(await ask(pages, "gds_right"), 429);
});
