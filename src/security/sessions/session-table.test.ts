// Tests of the session table: minting, binding, both sides of each limit, eviction, and refusals.
import assert from "node:assert/strict";
import { test } from "node:test";
import { ManualClock } from "#base/clock.ts";
import { type ErrorCode, isGroveError } from "#base/errors.ts";
import { CLIENT_LABEL_MAX_LENGTH } from "#base/limits.ts";
import { systemRandom } from "#base/random.ts";
import type { SecurityEventFacts } from "#base/security-event.ts";
import { makeVerifiedIdentity, type VerifiedIdentity } from "#base/verified-identity.ts";
import { type CreatedSession, type SessionLimits, SessionTable } from "./session-table.ts";

const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;
const FACTS = { address: "10.0.0.1", clientId: "c", clientVersion: "1", deviceName: "laptop" };

function who(username: string): VerifiedIdentity {
  return makeVerifiedIdentity({ username, issuer: "", subject: "" });
}

interface Setting {
  readonly clock: ManualClock;
  readonly table: SessionTable;
  readonly events: SecurityEventFacts[];
  readonly open: (username?: string, address?: string) => CreatedSession;
}

function setUp(limits: Partial<SessionLimits> = {}): Setting {
  const clock = new ManualClock();
  const events: SecurityEventFacts[] = [];
  const table = new SessionTable({
    clock,
    random: systemRandom,
    limits,
    onSecurityEvent: (event) => events.push(event),
  });
  const open = (username = "alice@example.com", address = FACTS.address): CreatedSession =>
    table.create(who(username), { ...FACTS, address });
  return { clock, table, events, open };
}

function refuses(code: ErrorCode, act: () => unknown): void {
  assert.throws(act, (error) => isGroveError(error, code));
}

test("a token is sst_ and 43 characters of base64url, and is nowhere in the table or in errors (spec 2.3)", () => {
  const { table, open } = setUp();
  const { token, session, evictedOldest, openSessions } = open();
  assert.match(token, /^sst_[A-Za-z0-9_-]{43}$/);
  assert.match(session.id, /^[0-9a-f]{16}$/);
  assert.deepEqual({ evictedOldest, openSessions }, { evictedOldest: false, openSessions: 1 });
  assert.equal(session.expiresAtWallMs - session.createdAtWallMs, 12 * HOUR_MS);
  assert.equal(table.check(token, "10.0.0.1"), session);
  const secret = token.slice(4);
  assert.ok(!JSON.stringify(session).includes(secret));
  assert.ok(!Buffer.from(secret, "base64url").toString("hex").includes(session.id));
  try {
    table.check(token, "10.0.0.2");
    assert.fail();
  } catch (error) {
    assert.ok(!String((error as Error).stack).includes(secret));
  }
});

test("no token, a token of another shape and an unknown token are told apart (D1)", () => {
  const { table, open } = setUp();
  const { token } = open();
  refuses("SESSION_MISSING", () => table.check(undefined, "10.0.0.1"));
  refuses("SESSION_MISSING", () => table.check("", "10.0.0.1"));
  for (const wrong of [
    token.slice(0, -1),
    `${token}A`,
    ` ${token}`,
    token.replace("sst_", "SST_"),
    `sst_${"A".repeat(43)}`,
    "mock-jwt.a@b",
  ]) {
    refuses("SESSION_UNKNOWN", () => table.check(wrong, "10.0.0.1"));
  }
});

test("a session idles out at exactly 15 minutes and each use starts them again (spec 2.3, 3.4)", () => {
  const { clock, table, open } = setUp();
  const { token, session } = open();
  for (let turn = 0; turn < 3; turn++) {
    clock.advance(15 * MINUTE_MS - 1);
    table.check(token, "10.0.0.1");
  }
  clock.advance(15 * MINUTE_MS - 1);
  assert.equal(table.isLive(session), true);
  clock.advance(1);
  assert.equal(table.isLive(session), false);
  refuses("SESSION_IDLE", () => table.check(token, "10.0.0.1"));
});

