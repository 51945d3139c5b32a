// RegisterClient, EndSession, ListSessions: ID tokens open sessions; users list and end them (spec 5.3, D23).

import type { AuditSink } from "#base/audit-act.ts";
import { waiting } from "#base/call-waits.ts";
import { GroveError, isGroveError } from "#base/errors.ts";
import { UPLOAD_MESSAGE_MAX_BYTES } from "#base/limits.ts";
import type { Logger } from "#base/log.ts";
import type { SlidingWindow } from "#base/sliding-window.ts";
import type { VerifiedIdentity } from "#base/verified-identity.ts";
import { requireNeighbour, VERSION } from "#base/version.ts";
import type { TokenVerifier, VerifiedToken } from "#security/identity/token-verifier.ts";
import type { UserStates } from "#security/identity/user-states.ts";
import type { RefusedSignIns } from "#security/sessions/refused-sign-ins.ts";
import type { SessionTable } from "#security/sessions/session-table.ts";
import type {
  EndSessionRequest,
  ListSessionsResponse,
  RegisterClientRequest,
  RegisterClientResponse,
} from "#wire/proto/gen/grove/v1/file_server_pb.ts";
import type { Caller } from "./caller.ts";
import type { RootProvisioner } from "./root-provisioner.ts";

/** Dependencies of the operations. */
export interface SessionDeps {
  readonly sessions: SessionTable;
  /** Sessions of doors. */
  readonly doorTable: Pick<SessionTable, "end">;
  readonly verifier: TokenVerifier;
  /** Admits an identity, or refuses an e-mail address that comes with another subject (D21). */
  readonly admit: (identity: VerifiedIdentity) => Promise<void>;
  /** Locks of users. */
  readonly users: Pick<UserStates, "requireEntry">;
  readonly roots: RootProvisioner;
  /** Rate of sign-ins per user. */
  readonly signIns: SlidingWindow;
  /** Rate of refused sign-ins per address. */
  readonly refusedSignIns: SlidingWindow;
  readonly refusals: Pick<RefusedSignIns, "tell">;
  readonly audit: AuditSink;
  readonly log: Logger;
}

type Plain<T> = Omit<T, "$typeName" | "$unknown">;

/** The operations on sessions. */
export class SessionOperations {
  readonly #deps: SessionDeps;

  constructor(deps: SessionDeps) {
    this.#deps = deps;
  }

