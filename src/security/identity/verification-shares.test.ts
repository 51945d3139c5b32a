// Tests of the sharing of verifications: forged tokens from one address, a slow provider, and honest peaks
// beside them.
import assert from "node:assert/strict";
import { beforeEach, test } from "node:test";
import { setImmediate as nextTurn } from "node:timers/promises";
import { ManualClock } from "#base/clock.ts";
import { type ErrorCode, type GroveError, isGroveError } from "#base/errors.ts";
import { createTokenVerifier, type TokenVerifier } from "./token-verifier.ts";
import {
  TOKEN_FAILURES_PER_MINUTE_PER_ADDRESS,
  TOKEN_FAILURES_PER_MINUTE_PER_NETWORK,
} from "./verification-budget.ts";
import {
  TOKEN_VERIFICATION_WAIT_MS,
  TOKEN_VERIFICATIONS_IN_FLIGHT,
  TOKEN_VERIFICATIONS_PER_ADDRESS,
  TOKEN_VERIFICATIONS_PER_NETWORK,
  TOKEN_VERIFICATIONS_WAITING_PER_ADDRESS,
} from "./verification-places.ts";

const CLIENT_ID = "client-1";
const PROVIDER = "http://127.0.0.1:1/tokeninfo";

let clock: ManualClock;
/** Tokens that the provider has received, in order. */
let asked: string[];
/** Set while the provider is slow: each call ends one request. */
let waiting: (() => void)[] | undefined;
let isDown: boolean;
let verifier: TokenVerifier;

/**
 * A provider in this process, so that thousands of tokens are fast: it knows tokens that begin with "good".
 */
async function provider(url: string | URL | Request): Promise<Response> {
  const token = new URL(url as string).searchParams.get("id_token") ?? "";
  asked.push(token);
  const line = waiting;
  if (line !== undefined) await new Promise<void>((resolve) => line.push(resolve));
  if (isDown) throw new TypeError("fetch failed");
  if (!token.startsWith("good")) return Response.json({ error: "invalid_token" }, { status: 400 });
  const exp = Math.floor(clock.wallMs() / 1_000) + 3_600;
  return Response.json({ aud: CLIENT_ID, email: `${token}@example.com`, email_verified: true, exp });
}

beforeEach(() => {
  clock = new ManualClock();
  asked = [];
  waiting = undefined;
  isDown = false;
  verifier = createTokenVerifier({
    clientId: CLIENT_ID,
    tokeninfoUrl: PROVIDER,
    mock: false,
    clock,
    fetch: provider,
  });
});

async function outcome(token: string, address: string): Promise<GroveError | undefined> {
  try {
    await verifier.verify(token, address);
    return undefined;
  } catch (error) {
    if (isGroveError(error)) return error;
    throw error;
  }
}

/** Counts each outcome. */
async function tally(
  attempts: Promise<GroveError | undefined>[],
): Promise<Partial<Record<ErrorCode | "ok", number>>> {
  const counts: Partial<Record<ErrorCode | "ok", number>> = {};
  for (const error of await Promise.all(attempts)) {
    const code = error?.code ?? "ok";
    counts[code] = (counts[code] ?? 0) + 1;
  }
  return counts;
}

async function settle(): Promise<void> {
  for (let turn = 0; turn < 20; turn++) await nextTurn();
}

test("forged tokens of one address reach the provider a minute's worth, and the refusal says when again", async () => {
  for (let at = 0; at < 2_000; at++) await outcome(`forged-${at}`, "192.0.2.1");
  assert.equal(asked.length, TOKEN_FAILURES_PER_MINUTE_PER_ADDRESS);
  const refusal = await outcome("forged", "192.0.2.1");
  assert.equal(refusal?.code, "RATE_LIMITED");
  const retryMs = Number(refusal.metadata["retry_after_ms"]);
  assert.ok(retryMs > 0 && retryMs <= 1_000, String(retryMs));
  assert.match(refusal.message, /try again in 1 second$/);
  assert.equal(await outcome("good-elsewhere", "192.0.2.2"), undefined);
  clock.advance(retryMs);
  assert.equal(await outcome("good-later", "192.0.2.1"), undefined);
});

test("many forged tokens at once are no more than one after the other", async () => {
  await tally(Array.from({ length: 1_000 }, (_, at) => outcome(`forged-${at}`, "192.0.2.1")));
  assert.ok(
    asked.length <= TOKEN_FAILURES_PER_MINUTE_PER_ADDRESS + TOKEN_VERIFICATIONS_PER_ADDRESS,
    String(asked.length),
  );
});

