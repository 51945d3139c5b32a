// Tests the limits of password attempts at every edge and in a flood (D17, W-03).
import assert from "node:assert/strict";
import { test } from "node:test";
import { ManualClock } from "#base/clock.ts";
import { type LoginAttempt, LoginLimiter } from "./login-limiter.ts";

const MINUTE_MS = 60_000;

function looksAt(limiter: LoginLimiter, address: string): boolean {
  return typeof limiter.begin(address) !== "number";
}

function begun(limiter: LoginLimiter, address: string): LoginAttempt {
  const attempt = limiter.begin(address);
  if (typeof attempt === "number") throw new assert.AssertionError({ message: `${address} has to wait` });
  return attempt;
}

test("the sixth wrong password of an address in 15 minutes is not looked at; when the first is 15 minutes old, one more is", () => {
  const clock = new ManualClock();
  const limiter = new LoginLimiter(clock);
  for (let guess = 0; guess < 5; guess++) {
    assert.equal(looksAt(limiter, "203.0.113.1"), true);
    clock.advance(MINUTE_MS);
  }
  assert.equal(limiter.begin("203.0.113.1"), 10 * MINUTE_MS);
  assert.equal(looksAt(limiter, "203.0.113.2"), true, "another address");
  clock.advance(10 * MINUTE_MS - 1);
  assert.equal(limiter.begin("203.0.113.1"), 1);
  clock.advance(1);
  assert.equal(looksAt(limiter, "203.0.113.1"), true);
  assert.equal(limiter.begin("203.0.113.1"), MINUTE_MS);
});

test("a jump of the wall clock gives nobody another try (C-01)", () => {
  const clock = new ManualClock();
  const limiter = new LoginLimiter(clock);
  for (let guess = 0; guess < 5; guess++) limiter.begin("203.0.113.1");
  clock.jumpWall(24 * 60 * MINUTE_MS);
  assert.equal(looksAt(limiter, "203.0.113.1"), false);
});

test("many guesses at once are counted before the first is answered; what nobody looked at does not count", () => {
  const limiter = new LoginLimiter(new ManualClock());
  const attempts = Array.from({ length: 5 }, () => begun(limiter, "203.0.113.1"));
  assert.equal(looksAt(limiter, "203.0.113.1"), false);
  attempts[0]?.takeBack();
  assert.equal(looksAt(limiter, "203.0.113.1"), true);
  assert.equal(limiter.failures().lastHour, 5);
});

test("the right password lets an address start anew", () => {
  const limiter = new LoginLimiter(new ManualClock());
  for (let guess = 0; guess < 4; guess++) limiter.begin("203.0.113.1");
  begun(limiter, "203.0.113.1").succeeded();
  for (let guess = 0; guess < 5; guess++) assert.equal(looksAt(limiter, "203.0.113.1"), true);
  assert.equal(looksAt(limiter, "203.0.113.1"), false);
});

test("all addresses of an IPv6 /64 are one", () => {
  const limiter = new LoginLimiter(new ManualClock());
  const guesses = Array.from({ length: 20 }, (_, at) => looksAt(limiter, `2001:db8:1:2::${at.toString(16)}`));
  assert.equal(guesses.filter(Boolean).length, 5);
});

test("from the hundredth failure in an hour on, who has failed in that hour is refused, and who has not is looked at", () => {
  const clock = new ManualClock();
  const limiter = new LoginLimiter(clock);
  limiter.begin("198.51.100.1");
  for (let address = 0; address < 98; address++) limiter.begin(`203.0.113.${address}`);
  assert.deepEqual(limiter.failures(), { lastHour: 99, isFlood: false });
  assert.equal(looksAt(limiter, "198.51.100.1"), true, "its second, and the hundredth of all");
  assert.deepEqual(limiter.failures(), { lastHour: 100, isFlood: true });
  assert.equal(limiter.begin("198.51.100.1"), 60 * MINUTE_MS);
  assert.equal(looksAt(limiter, "203.0.113.5"), false);
  begun(limiter, "192.0.2.1").succeeded();
  for (let guess = 0; guess < 3; guess++) begun(limiter, "192.0.2.1").succeeded();
  assert.equal(looksAt(limiter, "192.0.2.2"), true);
  assert.equal(looksAt(limiter, "192.0.2.2"), false);
  clock.advance(60 * MINUTE_MS);
  assert.deepEqual(limiter.failures(), { lastHour: 0, isFlood: false });
  assert.equal(looksAt(limiter, "203.0.113.5"), true);
});

test("ten thousand guesses from three addresses over a day: five in each quarter of an hour of each are looked at, and an operator gets in throughout", () => {
  const clock = new ManualClock();
  const limiter = new LoginLimiter(clock);
  const looked = new Map<string, number[]>();
  const guesses = 10_000;
  for (let guess = 0; guess < guesses; guess++) {
    const address = `203.0.113.${guess % 3}`;
    if (looksAt(limiter, address)) looked.set(address, [...(looked.get(address) ?? []), clock.steadyMs()]);
    if (guess % 500 === 0) begun(limiter, "192.0.2.1").succeeded();
    clock.advance((24 * 60 * MINUTE_MS) / guesses);
  }
  for (const moments of looked.values()) {
    for (const [index, moment] of moments.entries()) {
      assert.ok((moments[index + 5] ?? Number.POSITIVE_INFINITY) - moment >= 15 * MINUTE_MS);
    }
    assert.ok(moments.length <= 5 * 4 * 24 && moments.length >= 4 * 4 * 24);
  }
});