test("whoever comes at the very end of the idle time is late, and an end by hand then ends nothing more (spec 2.3, D23)", () => {
  const { clock, table, open } = setUp();
  const { token, session } = open();
  clock.advance(15 * MINUTE_MS);
  table.end(session);
  assert.equal(table.isLive(session), false);
  refuses("SESSION_IDLE", () => table.check(token, "10.0.0.1"));
});

test("a session in constant use ends at exactly 12 hours (spec 2.3)", () => {
  const { clock, table, open } = setUp();
  const { token, session } = open();
  for (let at = 0; at < 12 * 60 - 1; at++) {
    clock.advance(MINUTE_MS);
    table.check(token, "10.0.0.1");
  }
  clock.advance(MINUTE_MS - 1);
  table.check(token, "10.0.0.1");
  clock.advance(1);
  assert.equal(table.isLive(session), false);
  refuses("SESSION_EXPIRED", () => table.check(token, "10.0.0.1"));
});

test("where both ends fall together, the session's own end is what is told", () => {
  const { clock, table, open } = setUp({ lifetimeMs: 30 * MINUTE_MS });
  const { token } = open();
  clock.advance(10 * MINUTE_MS);
  table.check(token, "10.0.0.1");
  clock.advance(5 * MINUTE_MS);
  table.check(token, "10.0.0.1");
  clock.advance(15 * MINUTE_MS);
  refuses("SESSION_EXPIRED", () => table.check(token, "10.0.0.1"));
});

test("jumps of the wall clock neither end nor prolong a session (C-01)", () => {
  const { clock, table, open } = setUp();
  const { token } = open();
  for (const jumpMs of [13 * HOUR_MS, -26 * HOUR_MS, 365 * 24 * HOUR_MS]) {
    clock.jumpWall(jumpMs);
    table.check(token, "10.0.0.1");
  }
  clock.jumpWall(-400 * 24 * HOUR_MS);
  clock.advance(15 * MINUTE_MS);
  refuses("SESSION_IDLE", () => table.check(token, "10.0.0.1"));
});

test("time asleep counts, also when the machine is asked right after waking (C-01)", () => {
  for (const pauseMs of [0, 400, 5_000]) {
    const { clock, table, open } = setUp();
    const { token } = open();
    table.check(token, "10.0.0.1");
    clock.sleep(15 * MINUTE_MS);
    clock.advance(pauseMs);
    refuses("SESSION_IDLE", () => table.check(token, "10.0.0.1"));
  }
  const { clock, table, open } = setUp();
  const { token } = open();
  clock.sleep(14 * MINUTE_MS);
  table.check(token, "10.0.0.1");
  clock.sleep(14 * MINUTE_MS);
  table.check(token, "10.0.0.1");
});

test("a sleep that an NTP step of the wall hides is noticed within a second", () => {
  const { clock, table, open } = setUp();
  const { token } = open();
  clock.sleep(16 * MINUTE_MS);
  clock.jumpWall(-16 * MINUTE_MS);
  clock.advance(1_000);
  refuses("SESSION_IDLE", () => table.check(token, "10.0.0.1"));
});

test("a sixth session ends the user's oldest, first in first out, and nobody else's (spec 3.4)", () => {
  const { table, open } = setUp();
  const others = open("bob@example.com");
  const mine = Array.from({ length: 5 }, () => open());
  table.check(mine[0]!.token, "10.0.0.1"); // use does not protect: the oldest is the first made
  const sixth = open();
  assert.deepEqual([sixth.evictedOldest, sixth.openSessions], [true, 5]);
  refuses("SESSION_EVICTED", () => table.check(mine[0]!.token, "10.0.0.1"));
  assert.equal(table.isLive(mine[0]!.session), false);
  assert.deepEqual(
    table.list("alice@example.com").map(({ id }) => id),
    [...mine.slice(1), sixth].map(({ session }) => session.id),
  );
  table.check(others.token, "10.0.0.1");
});

test("sessions that have run out do not count as one of the five", () => {
  const { clock, table, open } = setUp();
  const old = open();
  clock.advance(14 * MINUTE_MS);
  const young = Array.from({ length: 4 }, () => open());
  clock.advance(MINUTE_MS);
  assert.equal(open().evictedOldest, false);
  refuses("SESSION_IDLE", () => table.check(old.token, "10.0.0.1"));
  for (const { token } of young) table.check(token, "10.0.0.1");
});