test("a token that was verified is known however much its address is limited", async () => {
  await outcome("good", "192.0.2.1");
  for (let at = 0; at < 100; at++) await outcome(`forged-${at}`, "192.0.2.1");
  assert.equal((await outcome("good-2", "192.0.2.1"))?.code, "RATE_LIMITED");
  assert.equal(await outcome("good", "192.0.2.1"), undefined);
});

test("an IPv6 /64 is one address, and a /48 or an IPv4 /24 has a limit of its own", async () => {
  for (const prefix of ["2001:db8:7", "192.0.2"]) {
    asked = [];
    const addressOf = (at: number): string =>
      prefix.includes(":")
        ? `${prefix}:${(at % 250).toString(16)}::${at.toString(16)}`
        : `${prefix}.${at % 250}`;
    for (let at = 0; at < 2_000; at++) await outcome(`${prefix}-${at}`, addressOf(at));
    assert.equal(asked.length, TOKEN_FAILURES_PER_MINUTE_PER_NETWORK, prefix);
    assert.equal((await outcome("good", addressOf(0)))?.code, "RATE_LIMITED");
  }
  asked = [];
  for (let at = 0; at < 500; at++) await outcome(`other-${at}`, `2001:db8:9:9::${at.toString(16)}`);
  assert.equal(asked.length, TOKEN_FAILURES_PER_MINUTE_PER_ADDRESS);
});

test("an honest peak passes: 200 users behind one address, and 2,000 from 50 addresses within a minute", async () => {
  const attempts: Promise<GroveError | undefined>[] = [];
  for (let user = 0; user < 200; user++) attempts.push(outcome(`good-nat-${user}`, "198.51.100.7"));
  for (let user = 0; user < 2_000; user++) {
    attempts.push(outcome(`good-${user}`, `203.0.${user % 50}.${user % 7}`));
    if (user % 100 === 99) await settle();
  }
  assert.deepEqual(await tally(attempts), { ok: 2_200 });
});

test("while the provider is slow one address waits behind itself, and others are asked for at once", async () => {
  waiting = [];
  const forged = Array.from({ length: 600 }, (_, at) => outcome(`forged-${at}`, "192.0.2.1"));
  await settle();
  assert.equal(asked.length, TOKEN_VERIFICATIONS_PER_ADDRESS);
  const honest = Array.from({ length: 20 }, (_, at) => outcome(`good-${at}`, `198.51.${at}.1`));
  await settle();
  assert.equal(asked.length, TOKEN_VERIFICATIONS_PER_ADDRESS + 20);
  const release = waiting;
  waiting = undefined;
  for (const end of release) end();
  assert.deepEqual(await tally(honest), { ok: 20 });
  const told = await tally(forged);
  const refusedAtOnce = 600 - TOKEN_VERIFICATIONS_PER_ADDRESS - TOKEN_VERIFICATIONS_WAITING_PER_ADDRESS;
  assert.ok((told.RATE_LIMITED ?? 0) >= refusedAtOnce, JSON.stringify(told));
});

test("when all places are taken, networks have them by turns, however many addresses the greedy ones have", async () => {
  waiting = [];
  const networks = TOKEN_VERIFICATIONS_IN_FLIGHT / TOKEN_VERIFICATIONS_PER_NETWORK;
  const greedy: Promise<unknown>[] = [];
  for (let network = 0; network < networks; network++) {
    for (let at = 0; at < 500; at++) {
      greedy.push(outcome(`forged-${network}-${at}`, `10.0.${network}.${at % 100}`));
    }
  }
  await settle();
  assert.ok(asked.length <= TOKEN_VERIFICATIONS_IN_FLIGHT);
  const before = asked.length;
  const honest = outcome("good", "198.51.100.1");
  await settle();
  assert.equal(asked.length, before, "there is no place");
  for (let released = 0; released < 2 * networks && !asked.includes("good"); released++) {
    waiting.shift()?.();
    await settle();
  }
  assert.ok(asked.includes("good"), "its turn came within one round");
  const release = waiting;
  waiting = undefined;
  for (const end of release) end();
  assert.equal(await honest, undefined);
  await Promise.all(greedy);
});

