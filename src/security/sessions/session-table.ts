// The table of Server Session Tokens: mints, binds, checks and evicts sessions, in memory only (spec 2.3,
// 3.4, 5.3).
import { hash } from "node:crypto";
import { LRUCache } from "lru-cache";
import { atMost } from "#base/at-most.ts";
import type { Clock } from "#base/clock.ts";
import { GroveError } from "#base/errors.ts";
import {
  CLIENT_LABEL_MAX_LENGTH,
  IP_MISMATCH_EVENT_INTERVAL_MS,
  SESSION_IDLE_TIMEOUT_MS,
  SESSION_LIFETIME_MS,
  SESSIONS_GLOBAL,
  SESSIONS_PER_USER,
} from "#base/limits.ts";
import type { Random } from "#base/random.ts";
import type { SecurityEventSink } from "#base/security-event.ts";
import type { VerifiedIdentity } from "#base/verified-identity.ts";
import { normalizeAddress } from "./address.ts";
import { AgeClock } from "./age-clock.ts";
import { type EndReason, endedBy, LAST_ACTIVE_USERS_KEPT, SESSION_TOMBSTONES } from "./end-reason.ts";

/** One client's public session. Times are wall times, for information; the table uses steady ones (C-01). */
export interface Session {
  /** Public name of the session: 16 hex characters, random, of no use as a token. */
  readonly id: string;
  readonly identity: VerifiedIdentity;
  /** Canonical IP address that the session is bound to. */
  readonly address: string;
  readonly clientId: string;
  readonly clientVersion: string;
  readonly deviceName: string;
  readonly createdAtWallMs: number;
  readonly lastUsedWallMs: number;
  readonly expiresAtWallMs: number;
}

/** Facts about a client beside its identity (decision D23). */
export interface SessionFacts {
  /** IP address of the socket's peer; never of a header (C-04). */
  readonly address: string;
  readonly clientId: string;
  readonly clientVersion: string;
  readonly deviceName: string;
}

/** Result of creating a session; its token is returned only here. */
export interface CreatedSession {
  /** `sst_` and 43 characters of unpadded base64url. */
  readonly token: string;
  readonly session: Session;
  /** True when the user's oldest session was evicted. */
  readonly evictedOldest: boolean;
  /** Sessions of this user, the new one included. */
  readonly openSessions: number;
}

/** Bounds of the table; the specification's section 8 by default. */
export interface SessionLimits {
  readonly perUser: number;
  readonly global: number;
  readonly idleTimeoutMs: number;
  readonly lifetimeMs: number;
}

/** Dependencies of the table. */
export interface SessionTableDeps {
  readonly clock: Clock;
  readonly random: Random;
  readonly limits?: Partial<SessionLimits>;
  readonly onSecurityEvent?: SecurityEventSink;
}

const TOKEN_FORM = /^sst_[A-Za-z0-9_-]{43}$/;
const TOKEN_BYTES = 32;
const ID_BYTES = 8;

/** A session inside the table. Only the hash of its token is here (spec 2.3). */
interface Entry extends Session {
  lastUsedWallMs: number;
  readonly tokenHash: string;
  /** The address as the socket wrote it, so that the usual request compares one string. */
  readonly rawAddress: string;
  readonly createdAtMs: number;
  lastUsedMs: number;
  isOpen: boolean;
  readonly atEnd: Set<() => void>;
  mismatchReportedAtMs: number | undefined;
  mismatchesUnreported: number;
}

/** All sessions of one FileServer (spec 2.3, 3.4, 5.3; decisions D17, D23, T21, T22). */
export class SessionTable {
  readonly #clock: Clock;
  readonly #ageClock: AgeClock;
  readonly #random: Random;
  readonly #limits: SessionLimits;
  readonly #onSecurityEvent: SecurityEventSink | undefined;
  readonly #byHash = new Map<string, Entry>();
  /** Sessions of each user, oldest first. */
  readonly #byUser = new Map<string, Entry[]>();
  readonly #ids = new Set<string>();
  readonly #tombstones = new LRUCache<string, EndReason>(atMost(SESSION_TOMBSTONES));
  readonly #lockedOut = new LRUCache<string, VerifiedIdentity>(atMost(SESSION_TOMBSTONES));
  /** Users who have used a session since takeUsed: at most those in the subject registry. */
  readonly #used = new Set<string>();
  readonly #lastActive = new LRUCache<string, number>(atMost(LAST_ACTIVE_USERS_KEPT));

