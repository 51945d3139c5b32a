// Tests tickets for WebSockets: single use, 30 seconds, never beyond the session (D8).
import assert from "node:assert/strict";
import { test } from "node:test";
import { ManualClock } from "#base/clock.ts";
import { systemRandom } from "#base/random.ts";
import { OperatorSessions } from "./operator-sessions.ts";
import { Tickets } from "./tickets.ts";

test("a ticket is good once, for 30 seconds, and only while its session lives; at most 1,000 wait", () => {
  const clock = new ManualClock();
  const sessions = new OperatorSessions({ clock, random: systemRandom });
  const tickets = new Tickets({ clock, random: systemRandom, sessions });
  const { session } = sessions.create("hash");

  const ticket = tickets.issue(session);
  assert.match(ticket, /^[0-9a-f]{64}$/);
  assert.equal(tickets.redeem(ticket), session);
  assert.equal(tickets.redeem(ticket), undefined);
  assert.equal(tickets.redeem(""), undefined);

  const [early, late] = [tickets.issue(session), tickets.issue(session)];
  clock.advance(29_999);
  assert.equal(tickets.redeem(early), session);
  clock.advance(1);
  assert.equal(tickets.redeem(late), undefined);

  const first = tickets.issue(session);
  const rest = Array.from({ length: 1_000 }, () => tickets.issue(session));
  assert.equal(tickets.redeem(first), undefined);
  assert.equal(tickets.redeem(rest[0] ?? ""), session);

  sessions.end(session);
  assert.equal(tickets.redeem(rest[1] ?? ""), undefined);
});