test("some places are left to addresses from which somebody has signed in", async () => {
  await outcome("good-regular", "198.51.100.1");
  waiting = [];
  const greedy: Promise<unknown>[] = [];
  for (let network = 0; network < 20; network++) {
    for (let at = 0; at < TOKEN_VERIFICATIONS_PER_NETWORK; at++) {
      greedy.push(outcome(`forged-${network}-${at}`, `10.0.${network}.${at % 100}`));
    }
  }
  await settle();
  const before = asked.length;
  const stranger = outcome("good-stranger", "198.51.200.1");
  const regular = outcome("good-again", "198.51.100.1");
  await settle();
  assert.deepEqual(asked.slice(before), ["good-again"]);
  const release = waiting;
  waiting = undefined;
  for (const end of release) end();
  assert.deepEqual([await stranger, await regular], [undefined, undefined]);
  await Promise.all(greedy);
});

test("whoever gets no place in time is told to come again, and the line is forgotten", async () => {
  waiting = [];
  const forged = Array.from({ length: 40 }, (_, at) => outcome(`forged-${at}`, "192.0.2.1"));
  await settle();
  clock.advance(TOKEN_VERIFICATION_WAIT_MS);
  await settle();
  const release = waiting;
  waiting = undefined;
  for (const end of release) end();
  const told = await tally(forged);
  assert.equal(told.OVERLOADED, 40 - TOKEN_VERIFICATIONS_PER_ADDRESS, JSON.stringify(told));
  assert.equal(asked.length, TOKEN_VERIFICATIONS_PER_ADDRESS);
});

test("an outage is no failed sign-in, but even a dead provider is not asked without end", async () => {
  isDown = true;
  for (let at = 0; at < 300; at++) {
    assert.equal((await outcome(`good-${at}`, "192.0.2.1"))?.code, "IDP_UNAVAILABLE");
  }
  for (let at = 0; at < 3_000; at++) await outcome(`forged-${at}`, "192.0.2.1");
  assert.ok(asked.length < 1_000, String(asked.length));
  isDown = false;
  clock.advance(60_000);
  assert.equal(await outcome("good", "192.0.2.1"), undefined);
});

const part = (value: unknown): string => Buffer.from(JSON.stringify(value)).toString("base64url");
const jwt = (claims: object): string => `${part({ alg: "RS256", kid: "k" })}.${part(claims)}.c2ln`;

test("a token that is no good by its own words is not passed on", async () => {
  const nowS = Math.floor(clock.wallMs() / 1_000);
  const fine = { iss: "https://idp.example", aud: CLIENT_ID, exp: nowS + 60 };
  const bad: Readonly<Record<string, object>> = {
    exp: { ...fine, exp: nowS - 61 },
    aud: { ...fine, aud: "another" },
    azp: { ...fine, aud: [CLIENT_ID], azp: "another" },
    nbf: { ...fine, nbf: nowS + 61 },
    iat: { ...fine, iat: nowS + 61 },
  };
  for (const [claim, claims] of Object.entries(bad)) {
    const refusal = await outcome(jwt(claims), "192.0.2.1");
    assert.deepEqual([refusal?.code, refusal?.metadata["claim"]], ["TOKEN_REJECTED", claim]);
  }
  assert.deepEqual(asked, []);
  // Their claims may be true or unreadable: only the provider can judge them.
  for (const token of [
    jwt(fine),
    jwt({}),
    jwt({ ...fine, exp: nowS - 59 }),
    "a.b.c",
    "opaque",
    `${part(1)}.${part([])}.x`,
  ]) {
    assert.equal((await outcome(token, "192.0.2.2"))?.code, "TOKEN_REJECTED");
  }
  assert.equal(asked.length, 6);
});

test("with an issuer, a token of another is refused before the issuer is asked for its keys", async () => {
  const nowS = Math.floor(clock.wallMs() / 1_000);
  verifier = createTokenVerifier({
    clientId: CLIENT_ID,
    issuer: "https://idp.example",
    mock: false,
    clock,
    fetch: provider,
  });
  const refusal = await outcome(
    jwt({ iss: "https://other.example", aud: CLIENT_ID, exp: nowS + 60 }),
    "192.0.2.1",
  );
  assert.deepEqual([refusal?.code, refusal?.metadata["claim"]], ["TOKEN_REJECTED", "iss"]);
  assert.deepEqual(asked, []);
});