  constructor(deps: SessionTableDeps) {
    this.#clock = deps.clock;
    this.#ageClock = new AgeClock(deps.clock);
    this.#random = deps.random;
    this.#onSecurityEvent = deps.onSecurityEvent;
    this.#limits = {
      perUser: SESSIONS_PER_USER,
      global: SESSIONS_GLOBAL,
      idleTimeoutMs: SESSION_IDLE_TIMEOUT_MS,
      lifetimeMs: SESSION_LIFETIME_MS,
      ...deps.limits,
    };
  }

  /** The bounds in force. */
  get limits(): SessionLimits {
    return this.#limits;
  }

  /** Sessions in the table, expired ones that wait for the sweep included. */
  get openCount(): number {
    return this.#byHash.size;
  }

  /**
   * Opens a session bound to the address. A user's sixth session ends the oldest (spec 3.4). When expired
   * sessions leave no room, throws SESSION_TABLE_FULL; it never ends another user's session (decision D17).
   */
  create(identity: VerifiedIdentity, facts: SessionFacts): CreatedSession {
    const nowMs = this.#ageClock.nowMs();
    const { username } = identity;
    for (const entry of this.#byUser.get(username) ?? []) this.#endIfOver(entry, nowMs);
    const own = this.#byUser.get(username)?.length ?? 0;
    const evicts = own >= this.#limits.perUser;
    const openAfterwards = (): number => this.#byHash.size + (evicts ? 0 : 1);
    if (openAfterwards() > this.#limits.global) this.sweep();
    if (openAfterwards() > this.#limits.global) {
      throw new GroveError(
        "SESSION_TABLE_FULL",
        "this node holds as many sessions as it can; try again later",
        { metadata: { limit: String(this.#limits.global) } },
      );
    }
    const oldest = evicts ? this.#byUser.get(username)?.[0] : undefined;
    if (oldest !== undefined) this.#remove(oldest, "SESSION_EVICTED");

    const token = `sst_${this.#random.bytes(TOKEN_BYTES).toString("base64url")}`;
    const entry = this.#newEntry(identity, facts, token, nowMs);
    this.#byHash.set(entry.tokenHash, entry);
    this.#ids.add(entry.id);
    this.#use(entry, nowMs);
    const sessions = [...(this.#byUser.get(username) ?? []), entry];
    this.#byUser.set(username, sessions);
    return {
      token,
      session: entry,
      evictedOldest: oldest !== undefined,
      openSessions: sessions.length,
    };
  }

  /**
   * Returns the session of a token and counts that as use, at each call and each chunk of an upload. Throws SESSION_MISSING, SESSION_UNKNOWN,
   * SESSION_IDLE, SESSION_EXPIRED, SESSION_EVICTED, or IP_MISMATCH, which keeps the session (spec 3.4, 5.3).
   */
  check(token: string | undefined, address: string): Session {
    if (token === undefined || token === "") {
      throw new GroveError("SESSION_MISSING", "no session token; sign in first");
    }
    if (!TOKEN_FORM.test(token)) throw unknownSession();
    const tokenHash = hashOf(token);
    const entry = this.#byHash.get(tokenHash);
    if (entry === undefined) throw this.#refusalFor(tokenHash);
    const nowMs = this.#ageClock.nowMs();
    if (this.#endIfOver(entry, nowMs)) throw this.#refusalFor(tokenHash);
    if (address !== entry.rawAddress && normalizeAddress(address) !== entry.address) {
      this.#reportMismatch(entry, normalizeAddress(address), nowMs);
      throw new GroveError(
        "IP_MISMATCH",
        "the session belongs to another address; sign in again from this one",
        { metadata: { seen_address: normalizeAddress(address) } },
      );
    }
    this.#use(entry, nowMs);
    return entry;
  }

  /** True while the session is live; a stream checks it at every chunk and stops when it is not. */
  isLive(session: Session): boolean {
    const entry = asEntry(session);
    return entry.isOpen && !this.#endIfOver(entry, this.#ageClock.nowMs());
  }

  /** Calls back once when a live session ends; the callback must not throw. Returns the cancellation. */
  whenEnded(session: Session, callback: () => void): () => void {
    const { atEnd } = asEntry(session);
    // A function of its own, so that each is cancelled separately.
    const own = (): void => callback();
    atEnd.add(own);
    return () => void atEnd.delete(own);
  }

  /** Ends one session; its token is unknown from now on. An expired one keeps that reason. */
  end(session: Session): void {
    const entry = asEntry(session);
    if (entry.isOpen && !this.#endIfOver(entry, this.#ageClock.nowMs())) this.#remove(entry, undefined);
  }

  /** Ends all sessions of a user; returns the number of live ones. */
  endAll(username: string): number {
    const nowMs = this.#ageClock.nowMs();
    let ended = 0;
    for (const entry of this.#byUser.get(username) ?? []) {
      if (this.#endIfOver(entry, nowMs)) continue;
      this.#remove(entry, undefined);
      ended++;
    }
    return ended;
  }

  /** Ends all sessions of locked users, also during calls, with USER_DISABLED; returns how many. */
  endLockedOut(isLockedOut: (identity: VerifiedIdentity) => boolean): number {
    const nowMs = this.#ageClock.nowMs();
    let ended = 0;
    for (const entry of this.#byHash.values()) {
      if (!isLockedOut(entry.identity) || this.#endIfOver(entry, nowMs)) continue;
      this.#lockedOut.set(entry.tokenHash, entry.identity);
      this.#remove(entry, undefined);
      ended++;
    }
    return ended;
  }

  /** Forgets that sessions ended by a lock which holds no more: their tokens are unknown, so clients sign in again. */
  forgetLocks(isLockedOut: (identity: VerifiedIdentity) => boolean): void {
    for (const [tokenHash, identity] of this.#lockedOut)
      if (!isLockedOut(identity)) this.#lockedOut.delete(tokenHash);
  }

  /** The user's live sessions, oldest first. */
  list(username: string): Session[] {
    const nowMs = this.#ageClock.nowMs();
    return (this.#byUser.get(username) ?? []).filter(
      (entry) => overReason(entry, nowMs, this.#limits) === undefined,
    );
  }

  /** Removes expired sessions; returns their number (spec 3.4: every 60 s). */
  sweep(): number {
    const nowMs = this.#ageClock.nowMs();
    let removed = 0;
    for (const entry of this.#byHash.values()) {
      if (this.#endIfOver(entry, nowMs)) removed++;
    }
    return removed;
  }

  /** Users with a live session that was used in the last windowMs (decision D12). */
  activeUsers(windowMs: number): Set<string> {
    const nowMs = this.#ageClock.nowMs();
    const active = new Set<string>();
    for (const [username, entries] of this.#byUser) {
      for (const entry of entries) {
        if (nowMs - entry.lastUsedMs > windowMs || overReason(entry, nowMs, this.#limits) !== undefined)
          continue;
        active.add(username);
        break;
      }
    }
    return active;
  }

  /** The users who have used a session since the last call. */
  takeUsed(): ReadonlySet<string> {
    const users = new Set(this.#used);
    this.#used.clear();
    return users;
  }

  /** Wall time of the user's last use of any session since this process started; undefined for none. */
  lastActiveMs(username: string): number | undefined {
    let latest = this.#lastActive.get(username);
    for (const entry of this.#byUser.get(username) ?? []) {
      if (latest === undefined || entry.lastUsedWallMs > latest) latest = entry.lastUsedWallMs;
    }
    return latest;
  }

  #newEntry(identity: VerifiedIdentity, facts: SessionFacts, token: string, nowMs: number): Entry {
    const wallMs = this.#clock.wallMs();
    let id = this.#random.bytes(ID_BYTES).toString("hex");
    while (this.#ids.has(id)) id = this.#random.bytes(ID_BYTES).toString("hex");
    return {
      id,
      identity,
      address: normalizeAddress(facts.address),
      clientId: facts.clientId.slice(0, CLIENT_LABEL_MAX_LENGTH),
      clientVersion: facts.clientVersion.slice(0, CLIENT_LABEL_MAX_LENGTH),
      deviceName: facts.deviceName.slice(0, CLIENT_LABEL_MAX_LENGTH),
      createdAtWallMs: wallMs,
      lastUsedWallMs: wallMs,
      expiresAtWallMs: wallMs + this.#limits.lifetimeMs,
      tokenHash: hashOf(token),
      rawAddress: facts.address,
      createdAtMs: nowMs,
      lastUsedMs: nowMs,
      isOpen: true,
      atEnd: new Set(),
      mismatchReportedAtMs: undefined,
      mismatchesUnreported: 0,
    };
  }

  #use(entry: Entry, nowMs: number): void {
    entry.lastUsedMs = nowMs;
    entry.lastUsedWallMs = this.#clock.wallMs();
    this.#used.add(entry.identity.username);
  }

  #endIfOver(entry: Entry, nowMs: number): boolean {
    const reason = overReason(entry, nowMs, this.#limits);
    if (reason !== undefined) this.#remove(entry, reason);
    return reason !== undefined;
  }

  #remove(entry: Entry, reason: EndReason | undefined): void {
    entry.isOpen = false;
    this.#byHash.delete(entry.tokenHash);
    this.#ids.delete(entry.id);
    const { username } = entry.identity;
    // A new list each time: callers may be iterating over the old one.
    const left = (this.#byUser.get(username) ?? []).filter((other) => other !== entry);
    if (left.length === 0) this.#byUser.delete(username);
    else this.#byUser.set(username, left);
    this.#lastActive.set(username, Math.max(entry.lastUsedWallMs, this.#lastActive.get(username) ?? 0));
    if (reason !== undefined) this.#tombstones.set(entry.tokenHash, reason);
    for (const callback of entry.atEnd) callback();
  }

  #refusalFor(tokenHash: string): GroveError {
    const reason = this.#lockedOut.has(tokenHash) ? "USER_DISABLED" : this.#tombstones.get(tokenHash);
    if (reason === undefined) return unknownSession();
    return endedBy(reason, this.#limits);
  }

  /** At most one event per session in ten minutes, with the number of attempts (decision T22, C-03). */
  #reportMismatch(entry: Entry, ipSeen: string, nowMs: number): void {
    entry.mismatchesUnreported++;
    const lastMs = entry.mismatchReportedAtMs;
    if (lastMs !== undefined && nowMs - lastMs < IP_MISMATCH_EVENT_INTERVAL_MS) return;
    const count = entry.mismatchesUnreported;
    entry.mismatchReportedAtMs = nowMs;
    entry.mismatchesUnreported = 0;
    this.#onSecurityEvent?.({
      type: "ip_mismatch",
      username: entry.identity.username,
      ipBound: entry.address,
      ipSeen,
      count,
    });
  }
}

/** The limit that was reached first decides the reason. */
function overReason(entry: Entry, nowMs: number, limits: SessionLimits): EndReason | undefined {
  const idleEndMs = entry.lastUsedMs + limits.idleTimeoutMs;
  const lifeEndMs = entry.createdAtMs + limits.lifetimeMs;
  if (nowMs < idleEndMs && nowMs < lifeEndMs) return undefined;
  return lifeEndMs <= idleEndMs ? "SESSION_EXPIRED" : "SESSION_IDLE";
}

/** Every session was made by the table; callers see part of its fields. */
function asEntry(session: Session): Entry {
  return session as Entry;
}

function unknownSession(): GroveError {
  return new GroveError("SESSION_UNKNOWN", "this node does not know the session; sign in again");
}

/** Lookup by hash: no comparison of secrets that could end early (C-12). */
function hashOf(token: string): string {
  return hash("sha256", token, "base64url");
}
