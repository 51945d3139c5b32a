// Compares the session table, with 10,000 sessions in it, with a plain list while the clocks jump (F11).
//
// A table with the product's own limits is filled to its 10,000 sessions. Then the clocks jump, again and
// again: the wall clock by milliseconds, hours and decades, both clocks forward, and the machine sleeps. Some
// jumps end at the very millisecond at which a session expires, or at one beside it. After each jump come
// 1,500 random calls, a refill to the last place and attempts beyond it. Then every user's sessions in their
// order and every session's state are compared with the list, which knows no clock but the age of the
// machine.
//
// It cannot see what happens between the socket and the table (the authorization rig goes that way), and
// memory or time that the table takes. It trusts the machine's clocks to count as promised.

import { ManualClock } from "#base/clock.ts";
import { systemRandom } from "#base/random.ts";
import { makeVerifiedIdentity } from "#base/verified-identity.ts";
import type { Campaign } from "#prove/campaign.ts";
import type { Rig } from "#prove/rig.ts";
import type { SeededRandom } from "#prove/seeded-random.ts";
import { answerOf } from "#security/sessions/session-answer.fixture.ts";
import { type Session, SessionTable } from "#security/sessions/session-table.ts";
import { type Listed, SessionList } from "./session-list.ts";

const USERS = 2_600;
const CAPACITY = 10_000;
const CALLS_PER_JUMP = 1_500;
const ATTEMPTS_BEYOND = 40;
const DECADE_MS = 10 * 365 * 86_400_000;
const HOUR_MS = 3_600_000;

/** See the head of this file. */
export const sessions: Rig = {
  name: "sessions",
  figure: "F11",
  proves:
    "10,000 sessions are kept in exact order and number through jumps of the clocks, and none is accepted after its end",
  unit: "clock jumps",
  goal: 500,
  shortGoal: 8,
  async run(campaign) {
    const lab = new Lab(campaign);
    lab.refill();
    for (; campaign.shouldGoOn(); campaign.step()) {
      lab.jump();
      for (let call = 0; call < CALLS_PER_JUMP; call++) lab.call();
      lab.refill();
      lab.compareAll();
    }
    lab.requireAttack();
  },
};

class Lab {
  readonly #campaign: Campaign;
  readonly #random: SeededRandom;
  readonly #clock = new ManualClock();
  readonly #table: SessionTable;
  readonly #list = new SessionList();
  readonly #sessions = new Map<string, Session>();
  #lastJump = "none";
  #expiredTried = 0;

  constructor(campaign: Campaign) {
    this.#campaign = campaign;
    this.#random = campaign.random;
    this.#table = new SessionTable({ clock: this.#clock, random: systemRandom });
  }

  /** One jump of a clock, with most sessions used just before, so that the table stays full. */
  jump(): void {
    for (const one of this.#list.live) if (this.#random.chance(0.7)) this.#check(one, one.address);
    // In turn, so that a short run has every kind.
    const random = this.#random;
    const kinds = [
      () => this.#jumpWall(random.between(-400, 400)),
      () => this.#sleep(random.between(2_000, 14 * 60_000)),
      () => this.#jumpWall(random.between(HOUR_MS, 13 * HOUR_MS)),
      () => this.#advanceToAnEnd(random.between(-1, 1)),
      () => this.#advance(random.below(15 * 60_000)),
      () => this.#jumpWall(-random.between(HOUR_MS, 13 * HOUR_MS)),
      () => this.#sleep(random.chance(0.5) ? 13 * HOUR_MS : random.between(15, 16) * 60_000),
      () => this.#jumpWall(random.between(-3 * DECADE_MS, 3 * DECADE_MS)),
    ];
    kinds[this.#campaign.done % kinds.length]?.();
  }

  #jumpWall(byMs: number): void {
    this.#lastJump = `wall by ${byMs} ms`;
    this.#clock.jumpWall(byMs);
    // Later, the step must not be mistaken for a sleep either.
    this.#advance(this.#random.below(2_000));
  }

  #advance(byMs: number): void {
    this.#lastJump += `, then ${byMs} ms passed`;
    this.#clock.advance(byMs);
    this.#list.pass(byMs);
  }

