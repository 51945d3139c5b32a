// The table of operators who are signed in: 32 random bytes each, kept as a hash, 12 hours on the steady clock (spec 2.4, W-04).
import { hash } from "node:crypto";
import type { Clock } from "#base/clock.ts";
import { ADMIN_SESSION_LIFETIME_MS, SESSION_SWEEP_INTERVAL_MS } from "#base/limits.ts";
import type { Random } from "#base/random.ts";
import type { OperatorSession } from "#console/http/route.ts";
import type { OperatorPerson } from "./operator-people.ts";

/** Operators signed in to one console (D3): more than a team has browsers; one more ends the oldest session. */
const ADMIN_SESSIONS_MAX = 100;

const TOKEN_BYTES = 32;
const TOKEN_FORM = /^[0-9a-f]{64}$/;
/** Characters of the token's hash that name a session in logs and audit lines. */
const ID_LENGTH = 8;

/** A session as it is listed. */
export interface ListedSession {
  readonly session: OperatorSession;
  /** Where the password came from. */
  readonly address: string;
  readonly openedAtWallMs: number;
}

interface Row extends ListedSession {
  /** Who it is at the identity provider; undefined for whoever has shown the password. */
  readonly subject: string | undefined;
  readonly endsSteadyMs: number;
  /** On the clock that counts time asleep, where there is one (C-01). */
  readonly endsBootMs: number | undefined;
}

/** Why a session is over. */
export type SessionEnd = "logout" | "expired" | "evicted" | "password_changed" | "not_listed";

/** A session as it was just made. */
export interface NewSession {
  /** 64 hex characters; nobody can read it again. */
  readonly token: string;
  readonly session: OperatorSession;
}

/** Sessions of operators, in memory only: a restart ends them all. At most 100; one more ends the oldest. */
export class OperatorSessions {
  readonly #clock: Clock;
  readonly #random: Random;
  /** By SHA-256 of the token, the oldest first. */
  readonly #rows = new Map<string, Row>();
  readonly #listeners = new Set<(session: OperatorSession, why: SessionEnd) => void>();
  readonly #stopSweeping: () => void;
  #bootReadAtMs: number | undefined;
  #bootReadMs: number | undefined;

  constructor(deps: { readonly clock: Clock; readonly random: Random }) {
    this.#clock = deps.clock;
    this.#random = deps.random;
    this.#stopSweeping = deps.clock.every(SESSION_SWEEP_INTERVAL_MS, () => this.#sweep());
  }

  /** Sessions that have not been swept yet. */
  get count(): number {
    return this.#rows.size;
  }

  /** Makes a session for whoever has just shown the password with this SHA-256, or to be a person, from an address. */
  create(passwordHash: string, address = "", person?: OperatorPerson): NewSession {
    this.#sweep();
    for (const [key, row] of this.#rows) {
      if (this.#rows.size < ADMIN_SESSIONS_MAX) break;
      this.#end(key, row, "evicted");
    }
    const token = this.#random.bytes(TOKEN_BYTES).toString("hex");
    const key = keyOf(token);
    const bootMs = this.#clock.bootMs?.();
    const session: OperatorSession = {
      id: `${person === undefined ? "" : `${person.username}/`}${key.slice(0, ID_LENGTH)}`,
      expiresAtWallMs: this.#clock.wallMs() + ADMIN_SESSION_LIFETIME_MS,
      passwordHash,
    };
    this.#rows.set(key, {
      session,
      subject: person?.subject,
      address,
      openedAtWallMs: this.#clock.wallMs(),
      endsSteadyMs: this.#clock.steadyMs() + ADMIN_SESSION_LIFETIME_MS,
      endsBootMs: bootMs === undefined ? undefined : bootMs + ADMIN_SESSION_LIFETIME_MS,
    });
    return { token, session };
  }

  /** The session of a token; undefined for one that is unknown, malformed, ended or older than 12 hours. */
  byToken(token: string): OperatorSession | undefined {
    if (!TOKEN_FORM.test(token)) return undefined;
    const key = keyOf(token);
    const row = this.#rows.get(key);
    if (row === undefined) return undefined;
    if (!this.#isOver(row)) return row.session;
    this.#end(key, row, "expired");
    return undefined;
  }

  /** True while the session has neither ended nor expired: for what outlives a request, such as a socket. */
  isLive(session: OperatorSession): boolean {
    for (const row of this.#rows.values()) if (row.session === session) return !this.#isOver(row);
    return false;
  }

  /** Ends one session; nothing happens when it has ended already. */
  end(session: OperatorSession, why: SessionEnd = "logout"): void {
    for (const [key, row] of this.#rows) if (row.session === session) this.#end(key, row, why);
  }

  /** Those that live, the newest first. */
  list(): readonly ListedSession[] {
    this.#sweep();
    return [...this.#rows.values()].toReversed();
  }

  /** Ends all sessions: the password has changed (W-04), or somebody asks for it. Returns how many there were. */
  endAll(why: SessionEnd = "password_changed"): number {
    const count = this.#rows.size;
    for (const [key, row] of this.#rows) this.#end(key, row, why);
    return count;
  }

  /** Ends the sessions of those who signed in by name and are operators no more; answers with them. */
  endPeople(isOperator: (subject: string) => boolean): readonly OperatorSession[] {
    const gone = [...this.#rows].filter(([, { subject }]) => subject !== undefined && !isOperator(subject));
    for (const [key, row] of gone) this.#end(key, row, "not_listed");
    return gone.map(([, { session }]) => session);
  }

  /** Calls back for each session that ends, whatever the reason; the returned function stops that. */
  onEnd(listener: (session: OperatorSession, why: SessionEnd) => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  /** Stops the timer. */
  close(): void {
    this.#stopSweeping();
  }

  #sweep(): void {
    for (const [key, row] of this.#rows) if (this.#isOver(row)) this.#end(key, row, "expired");
  }

  /** At most a second old: asking the system takes longer than the rest of looking a session up. */
  #bootMs(): number | undefined {
    const nowMs = this.#clock.steadyMs();
    if (this.#bootReadAtMs === undefined || nowMs - this.#bootReadAtMs >= 1_000) {
      this.#bootReadAtMs = nowMs;
      this.#bootReadMs = this.#clock.bootMs?.();
    }
    return this.#bootReadMs;
  }

  #isOver(row: Row): boolean {
    if (this.#clock.steadyMs() >= row.endsSteadyMs) return true;
    const bootMs = this.#bootMs();
    return bootMs !== undefined && row.endsBootMs !== undefined && bootMs >= row.endsBootMs;
  }

  #end(key: string, row: Row, why: SessionEnd): void {
    this.#rows.delete(key);
    for (const listener of this.#listeners) listener(row.session, why);
  }
}

/** Tokens are looked up by their hash, so that no comparison ends early on a secret (C-12). */
function keyOf(token: string): string {
  return hash("sha256", token, "hex");
}