  /**
   * Verifies the ID token, ensures the root and opens a session bound to the address (spec 5.3). Throws
   * RATE_LIMITED, TOKEN_REJECTED, MOCK_TOKEN, USER_DISABLED, CLIENT_ID_UNSET, IDP_UNAVAILABLE, OVERLOADED,
   * SESSION_TABLE_FULL, VERSION_MISMATCH, and for a new user the errors of an absent MetaServer.
   */
  async registerClient(
    request: RegisterClientRequest,
    credential: { readonly idToken: string | undefined; readonly address: string },
  ): Promise<Plain<RegisterClientResponse>> {
    const { refusedSignIns, signIns, roots, sessions, log } = this.#deps;
    const { address } = credential;
    // A token that was verified before works beside the guesses of others at its address.
    if (this.#deps.verifier.known(credential.idToken ?? "") === undefined)
      requireRest(refusedSignIns.waitMs(address), "too many refused sign-ins from this address");
    const { identity, issuedAtWallMs } = await this.#identityOf(credential);
    requireNeighbour({ name: "the client", version: request.clientVersion }, "this FileServer");
    requireRest(signIns.take(identity.username), "too many sign-ins of this user");
    const rootId = await roots.ensure(identity);
    // Checked in the turn that makes the session: a lock would not end one made later.
    this.#deps.users.requireEntry(identity, issuedAtWallMs);
    this.#giveWay(request.replacedSessionToken, identity.username, address);
    const created = sessions.create(identity, {
      address,
      clientId: request.clientId,
      clientVersion: request.clientVersion,
      deviceName: request.deviceName,
    });
    const { session } = created;
    this.#deps.audit({
      act: "session.open",
      actor: identity.username,
      subject: identity.username,
      detail: { session: session.id, address: session.address, device: request.deviceName },
    });
    log.info("session_opened", { user: identity.username, session: session.id, address: session.address });
    return {
      sessionToken: created.token,
      expiresAt: seconds(session.expiresAtWallMs),
      username: identity.username,
      rootId,
      idleTimeoutSeconds: Math.floor(sessions.limits.idleTimeoutMs / 1_000),
      sessionsOpen: created.openSessions,
      evictedOldest: created.evictedOldest,
      serverVersion: VERSION,
      maxChunkBytes: UPLOAD_MESSAGE_MAX_BYTES,
      folderPath: "",
    };
  }

  /** When one of the user's sessions must go, it is the one the caller gives up, not another device's. */
  #giveWay(token: string, username: string, address: string): void {
    const { sessions } = this.#deps;
    if (token === "" || sessions.list(username).length < sessions.limits.perUser) return;
    try {
      const session = sessions.check(token, address);
      if (session.identity.username === username) sessions.end(session);
    } catch (error) {
      // An ended session has no place to give up.
      if (!isGroveError(error)) throw error;
    }
  }

  /** The identity that signs in. A refusal counts against the address; a node's or provider's failure not. */
  async #identityOf(credential: {
    readonly idToken: string | undefined;
    readonly address: string;
  }): Promise<VerifiedToken> {
    const { idToken, address } = credential;
    let username: string | undefined;
    try {
      if (idToken === undefined) {
        throw new GroveError("TOKEN_REJECTED", 'no ID token; send it as metadata "authorization: Bearer …"');
      }
      const token = await waiting("provider", this.#deps.verifier.verify(idToken, address));
      ({ username } = token.identity);
      this.#deps.users.requireEntry(token.identity, token.issuedAtWallMs);
      await this.#deps.admit(token.identity);
      return token;
    } catch (error) {
      if (isGroveError(error, "TOKEN_REJECTED", "MOCK_TOKEN", "USER_DISABLED"))
        this.#deps.refusedSignIns.take(address);
      this.#deps.refusals.tell(error, { address, username });
      throw error;
    }
  }

  /** Ends the calling session, another one of the caller's, or all of them; returns how many. */
  endSession(
    caller: Caller,
    request: Pick<EndSessionRequest, "sessionId" | "everywhere">,
  ): { ended: number } {
    const { sessions, log } = this.#deps;
    const { username, limit } = caller.identity;
    if (limit !== undefined) return this.#endOwn(caller, request);
    let ended: number;
    if (request.everywhere) ended = sessions.endAll(username);
    else {
      const wanted = request.sessionId === "" ? caller.session.id : request.sessionId;
      const found = sessions.list(username).filter((session) => session.id === wanted);
      for (const session of found) sessions.end(session);
      ended = found.length;
    }
    log.info("session_ended", { user: username, ended, everywhere: request.everywhere });
    return { ended };
  }

  /** An app password ends its own session and no other. */
  #endOwn(
    { session, identity }: Caller,
    { sessionId, everywhere }: Pick<EndSessionRequest, "sessionId" | "everywhere">,
  ): { ended: number } {
    if (everywhere || (sessionId !== "" && sessionId !== session.id)) throw needsSignIn();
    this.#deps.doorTable.end(session);
    this.#deps.log.info("session_ended", { user: identity.username, ended: 1 });
    return { ended: 1 };
  }

  /** The caller's own sessions on this node. */
  listSessions(caller: Caller): Plain<ListSessionsResponse> {
    if (caller.identity.limit !== undefined) throw needsSignIn();
    const sessions = this.#deps.sessions.list(caller.identity.username);
    return {
      sessions: sessions.map((session) => ({
        $typeName: "grove.v1.Session",
        sessionId: session.id,
        clientId: session.clientId,
        clientVersion: session.clientVersion,
        deviceName: session.deviceName,
        address: session.address,
        createdAt: seconds(session.createdAtWallMs),
        lastUsedAt: seconds(session.lastUsedWallMs),
        expiresAt: seconds(session.expiresAtWallMs),
        current: session.id === caller.session.id,
      })),
    };
  }
}

function needsSignIn(): GroveError {
  return new GroveError("NOT_OWNER", "permission denied: an app password may not do this; sign in", {
    metadata: { scope: "left" },
  });
}

const seconds = (wallMs: number): bigint => BigInt(Math.floor(wallMs / 1_000));

function requireRest(waitMs: number, problem: string): void {
  if (waitMs === 0) return;
  throw new GroveError("RATE_LIMITED", `${problem}; try again in ${Math.ceil(waitMs / 1_000)} seconds`, {
    metadata: { retry_after_ms: String(waitMs) },
  });
}
