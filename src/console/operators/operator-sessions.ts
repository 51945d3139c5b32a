// Sessions of operators: 32 random bytes each, kept as a hash, 12 hours on the steady clock (spec 2.4, W-04).
import { hash } from "node:crypto";
import type { Clock } from "#base/clock.ts";
import { ADMIN_SESSION_LIFETIME_MS, SESSION_SWEEP_INTERVAL_MS } from "#base/limits.ts";
import type { Random } from "#base/random.ts";
import type { OperatorSession } from "#console/http/route.ts";
import type { OperatorPerson } from "./operator-people.ts";

/** Sessions of one console (D3), more than a team has browsers; one more ends the oldest. */
const ADMIN_SESSIONS_MAX = 100;

const TOKEN_BYTES = 32;
const TOKEN_FORM = /^[0-9a-f]{64}$/;
/** Characters of the token's hash that identify a session in logs and audit lines. */
const ID_LENGTH = 8;

/** A session in a list. */
export interface ListedSession {
  readonly session: OperatorSession;
  /** Address of the sign-in. */
  readonly address: string;
  readonly openedAtWallMs: number;
}

interface Row extends ListedSession {
  /** The subject at the identity provider; undefined after a sign-in by password. */
  readonly subject: string | undefined;
  /** On the clock that includes suspend, where the system has one (C-01). */
  readonly endsBootMs: number | undefined;
}

/** The reason for a session's end. */
export type SessionEnd = "logout" | "expired" | "evicted" | "password_changed" | "not_listed";

/** A new session. */
export interface NewSession {
  /** 64 hex characters; only their hash is kept. */
  readonly token: string;
  readonly session: OperatorSession;
}

/** Sessions of operators, in memory only: a restart ends them. At most 100; one more ends the oldest. */
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

  /** Sessions, expired ones included until the next sweep. */
  get count(): number {
    return this.#rows.size;
  }

  /** Opens a session from an address, for the password with this SHA-256 or for a person. */
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
      endsSteadyMs: this.#clock.steadyMs() + ADMIN_SESSION_LIFETIME_MS,
      passwordHash,
    };
    this.#rows.set(key, {
      session,
      subject: person?.subject,
      address,
      openedAtWallMs: this.#clock.wallMs(),
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

  /** True until the session ends or expires; for long-lived users such as sockets. */
  isLive(session: OperatorSession): boolean {
    for (const row of this.#rows.values()) if (row.session === session) return !this.#isOver(row);
    return false;
  }

  /** Ends one session; no effect on an ended one. */
  end(session: OperatorSession, why: SessionEnd = "logout"): void {
    for (const [key, row] of this.#rows) if (row.session === session) this.#end(key, row, why);
  }

  /** The live sessions, newest first. */
  list(): readonly ListedSession[] {
    this.#sweep();
    return [...this.#rows.values()].toReversed();
  }

  /** Ends all sessions, after a changed password (W-04) or on request. Returns their number. */
  endAll(why: SessionEnd = "password_changed"): number {
    const count = this.#rows.size;
    for (const [key, row] of this.#rows) this.#end(key, row, why);
    return count;
  }

  /** Ends the sessions of people who are no longer operators; returns them. */
  endPeople(isOperator: (subject: string) => boolean): readonly OperatorSession[] {
    const gone = [...this.#rows].filter(([, { subject }]) => subject !== undefined && !isOperator(subject));
    for (const [key, row] of gone) this.#end(key, row, "not_listed");
    return gone.map(([, { session }]) => session);
  }

  /** Registers a listener for every ended session; the returned function removes it. */
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

  /** Cached for a second, since the system call is slower than the rest of a lookup. */
  #bootMs(): number | undefined {
    const nowMs = this.#clock.steadyMs();
    if (this.#bootReadAtMs === undefined || nowMs - this.#bootReadAtMs >= 1_000) {
      this.#bootReadAtMs = nowMs;
      this.#bootReadMs = this.#clock.bootMs?.();
    }
    return this.#bootReadMs;
  }

  #isOver(row: Row): boolean {
    if (this.#clock.steadyMs() >= row.session.endsSteadyMs) return true;
    const bootMs = this.#bootMs();
    return bootMs !== undefined && row.endsBootMs !== undefined && bootMs >= row.endsBootMs;
  }

  #end(key: string, row: Row, why: SessionEnd): void {
    this.#rows.delete(key);
    for (const listener of this.#listeners) listener(row.session, why);
  }
}

/** Tokens are looked up by hash, so that no comparison leaks a secret's prefix by its time (C-12). */
function keyOf(token: string): string {
  return hash("sha256", token, "hex");
}