  /** To the millisecond at which an unused session expires, or one beside it. */
  #advanceToAnEnd(offsetMs: number): void {
    const { nowMs } = this.#list;
    const one = this.#random.pick(this.#list.live);
    this.#lastJump = `to ${offsetMs} ms beside the end of a session`;
    this.#advance(Math.max(0, this.#list.endOf(one) - nowMs + offsetMs));
    this.#check(one, one.address);
  }

  #sleep(forMs: number): void {
    this.#lastJump = `asleep for ${forMs} ms`;
    this.#clock.sleep(forMs);
    this.#list.pass(forMs);
  }

  /** Makes one random call and compares it with the list's answer. */
  call(): void {
    const random = this.#random;
    const draw = random.below(100);
    if (draw < 30 || this.#list.live.length === 0) this.#create(userOf(random.below(USERS)));
    else if (draw < 70) this.#check(this.#someLive(), random.chance(0.9) ? undefined : "10.9.9.9");
    else if (draw < 80) this.#checkDead();
    else if (draw < 86) this.#check(this.#someLive(), undefined);
    else if (draw < 92) this.#end(this.#someLive());
    else if (draw < 94) this.#endAll(userOf(random.below(USERS)));
    else if (draw < 96) this.#table.sweep();
    else this.#compareUser(userOf(random.below(USERS)));
  }

  /** Fills the table to its last place, and tries to go on. */
  refill(): void {
    const first = this.#random.below(USERS);
    for (let at = 0; this.#list.live.length < CAPACITY && at < 5 * USERS; at++) {
      const user = userOf((first + at) % USERS);
      if (this.#list.wouldEnd(user) === undefined) this.#create(user);
    }
    for (let attempt = 0; attempt < ATTEMPTS_BEYOND; attempt++) {
      this.#create(attempt % 2 === 0 ? `late${attempt}@example.com` : userOf(this.#random.below(USERS)));
    }
    this.#campaign.figure("live sessions after each jump", this.#list.live.length);
  }

  /** Compares all users' sessions. */
  compareAll(): void {
    for (let user = 0; user < USERS; user++) this.#compareUser(userOf(user));
    for (const one of this.#list.live) this.#compareLiveness(one);
    for (const one of this.#list.dead.slice(-2_000)) this.#compareLiveness(one);
    this.#table.sweep();
    this.#list.swept();
    this.#expect("sessions in the table", this.#table.openCount, this.#list.live.length);
  }

  /** Requires that enough sessions have expired in the run. */
  requireAttack(): void {
    if (this.#expiredTried < 10) this.#campaign.violation("hardly any session that had run out was tried");
  }

  #create(user: string): void {
    const address = `10.0.0.${this.#random.below(200)}`;
    const identity = makeVerifiedIdentity({ username: user, issuer: "", subject: "" });
    const facts = { address, clientId: "", clientVersion: "", deviceName: "" };
    const evicts = this.#list.wouldEnd(user) !== undefined;
    const expected = this.#list.isFullFor(user) ? "SESSION_TABLE_FULL" : "ok";
    let created: ReturnType<SessionTable["create"]> | undefined;
    const answer = answerOf(() => {
      created = this.#table.create(identity, facts);
    });
    this.#expect(`a new session of ${user}`, answer, expected);
    if (created === undefined) return;
    this.#list.add(user, address, created.token);
    this.#sessions.set(created.token, created.session);
    this.#expect("evictedOldest", created.evictedOldest, evicts);
    this.#expect(`sessions of ${user}`, created.openSessions, this.#list.byUser.get(user)?.length);
  }

  #check(one: Listed | undefined, from: string | undefined): void {
    if (one === undefined) return;
    const address = from ?? one.address;
    const answer = answerOf(() => this.#table.check(one.token, address));
    const allowed = this.#list.answersTo(one, address);
    if (!allowed.includes(answer)) this.#expect(`a token of ${one.user}`, answer, allowed.join(" or "));
    else this.#campaign.count("answers compared");
    if (one.ended === undefined && address === one.address) one.usedMs = this.#list.nowMs;
    if (one.ended === "SESSION_IDLE" || one.ended === "SESSION_EXPIRED") this.#tried(answer);
  }

  #tried(answer: string): void {
    this.#expiredTried++;
    this.#campaign.count("expired tokens tried");
    this.#campaign.count("expired tokens accepted", answer === "ok" ? 1 : 0);
  }

  #checkDead(): void {
    const { dead } = this.#list;
    if (dead.length > 0) this.#check(this.#random.pick(dead), undefined);
  }

  #end(one: Listed): void {
    this.#table.end(this.#sessionOf(one));
    this.#list.end(one, "SESSION_UNKNOWN");
  }

  #endAll(user: string): void {
    const mine = this.#list.byUser.get(user) ?? [];
    this.#expect(`sessions ended of ${user}`, this.#table.endAll(user), mine.length);
    for (const one of mine) this.#list.end(one, "SESSION_UNKNOWN");
  }

  #compareUser(user: string): void {
    const said = this.#table.list(user).map(({ id }) => id);
    const expected = (this.#list.byUser.get(user) ?? []).map((one) => this.#sessionOf(one).id);
    this.#expect(`the list of ${user}`, said.join(" "), expected.join(" "));
  }

  #compareLiveness(one: Listed): void {
    const isLive = this.#table.isLive(this.#sessionOf(one));
    this.#expect(`life of a session of ${one.user}`, isLive, one.ended === undefined);
  }

  #someLive(): Listed {
    return this.#random.pick(this.#list.live);
  }

  #sessionOf(one: Listed): Session {
    const session = this.#sessions.get(one.token);
    if (session === undefined) throw new Error("the list has a session that was never made");
    return session;
  }

  #expect(what: string, actual: unknown, expected: unknown): void {
    this.#campaign.count("answers compared");
    if (actual === expected) return;
    const when = `jump ${this.#campaign.done + 1} (${this.#lastJump})`;
    this.#campaign.violation(`${when}: ${what}: ${String(actual)} instead of ${String(expected)}`);
  }
}

function userOf(number: number): string {
  return `user${number}@example.com`;
}