test("a full table drops what has run out, then refuses, and never ends another user's session (D17)", () => {
  const { clock, table, open } = setUp({ global: 6 });
  const first = open("a@x");
  clock.advance(10 * MINUTE_MS);
  const rest = ["b@x", "b@x", "b@x", "b@x", "b@x"].map((username) => open(username));
  refuses("SESSION_TABLE_FULL", () => open("c@x"));
  assert.equal(open("b@x").evictedOldest, true); // replaces one of one's own, so the table does not grow
  clock.advance(5 * MINUTE_MS);
  const late = open("c@x");
  table.check(late.token, "10.0.0.1");
  refuses("SESSION_IDLE", () => table.check(first.token, "10.0.0.1"));
  refuses("SESSION_EVICTED", () => table.check(rest[0]!.token, "10.0.0.1"));
  assert.equal(table.openCount, 6);
});

test("the table holds exactly 10,000 sessions, and the sweep empties it when they have run out (spec 8, C-02)", () => {
  const { clock, table, open } = setUp();
  for (let at = 0; at < 10_000; at++) open(`user${at}@example.com`);
  refuses("SESSION_TABLE_FULL", () => open("one-more@example.com"));
  assert.equal(table.sweep(), 0);
  clock.advance(15 * MINUTE_MS);
  assert.equal(table.sweep(), 10_000);
  assert.equal(table.openCount, 0);
  open("one-more@example.com");
});

test("a token from another address is refused, the session stays, and the attempt is no use of it (spec 3.4, C-03)", () => {
  const { clock, table, events, open } = setUp();
  const { token, session } = open();
  clock.advance(10 * MINUTE_MS);
  refuses("IP_MISMATCH", () => table.check(token, "10.0.0.2"));
  assert.equal(session.lastUsedWallMs, session.createdAtWallMs);
  table.check(token, "10.0.0.1");
  assert.deepEqual(events, [
    { type: "ip_mismatch", username: "alice@example.com", ipBound: "10.0.0.1", ipSeen: "10.0.0.2", count: 1 },
  ]);
});

test("mismatches of one session are reported once in 10 minutes, with their number (T22, C-03)", () => {
  const { clock, table, events, open } = setUp();
  const { token } = open();
  const other = open("bob@example.com");
  const tryElsewhere = (which: string): void =>
    refuses("IP_MISMATCH", () => table.check(which, "::ffff:10.0.0.9"));
  for (let at = 0; at < 50; at++) tryElsewhere(token);
  tryElsewhere(other.token);
  assert.deepEqual(
    events.map(({ username, count }) => [username, count]),
    [
      ["alice@example.com", 1],
      ["bob@example.com", 1],
    ],
  );
  clock.advance(10 * MINUTE_MS - 1);
  table.check(token, "10.0.0.1");
  tryElsewhere(token);
  assert.equal(events.length, 2);
  clock.advance(1);
  tryElsewhere(token);
  assert.deepEqual([events.length, events.at(-1)?.count, events.at(-1)?.ipSeen], [3, 51, "10.0.0.9"]);
});

test("one client is one address on IPv4, mapped and zoned sockets (T22, C-04)", () => {
  for (const [bound, seen] of [
    ["::ffff:10.0.0.1", "10.0.0.1"],
    ["10.0.0.1", "::FFFF:10.0.0.1"],
    ["::ffff:a00:1", "10.0.0.1"],
    ["fe80::1%eth0", "fe80::1%wlan0"],
    ["2001:DB8:0:0:0:0:0:1", "2001:db8::1"],
    ["::1", "::1%lo"],
  ] as const) {
    const { table, open } = setUp();
    table.check(open("a@x", bound).token, seen);
  }
  const { table, open } = setUp();
  const { token } = open("a@x", "10.0.0.1");
  for (const other of ["10.0.0.10", "10.0.0", "::10.0.0.1", "::1", "", "10.0.0.1, 10.0.0.2"]) {
    refuses("IP_MISMATCH", () => table.check(token, other));
  }
});

