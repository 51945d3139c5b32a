// Compares the session table with a plain list over any calls and any passing, jumping and sleeping time.
import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { ManualClock } from "#base/clock.ts";
import { systemRandom } from "#base/random.ts";
import { makeVerifiedIdentity } from "#base/verified-identity.ts";
import { answerOf } from "./session-answer.fixture.ts";
import { type Session, SessionTable } from "./session-table.ts";

const LIMITS = { perUser: 3, global: 8, idleTimeoutMs: 15_000, lifetimeMs: 60_000 };
const ADDRESSES = ["10.0.0.1", "10.0.0.2"] as const;

interface ModelSession {
  readonly token: string;
  readonly session: Session;
  readonly user: string;
  readonly address: string;
  readonly bornMs: number;
  usedMs: number;
  state: "live" | "SESSION_IDLE" | "SESSION_EXPIRED" | "SESSION_EVICTED" | "SESSION_UNKNOWN";
}

type Step =
  | { readonly do: "create"; readonly user: number; readonly address: number }
  | { readonly do: "check" | "end"; readonly which: number; readonly address: number }
  | { readonly do: "endAll"; readonly user: number }
  | { readonly do: "sweep" | "list" }
  | { readonly do: "advance" | "jump" | "sleep"; readonly ms: number };

const user = fc.nat(3);
const address = fc.nat(1);
const which = fc.nat(40);
const step: fc.Arbitrary<Step> = fc.oneof(
  { weight: 5, arbitrary: fc.record({ do: fc.constant("create" as const), user, address }) },
  {
    weight: 5,
    arbitrary: fc.record({ do: fc.constant("check" as const), which, address }),
  },
  fc.record({ do: fc.constant("end" as const), which, address }),
  fc.record({ do: fc.constant("endAll" as const), user }),
  fc.record({ do: fc.constantFrom("sweep" as const, "list" as const) }),
  {
    weight: 3,
    arbitrary: fc.record({
      do: fc.constant("advance" as const),
      ms: fc.constantFrom(0, 1, 4_999, 5_000, 14_999, 15_000, 30_000),
    }),
  },
  fc.record({ do: fc.constant("jump" as const), ms: fc.integer({ min: -50_000_000, max: 50_000_000 }) }),
  fc.record({ do: fc.constant("sleep" as const), ms: fc.constantFrom(2_000, 14_000, 15_000, 100_000) }),
);

/** The specification as a plain list in order of creation. */
class Model {
  nowMs = 0;
  readonly sessions: ModelSession[] = [];

  /** Marks sessions that have expired by now. */
  settle(): void {
    for (const one of this.sessions) {
      if (one.state !== "live") continue;
      const idleEndMs = one.usedMs + LIMITS.idleTimeoutMs;
      const lifeEndMs = one.bornMs + LIMITS.lifetimeMs;
      if (this.nowMs < Math.min(idleEndMs, lifeEndMs)) continue;
      one.state = lifeEndMs <= idleEndMs ? "SESSION_EXPIRED" : "SESSION_IDLE";
    }
  }

  live(of?: string): ModelSession[] {
    return this.sessions.filter((one) => one.state === "live" && (of === undefined || one.user === of));
  }
}

function play(steps: readonly Step[]): void {
  const clock = new ManualClock();
  const table = new SessionTable({ clock, random: systemRandom, limits: LIMITS });
  const model = new Model();
  for (const one of steps) {
    model.settle();
    if (one.do === "create") playCreate(one, table, model);
    else if (one.do === "advance" || one.do === "sleep") {
      if (one.do === "advance") clock.advance(one.ms);
      else clock.sleep(one.ms);
      model.nowMs += one.ms;
    } else if (one.do === "jump") clock.jumpWall(one.ms);
    else if (one.do === "endAll") {
      const mine = model.live(`user${one.user}`);
      assert.equal(table.endAll(`user${one.user}`), mine.length);
      for (const session of mine) session.state = "SESSION_UNKNOWN";
    } else if (one.do === "sweep") {
      table.sweep();
      assert.equal(table.openCount, model.live().length);
    } else if (one.do === "list") {
      for (const name of ["user0", "user1", "user2", "user3"]) {
        const expected = model.live(name).map(({ session }) => session.id);
        assert.deepEqual(
          table.list(name).map(({ id }) => id),
          expected,
        );
      }
    } else if ("which" in one) playOnSession(one, table, model);
    assert.ok(table.openCount <= LIMITS.global);
  }
}

function playCreate(one: { user: number; address: number }, table: SessionTable, model: Model): void {
  const username = `user${one.user}`;
  const mine = model.live(username);
  const evicted = mine.length >= LIMITS.perUser ? mine[0] : undefined;
  const isFull = model.live().length - (evicted === undefined ? 0 : 1) >= LIMITS.global;
  const from = ADDRESSES[one.address]!;
  const create = () =>
    table.create(makeVerifiedIdentity({ username, issuer: "", subject: "" }), {
      address: from,
      clientId: "",
      clientVersion: "",
      deviceName: "",
    });
  if (isFull) {
    assert.equal(answerOf(create), "SESSION_TABLE_FULL");
    return;
  }
  const { token, session, evictedOldest, openSessions } = create();
  if (evicted !== undefined) evicted.state = "SESSION_EVICTED";
  const [bornMs, usedMs] = [model.nowMs, model.nowMs];
  model.sessions.push({ token, session, user: username, address: from, bornMs, usedMs, state: "live" });
  assert.equal(evictedOldest, evicted !== undefined);
  assert.equal(openSessions, model.live(username).length);
}

function playOnSession(
  one: { do: "check" | "end"; which: number; address: number },
  table: SessionTable,
  model: Model,
): void {
  if (model.sessions.length === 0) return;
  const session = model.sessions[one.which % model.sessions.length]!;
  assert.equal(table.isLive(session.session), session.state === "live");
  if (one.do === "check") {
    const isSame = ADDRESSES[one.address] === session.address;
    const expected = session.state !== "live" ? session.state : isSame ? "ok" : "IP_MISMATCH";
    assert.equal(
      answerOf(() => table.check(session.token, ADDRESSES[one.address]!)),
      expected,
    );
    if (expected === "ok") session.usedMs = model.nowMs;
  } else {
    table.end(session.session);
    if (session.state === "live") session.state = "SESSION_UNKNOWN";
  }
}

test("any order of calls does what a list in order of creation does (spec 3.4, C-01, C-02)", {
  timeout: 120_000,
}, () => {
  fc.assert(fc.property(fc.array(step, { maxLength: 120 }), play), { numRuns: 500 });
});

test("200 random jumps of the wall change nothing that any call answers (C-01)", { timeout: 60_000 }, () => {
  const jumps = fc.array(fc.integer({ min: -13 * 3_600_000, max: 13 * 3_600_000 }), {
    minLength: 200,
    maxLength: 200,
  });
  fc.assert(
    fc.property(jumps, (jumpsMs) => {
      const steps: Step[] = [{ do: "create", user: 0, address: 0 }];
      for (const ms of jumpsMs) {
        steps.push({ do: "jump", ms }, { do: "advance", ms: 100 }, { do: "check", which: 0, address: 0 });
      }
      play(steps);
    }),
    { numRuns: 20 },
  );
});
