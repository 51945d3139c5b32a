// The caller of a call: the session behind its token, kept for as long as the call runs (spec 5.3).
import { GroveError } from "#base/errors.ts";
import type { VerifiedIdentity } from "#base/verified-identity.ts";
import type { Session, SessionTable } from "#security/sessions/session-table.ts";
import type { CallHead } from "#wire/grpc/call-gate.ts";
import type { CallContext } from "#wire/grpc/handler.ts";
import type { ServingState } from "./serving-state.ts";

/** The caller of one call. */
export interface Caller {
  readonly identity: VerifiedIdentity;
  readonly session: Session;
  /** True while session and node go on; does not count as use. */
  isLive(): boolean;
  /** Calls back when the session ends; must not throw. Returns the function that unregisters. */
  whenEnded(callback: () => void): () => void;
  /** Counts as use of the session, at each chunk of a stream (spec 3.4). Throws why it or the node ended. */
  renew(): void;
}

class SessionCaller implements Caller {
  readonly session: Session;
  readonly #sessions: SessionTable;
  readonly #state: ServingState;
  readonly #token: string;
  readonly #address: string;

  constructor(sessions: SessionTable, state: ServingState, token: string, address: string) {
    this.session = sessions.check(token, address);
    this.#sessions = sessions;
    this.#state = state;
    this.#token = token;
    this.#address = address;
  }

  get identity(): VerifiedIdentity {
    return this.session.identity;
  }

  isLive(): boolean {
    return !this.#state.isFenced && this.#sessions.isLive(this.session);
  }

  whenEnded(callback: () => void): () => void {
    return this.#sessions.whenEnded(this.session, callback);
  }

  renew(): void {
    this.#state.requireHeld();
    this.#sessions.check(this.#token, this.#address);
  }
}

/** The token of "authorization: Bearer …"; undefined when there is none or it is of another scheme. */
export function bearerToken(context: Pick<CallContext, "metadata">): string | undefined {
  const value = context.metadata.get("authorization");
  if (value === undefined || value.slice(0, 7).toLowerCase() !== "bearer ") return undefined;
  return value.slice(7).trim() || undefined;
}

/** The caller by its token and address, never by the request (spec 5.4). Throws SESSION_…, IP_MISMATCH. */
export function callerOf(context: CallHead, sessions: SessionTable, state: ServingState): Caller {
  const token = bearerToken(context);
  if (token === undefined) throw new GroveError("SESSION_MISSING", "no session token; sign in first");
  return new SessionCaller(sessions, state, token, context.peer.address);
}

/** The caller that the gate has found (`call-gate.ts`). */
export function currentCaller(context: CallContext): Caller {
  const { proof } = context.standing;
  if (!(proof instanceof SessionCaller))
    throw new GroveError("INTERNAL", "a call passed without its session check");
  return proof;
}
