// Limits on the rate of new connections.
import assert from "node:assert/strict";
import { test } from "node:test";
import { ManualClock } from "#base/clock.ts";
import { networkOf } from "#base/network.ts";
import { HANDSHAKES_OF_ALL, HANDSHAKES_OF_NETWORK, PROVEN_HANDSHAKE_COST } from "#wire/framing/limits.ts";
import { HandshakeLimiter } from "./handshake-limiter.ts";

const from = (address: string) => ({ address, network: networkOf(address) });

const begun = (limiter: HandshakeLimiter, address: string, tries: number): number => {
  let count = 0;
  for (let i = 0; i < tries; i++) if (limiter.mayBegin(from(address))) count++;
  return count;
};

test("a network has so many handshakes at once, then so many a second, and an IPv6 one is a /64", () => {
  const clock = new ManualClock();
  const limiter = new HandshakeLimiter(clock, true);
  const { burst, perSecond } = HANDSHAKES_OF_NETWORK;
  assert.equal(begun(limiter, "2001:db8::1", burst), burst);
  assert.equal(limiter.mayBegin(from("2001:db8::ffff")), false);
  clock.advance(1_000);
  assert.equal(begun(limiter, "2001:db8::2", 1_000), perSecond);
  assert.equal(limiter.mayBegin(from("2001:db8:0:1::1")), true);
});

test("many networks of one site, or many sites, leave room for those who come seldom and those who are known", () => {
  const clock = new ManualClock();
  const limiter = new HandshakeLimiter(clock, true);
  limiter.proved("192.0.2.7");
  for (let at = 0; at < 64; at++) begun(limiter, `198.51.${at}.${at}`, 1_000);
  for (let at = 0; at < 64; at++) begun(limiter, `198.51.100.${at}`, 1_000);
  assert.equal(limiter.mayBegin(from("198.51.100.200")), true);
  assert.equal(limiter.mayBegin(from("203.0.113.9")), true);
  assert.equal(begun(limiter, "192.0.2.7", 20), 20);
});

test("a known network has more, and without TLS ten count as one", () => {
  const clock = new ManualClock();
  const limiter = new HandshakeLimiter(clock, true);
  limiter.proved("192.0.2.7");
  const { burst } = HANDSHAKES_OF_NETWORK;
  assert.equal(begun(limiter, "192.0.2.7", 10_000), burst / PROVEN_HANDSHAKE_COST);
  const plain = new HandshakeLimiter(clock, false);
  assert.equal(begun(plain, "192.0.2.7", 10_000), 10 * burst);
  assert.ok(HANDSHAKES_OF_ALL.burst > burst);
});
