// Browsers' sessions as they begin and end at a door: known at once, and not forgotten before they have ended.
import assert from "node:assert/strict";
import { once } from "node:events";
import { get, type IncomingMessage } from "node:http";
import { type TestContext, test } from "node:test";
import { systemClock } from "#base/clock.ts";
import { GroveError } from "#base/errors.ts";
import { silentLogger } from "#base/log.ts";
import { startTestDoor, type TestDoor } from "#door/http/door.fixture.ts";
import { OwnHosts } from "#door/http/own-hosts.ts";
import type { SessionKeeper } from "./browser-people.ts";
import { KnownSessions, UNKNOWN_SESSIONS_PER_NETWORK } from "./known-sessions.ts";
import { BrowserSignIn, SIGN_INS_PER_NETWORK } from "./sign-in.ts";

const ADDRESS = "127.0.0.1";

async function openDoor(t: TestContext, keeper: SessionKeeper, sessions: KnownSessions): Promise<TestDoor> {
  const hosts = new OwnHosts(undefined, { host: ADDRESS, port: 1 }, false);
  const parts = { flow: undefined, mock: true, hosts, keeper, sessions };
  const pages = new BrowserSignIn({ ...parts, clock: systemClock, log: silentLogger });
  const door = await startTestDoor({ pages });
  t.after(() => door.stop());
  return door;
}

function post(door: TestDoor, path: string, body: string, secret = "gds_mine"): Promise<Response> {
  return fetch(`http://${door.host}${path}`, {
    method: "POST",
    body,
    redirect: "manual",
    headers: { cookie: `grove-door-session=${secret}`, origin: `http://${door.host}` },
  });
}

test("a sign-out that fails leaves the cookie, so that a second one ends the session", async (t) => {
  const ended: string[] = [];
  let isAway = true;
  const keeper = {
    openSession: () => Promise.reject(new Error("nobody signs in here")),
    async endSession(secret: string) {
      if (isAway) throw new GroveError("STORE_UNAVAILABLE", "no MetaServer answers");
      ended.push(secret);
    },
  };
  const door = await openDoor(t, keeper, new KnownSessions(systemClock));
  const failed = await post(door, "/sign-out", "");
  assert.equal(failed.status, 503);
  assert.deepEqual([failed.headers.get("set-cookie"), failed.headers.get("clear-site-data")], [null, null]);
  isAway = false;
  const done = await post(door, "/sign-out", "");
  assert.equal(done.status, 204);
  assert.match(done.headers.get("set-cookie") ?? "", /^grove-door-session=; .*Max-Age=0/u);
  assert.equal(done.headers.get("clear-site-data"), '"cache"');
  assert.deepEqual(ended, ["gds_mine"]);
});

test("who signs in anew is known at once, also where others of the network have guessed", async (t) => {
  const sessions = new KnownSessions(systemClock);
  const wrong = () => Promise.reject(new GroveError("TOKEN_REJECTED", "no"));
  for (let guess = 0; guess < UNKNOWN_SESSIONS_PER_NETWORK; guess++)
    await assert.rejects(sessions.judge(`gds_${guess}`, ADDRESS, wrong), { code: "TOKEN_REJECTED" });
  const look = (secret: string): Promise<string> => sessions.judge(secret, ADDRESS, async () => "alice");
  await assert.rejects(look("gds_new"), { code: "RATE_LIMITED" });
  const keeper = {
    openSession: async () => ({
      secret: "gds_new",
      username: "alice",
      endsMs: systemClock.wallMs() + 60_000,
    }),
    endSession: async () => undefined,
  };
  const door = await openDoor(t, keeper, sessions);
  assert.equal((await post(door, "/sign-in", "email=alice%40example.com")).status, 303);
  assert.equal(await look("gds_new"), "alice");
  await assert.rejects(look("gds_other"), { code: "RATE_LIMITED" });
});

test("who signs out with secrets that never were asks no more than who guesses in other ways", async (t) => {
  let asked = 0;
  const keeper = {
    openSession: () => Promise.reject(new Error("nobody signs in here")),
    endSession: (secret: string) => {
      asked++;
      return secret === "gds_mine"
        ? Promise.resolve()
        : Promise.reject(new GroveError("TOKEN_REJECTED", "there is no such session"));
    },
  };
  const sessions = new KnownSessions(systemClock);
  sessions.opened("gds_mine");
  const door = await openDoor(t, keeper, sessions);
  for (let guess = 0; guess < UNKNOWN_SESSIONS_PER_NETWORK; guess++)
    assert.equal((await post(door, "/sign-out", "", `gds_${guess}`)).status, 204);
  assert.equal((await post(door, "/sign-out", "", "gds_more")).status, 429);
  assert.equal(asked, UNKNOWN_SESSIONS_PER_NETWORK);
  assert.equal((await post(door, "/sign-out", "")).status, 204, "one that is known ends beside guesses");
});

test("a person from whose network too many sign-ins came is led to a sentence, a program to a status", async (t) => {
  const keeper = {
    openSession: () => Promise.reject(new Error("nobody signs in here")),
    endSession: async () => undefined,
  };
  const door = await openDoor(t, keeper, new KnownSessions(systemClock));
  for (let count = 0; count < SIGN_INS_PER_NETWORK; count++) await post(door, "/sign-in", "email=x");
  const program = await post(door, "/sign-in", "email=x");
  assert.deepEqual([program.status, program.headers.has("retry-after")], [429, true]);
  // fetch() names a mode of its own.
  const headers = { "sec-fetch-mode": "navigate" };
  const [person] = (await once(get(`http://${door.host}/sign-in/callback`, { headers }), "response")) as [
    IncomingMessage,
  ];
  person.resume();
  assert.deepEqual([person.statusCode, person.headers.location], [303, "/?refused=limited"]);
});
