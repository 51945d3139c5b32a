// A plain list of sessions in order of creation, as a model of the specification's table.

const PER_USER = 5;
const GLOBAL = 10_000;
const IDLE_MS = 15 * 60_000;
const LIFETIME_MS = 12 * 3_600_000;
/**
 * The reason of a session's end is kept for this many of them, and forgotten in the order in which the table
 * noticed.
 */
const REMEMBERED = 10_000;

/** A session of the list. */
export interface Listed {
  readonly user: string;
  readonly address: string;
  readonly token: string;
  readonly bornMs: number;
  usedMs: number;
  /** The refusal of its token; undefined while it lives. */
  ended: string | undefined;
  /** Number of ended sessions at the last sweep before its own end. */
  endedAfter: number;
}

/**
 * The list. Its time is the age of the machine: it neither jumps with the wall clock nor stands still while
 * the machine sleeps.
 */
export class SessionList {
  nowMs = 0;
  /** In order of creation. */
  live: Listed[] = [];
  readonly byUser: Map<string, Listed[]> = new Map();
  /** Those that ended last, the newest last. */
  dead: Listed[] = [];
  #endedCount = 0;
  #knownCount = 0;

  /** Lets time pass and drops expired sessions. */
  pass(ms: number): void {
    this.nowMs += ms;
    const over = this.live.filter((one) => this.#reasonOf(one) !== undefined);
    for (const one of over) this.#bury(one, this.#reasonOf(one) ?? "");
    if (over.length > 0) this.live = this.live.filter((one) => one.ended === undefined);
  }

  /** When a session expires if it is not used again. */
  endOf(one: Listed): number {
    return Math.min(one.usedMs + IDLE_MS, one.bornMs + LIFETIME_MS);
  }

  /** The user's session that a new one would end. */
  wouldEnd(user: string): Listed | undefined {
    const own = this.byUser.get(user) ?? [];
    return own.length >= PER_USER ? own[0] : undefined;
  }

  /** True when a new session of this user is refused because the table is full. */
  isFullFor(user: string): boolean {
    return this.wouldEnd(user) === undefined && this.live.length >= GLOBAL;
  }

  add(user: string, address: string, token: string): void {
    const oldest = this.wouldEnd(user);
    if (oldest !== undefined) this.end(oldest, "SESSION_EVICTED");
    const { nowMs } = this;
    const one = { user, address, token, bornMs: nowMs, usedMs: nowMs, ended: undefined, endedAfter: 0 };
    this.live.push(one);
    this.byUser.set(user, [...(this.byUser.get(user) ?? []), one]);
  }

  end(one: Listed, reason: string): void {
    this.#bury(one, reason);
    this.live.splice(this.live.indexOf(one), 1);
  }

  /** Answers that a token may get: one, or two when it ended so long ago that the reason may be forgotten. */
  answersTo(one: Listed, address: string): readonly string[] {
    if (one.ended === undefined) return [one.address === address ? "ok" : "IP_MISMATCH"];
    const isRecent = this.#endedCount - one.endedAfter < REMEMBERED;
    return isRecent ? [one.ended] : [one.ended, "SESSION_UNKNOWN"];
  }

  /** The table has noticed every end until now. */
  swept(): void {
    this.#knownCount = this.#endedCount;
  }

  /** The limit that comes first. */
  #reasonOf(one: Listed): string | undefined {
    if (this.nowMs < this.endOf(one)) return undefined;
    return one.bornMs + LIFETIME_MS <= one.usedMs + IDLE_MS ? "SESSION_EXPIRED" : "SESSION_IDLE";
  }

  #bury(one: Listed, reason: string): void {
    one.ended = reason;
    one.endedAfter = this.#knownCount;
    this.#endedCount++;
    const left = (this.byUser.get(one.user) ?? []).filter((other) => other !== one);
    if (left.length === 0) this.byUser.delete(one.user);
    else this.byUser.set(one.user, left);
    this.dead.push(one);
    if (this.dead.length > 2 * REMEMBERED) this.dead = this.dead.slice(-REMEMBERED);
  }
}
