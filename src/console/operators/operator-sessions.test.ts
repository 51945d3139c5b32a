// Tests operators' sessions: lifetime, number and end (spec 2.4, D3, W-04, C-01).
import assert from "node:assert/strict";
import { test } from "node:test";
import { ManualClock } from "#base/clock.ts";
import { systemRandom } from "#base/random.ts";
import type { OperatorSession } from "#console/http/route.ts";
import { OperatorSessions } from "./operator-sessions.ts";

const HOUR_MS = 3_600_000;

function open(): { clock: ManualClock; sessions: OperatorSessions; ended: [OperatorSession, string][] } {
  const clock = new ManualClock();
  const sessions = new OperatorSessions({ clock, random: systemRandom });
  const ended: [OperatorSession, string][] = [];
  sessions.onEnd((session, why) => ended.push([session, why]));
  return { clock, sessions, ended };
}

test("a token is 64 hex characters, new each time, and is kept nowhere", () => {
  const { sessions } = open();
  const made = Array.from({ length: 50 }, () => sessions.create("hash"));
  assert.equal(new Set(made.map(({ token }) => token)).size, 50);
  for (const { token, session } of made) {
    assert.match(token, /^[0-9a-f]{64}$/);
    assert.match(session.id, /^[0-9a-f]{8}$/);
    assert.equal(token.includes(session.id), false, "the id is of the hash");
    assert.equal(sessions.byToken(token), session);
    for (const wrong of ["", token.slice(1), `${token}0`, token.toUpperCase(), ` ${token}`]) {
      if (wrong !== token) assert.equal(sessions.byToken(wrong), undefined);
    }
  }
});

test("a session lives for 12 hours on the steady clock, used or not, whatever the wall clock does", () => {
  const { clock, sessions, ended } = open();
  const { token, session } = sessions.create("hash");
  assert.equal(session.expiresAtWallMs, clock.wallMs() + 12 * HOUR_MS);
  clock.jumpWall(13 * HOUR_MS);
  assert.equal(sessions.byToken(token), session);
  clock.jumpWall(-20 * HOUR_MS);
  clock.advance(12 * HOUR_MS - 1);
  assert.equal(sessions.byToken(token), session);
  clock.advance(1);
  assert.equal(sessions.byToken(token), undefined);
  assert.deepEqual(ended, [[session, "expired"]]);
});

test("time asleep counts (C-01)", () => {
  const { clock, sessions } = open();
  const { token } = sessions.create("hash");
  clock.sleep(12 * HOUR_MS);
  assert.equal(sessions.byToken(token), undefined);
});

test("expired sessions are swept within a minute, and whoever hangs on them is told", () => {
  const { clock, sessions, ended } = open();
  const { session } = sessions.create("hash");
  clock.advance(12 * HOUR_MS);
  clock.advance(60_000);
  assert.equal(sessions.count, 0);
  assert.deepEqual(ended, [[session, "expired"]]);
});

test("the hundred and first session ends the oldest (D3)", () => {
  const { sessions, ended } = open();
  const made = Array.from({ length: 100 }, () => sessions.create("hash"));
  assert.deepEqual(ended, []);
  sessions.create("hash");
  assert.equal(sessions.count, 100);
  assert.deepEqual(ended, [[made[0]?.session, "evicted"]]);
  assert.equal(sessions.byToken(made[0]?.token ?? ""), undefined);
  assert.equal(sessions.byToken(made[1]?.token ?? ""), made[1]?.session);
});

test("signing out ends one session, another password all of them", () => {
  const { sessions, ended } = open();
  const [first, second] = [sessions.create("hash"), sessions.create("hash")];
  sessions.end(first.session);
  sessions.end(first.session);
  assert.equal(sessions.isLive(first.session), false);
  assert.equal(sessions.isLive(second.session), true);
  assert.equal(sessions.endAll(), 1);
  assert.equal(sessions.byToken(second.token), undefined);
  assert.deepEqual(ended, [
    [first.session, "logout"],
    [second.session, "password_changed"],
  ]);
});
