// The caller of a call: the session behind its token, kept for as long as the call runs (spec 5.3).
import { LINK_VISIT_HEADER } from "#base/door-call.ts";
import { GroveError } from "#base/errors.ts";
import { LOCK_TOKENS_HEADER, LOCK_TOKENS_MAX } from "#base/lock-tokens.ts";
import type { VerifiedIdentity } from "#base/verified-identity.ts";
import type { CallingDoor, DoorPeers } from "#fileserver/doors/door-peer.ts";
import type { DoorSessions } from "#fileserver/doors/door-sessions.ts";
import type { LinkSessions } from "#fileserver/doors/link-sessions.ts";
import type { Session, SessionTable } from "#security/sessions/session-table.ts";
import type { CallHead } from "#wire/grpc/call-gate.ts";
import type { CallContext } from "#wire/grpc/handler.ts";
import type { ServingState } from "./serving-state.ts";

/** Where sessions are: those of sign-ins, and apart from them those of doors, which doors alone can use. */
export interface CallerTables {
  readonly sessions: SessionTable;
  readonly doors: DoorSessions;
  /** Those of visitors by links, apart from people's. */
  readonly visits: LinkSessions;
  readonly peers: DoorPeers;
}

/** The caller of one call. */
export interface Caller {
  readonly identity: VerifiedIdentity;
  readonly session: Session;
  /** The credential behind a door's session, such as "app:…"; empty for a sign-in, and for a link's visitor. */
  readonly credential: string;
  /** The id of the door that the call comes through; empty for none. */
  readonly doorId: string;
  /** Tokens of locks that the call shows. */
  readonly lockTokens: readonly string[];
  /** True while session and node go on; does not count as use. */
  isLive(): boolean;
  /** Calls back when the session ends; must not throw. Returns the function that unregisters. */
  whenEnded(callback: () => void): () => void;
  /** Counts as use of the session, at each chunk of a stream (spec 3.4). Throws why it or the node ended. */
  renew(): void;
}

class SessionCaller implements Caller {
  readonly session: Session;
  readonly credential: string;
  readonly #tables: CallerTables;
  readonly #door: CallingDoor | undefined;
  readonly #isVisit: boolean;
  readonly #state: ServingState;
  readonly #token: string;
  readonly #address: string;
  readonly #lockTokens: string | undefined;

  constructor(tables: CallerTables, state: ServingState, token: string, head: CallHead) {
    this.#tables = tables;
    this.#door = tables.peers.of(head);
    this.#isVisit = head.metadata.get(LINK_VISIT_HEADER) !== undefined;
    this.#state = state;
    this.#token = token;
    this.#address = head.peer.address;
    this.#lockTokens = head.metadata.get(LOCK_TOKENS_HEADER);
    this.session = this.#check();
    const isPerson = this.#door !== undefined && !this.#isVisit;
    this.credential = isPerson ? tables.doors.credentialOf(this.session) : "";
  }

  get identity(): VerifiedIdentity {
    return this.session.identity;
  }

  get doorId(): string {
    return this.#door?.id ?? "";
  }

  get lockTokens(): readonly string[] {
    return this.#lockTokens?.split(",", LOCK_TOKENS_MAX).map((token) => token.trim()) ?? [];
  }

  isLive(): boolean {
    return !this.#state.isFenced && this.#table.isLive(this.session);
  }

  whenEnded(callback: () => void): () => void {
    return this.#table.whenEnded(this.session, callback);
  }

  renew(): void {
    this.#state.requireHeld();
    this.#check();
  }

  get #table(): SessionTable {
    const { sessions, doors, visits } = this.#tables;
    if (this.#door === undefined) return sessions;
    return this.#isVisit ? visits.table : doors.table;
  }

  #check(): Session {
    const { sessions, doors, visits } = this.#tables;
    if (this.#door === undefined) return sessions.check(this.#token, this.#address);
    return (this.#isVisit ? visits : doors).check(this.#token, this.#door);
  }
}

/** The token of "authorization: Bearer …"; undefined when there is none or it is of another scheme. */
export function bearerToken(context: Pick<CallContext, "metadata">): string | undefined {
  const value = context.metadata.get("authorization");
  if (value === undefined || value.slice(0, 7).toLowerCase() !== "bearer ") return undefined;
  return value.slice(7).trim() || undefined;
}

/** The caller by its token and address, never by the request (spec 5.4). Throws SESSION_…, IP_MISMATCH. */
export function callerOf(context: CallHead, tables: CallerTables, state: ServingState): Caller {
  const token = bearerToken(context);
  if (token === undefined) throw new GroveError("SESSION_MISSING", "no session token; sign in first");
  return new SessionCaller(tables, state, token, context);
}

/** The caller that the gate has found (`call-gate.ts`). */
export function currentCaller(context: CallContext): Caller {
  const { proof } = context.standing;
  if (!(proof instanceof SessionCaller))
    throw new GroveError("INTERNAL", "a call passed without its session check");
  return proof;
}