test("an ended session is unknown, its streams stop, and ending it again does nothing (D23)", () => {
  const { table, open } = setUp();
  const one = open();
  const two = open();
  const bobs = open("bob@example.com");
  table.end(one.session);
  table.end(one.session);
  assert.equal(table.isLive(one.session), false);
  refuses("SESSION_UNKNOWN", () => table.check(one.token, "10.0.0.1"));
  table.check(two.token, "10.0.0.1");
  assert.equal(table.endAll("alice@example.com"), 1);
  assert.equal(table.endAll("alice@example.com"), 0);
  refuses("SESSION_UNKNOWN", () => table.check(two.token, "10.0.0.1"));
  table.check(bobs.token, "10.0.0.1");
  assert.equal(table.openCount, 1);
});

test("the last 10,000 ended tokens are told why, older ones are unknown", () => {
  const { clock, table, open } = setUp();
  const first = open("first@example.com");
  clock.advance(15 * MINUTE_MS);
  table.sweep();
  refuses("SESSION_IDLE", () => table.check(first.token, "10.0.0.1"));
  for (let at = 0; at < 9_999; at++) open(`user${at}@example.com`);
  clock.advance(15 * MINUTE_MS);
  table.sweep();
  refuses("SESSION_IDLE", () => table.check(first.token, "10.0.0.1"));
  for (let at = 0; at < 10_000; at++) open(`user${at}@example.com`);
  clock.advance(15 * MINUTE_MS);
  table.sweep();
  refuses("SESSION_UNKNOWN", () => table.check(first.token, "10.0.0.1"));
});

test("users are active for as long as the window says, and their last use outlives the session (D12)", () => {
  const { clock, table, open } = setUp({ idleTimeoutMs: HOUR_MS });
  assert.equal(table.lastActiveMs("alice@example.com"), undefined);
  open();
  open();
  const bobs = open("bob@example.com");
  clock.advance(10 * MINUTE_MS);
  table.check(bobs.token, "10.0.0.1");
  const lastMs = clock.wallMs();
  assert.equal(table.activeUsers(10 * MINUTE_MS).size, 2);
  assert.equal(table.activeUsers(10 * MINUTE_MS - 1).size, 1);
  table.endAll("bob@example.com");
  assert.equal(table.activeUsers(HOUR_MS).size, 1);
  assert.equal(table.lastActiveMs("bob@example.com"), lastMs);
});

test("a user who signed in is active from then on, and the latest use of several sessions counts (D12)", () => {
  const { clock, table, open } = setUp();
  const first = open();
  const atFirst = clock.wallMs();
  assert.equal(table.lastActiveMs("alice@example.com"), atFirst);
  clock.advance(1_000);
  const second = open();
  clock.advance(1_000);
  table.check(first.token, "10.0.0.1");
  assert.equal(table.lastActiveMs("alice@example.com"), atFirst + 2_000);
  table.end(first.session);
  assert.equal(table.lastActiveMs("alice@example.com"), atFirst + 2_000);
  clock.advance(1_000);
  table.check(second.token, "10.0.0.1");
  assert.equal(table.lastActiveMs("alice@example.com"), atFirst + 3_000);
  table.end(second.session);
  assert.equal(table.lastActiveMs("alice@example.com"), atFirst + 3_000);
});

test("who has used a session is told once, until the next use (D12)", () => {
  const { table, open } = setUp();
  const alices = open();
  open("bob@example.com");
  assert.deepEqual([...table.takeUsed()], ["alice@example.com", "bob@example.com"]);
  assert.deepEqual([...table.takeUsed()], []);
  table.check(alices.token, "10.0.0.1");
  table.check(alices.token, "10.0.0.1");
  assert.deepEqual([...table.takeUsed()], ["alice@example.com"]);
  table.check(alices.token, "10.0.0.1");
  assert.deepEqual([...table.takeUsed()], ["alice@example.com"]);
  // Sign-ins between two calls are included.
  for (const username of ["carol@example.com", "dave@example.com"]) {
    open(username);
    assert.deepEqual([...table.takeUsed()], [username]);
  }
});

test("the bounds are the specification's unless others are given (spec 8)", () => {
  assert.deepEqual(setUp().table.limits, {
    perUser: 5,
    global: 10_000,
    idleTimeoutMs: 15 * MINUTE_MS,
    lifetimeMs: 12 * HOUR_MS,
  });
  assert.equal(setUp({ perUser: 2 }).table.limits.perUser, 2);
});

test("no two live sessions have one name, even where chance repeats itself", () => {
  const { clock } = setUp();
  let token = 0;
  const ids = ["aa", "aa", "aa", "bb", "aa"];
  const table = new SessionTable({
    clock,
    random: {
      ...systemRandom,
      bytes: (count) => (count === 8 ? Buffer.alloc(8, ids.shift(), "hex") : Buffer.alloc(count, ++token)),
    },
  });
  const first = table.create(who("a@x"), FACTS).session;
  const second = table.create(who("b@x"), FACTS).session;
  assert.deepEqual([first.id, second.id], ["aa".repeat(8), "bb".repeat(8)]);
  table.end(first);
  assert.equal(table.create(who("c@x"), FACTS).session.id, "aa".repeat(8));
});

test("a refused client is told the limit that it ran into, in seconds (D1)", () => {
  const behind = (act: () => unknown): unknown => {
    try {
      act();
    } catch (error) {
      if (isGroveError(error)) return error.metadata;
      throw error;
    }
    return undefined;
  };
  const { clock, table, open } = setUp({ lifetimeMs: 40 * MINUTE_MS, global: 6 });
  const oldest = open();
  for (let at = 0; at < 5; at++) open();
  assert.deepEqual(
    behind(() => table.check(oldest.token, "10.0.0.1")),
    { sessions_per_user: "5" },
  );
  open("bob@example.com");
  assert.deepEqual(
    behind(() => open("carol@example.com")),
    { limit: "6" },
  );
  const { token } = table.create(who("alice@example.com"), FACTS);
  assert.deepEqual(
    behind(() => table.check(token, "::ffff:10.0.0.2")),
    { seen_address: "10.0.0.2" },
  );
  for (let at = 0; at < 3; at++) {
    clock.advance(14 * MINUTE_MS - 1);
    if (at < 2) table.check(token, "10.0.0.1");
  }
  assert.deepEqual(
    behind(() => table.check(token, "10.0.0.1")),
    { lifetime_seconds: "2400" },
  );
  const idle = open("dave@example.com");
  clock.advance(15 * MINUTE_MS);
  assert.deepEqual(
    behind(() => table.check(idle.token, "10.0.0.1")),
    { idle_timeout_seconds: "900" },
  );
});

test("labels of a client are cut at their limit, not refused (spec 8)", () => {
  const { table } = setUp();
  const label = "x".repeat(CLIENT_LABEL_MAX_LENGTH);
  const facts = {
    address: "10.0.0.1",
    clientId: `${label}y`,
    clientVersion: `${label}y`,
    deviceName: `${label}y`,
  };
  const { session } = table.create(who("a@x"), facts);
  assert.deepEqual([session.clientId, session.clientVersion, session.deviceName], [label, label, label]);
});

test("whoever watches a session hears once of its end, whatever ends it, and not after taking that back", () => {
  const { clock, table, open } = setUp({ perUser: 2 });
  const told: string[] = [];
  const [first, second] = [open(), open()];
  table.whenEnded(first.session, () => told.push("evicted"));
  const takeBack = table.whenEnded(first.session, () => told.push("taken back"));
  takeBack();
  open();
  assert.deepEqual(told, ["evicted"]);
  table.whenEnded(second.session, () => told.push("ended"));
  table.end(second.session);
  table.end(second.session);
  const third = open("bob@example.com");
  table.whenEnded(third.session, () => told.push("idle"));
  clock.advance(15 * MINUTE_MS + 1);
  table.sweep();
  assert.deepEqual(told, ["evicted", "ended", "idle"]);
});

test("whoever ends all sessions of a user ends those that live, and one that has run out stays known as that", () => {
  const { clock, table, open } = setUp();
  const idle = open();
  clock.advance(15 * MINUTE_MS - 1);
  open();
  clock.advance(2);
  assert.equal(table.endAll("alice@example.com"), 1);
  refuses("SESSION_IDLE", () => table.check(idle.token, FACTS.address));
});
