// SetUserState and ListUserStates: a decision about a user ends sessions, streams and uploads on this node.

import type { AuditActName, AuditSink } from "#base/audit-act.ts";
import type { Clock } from "#base/clock.ts";
import { GroveError } from "#base/errors.ts";
import { USER_STATES_PER_MESSAGE } from "#base/limits.ts";
import { errorText, type Logger } from "#base/log.ts";
import { canonicalUsername } from "#base/names.ts";
import { NOT_ADMIN_TEXT } from "#base/refusal-texts.ts";
import { entryOf, firstOfMessage, type UserState } from "#base/user-state.ts";
import type { VerifiedIdentity } from "#base/verified-identity.ts";
import type { AllSessions } from "#fileserver/doors/all-sessions.ts";
import type { KnownGroups } from "#security/identity/known-groups.ts";
import type { UserStateStore } from "#security/identity/user-state-store.ts";
import { memberTest } from "#security/policy/group.ts";
import type {
  ListUserStatesRequest,
  ListUserStatesResponse,
  SetUserStateRequest,
  SetUserStateResponse,
} from "#wire/proto/gen/grove/v1/file_server_pb.ts";
import { requestedUserState, userStateMessage } from "#wire/proto/user-state-message.ts";
import { auditHandOvers } from "./hand-over-audit.ts";
import type { AdminCredential, QuotaOperations } from "./quota-operations.ts";
import type { ResumableOperations } from "./resumable-operations.ts";

/** Dependencies of the operations. */
export interface UserDeps {
  readonly userStates: UserStateStore;
  readonly sessions: Pick<AllSessions, "endAll" | "endLockedOut" | "forgetLocks" | "list">;
  readonly resumable: Pick<ResumableOperations, "dropAllOf">;
  readonly adminOf: QuotaOperations["adminOf"];
  readonly groups: Pick<KnownGroups, "roleOf">;
  /** The person behind an address, where this node knows one (D21). */
  readonly personOf: (username: string) => { readonly issuer: string; readonly subject: string } | undefined;
  /** Called after a decision made here, so that the cluster learns of it at once. */
  readonly onDecided?: (() => void) | undefined;
  readonly clock: Pick<Clock, "wallMs">;
  readonly audit: AuditSink;
  readonly log: Logger;
}

/** The node's decisions, and the way to take in others. */
export interface KnownUserStates {
  readonly digest: string;
  list(): readonly UserState[];
  /** Resolves when they hold here. */
  learn(states: readonly UserState[]): Promise<void>;
}

type Plain<T> = Omit<T, "$typeName" | "$unknown">;

/** What a decision has ended on this node. */
interface Ended {
  readonly sessions: number;
  readonly uploads: Promise<number>;
  /** True when the user's older ID tokens open no session any more. */
  readonly endsTokens: boolean;
  readonly before: UserState | undefined;
}

const NOT_ADMIN = "permission denied: only cluster administrators can do that";

/** The operations on users' states. */
export class UserOperations {
  readonly #deps: UserDeps;
  readonly #ended = new Map<string, Ended>();

  constructor(deps: UserDeps) {
    this.#deps = deps;
    deps.userStates.onNews((news, before) => {
      for (const state of news) this.#enforce(state, before.get(state.username));
    });
  }

  /**
   * Makes a decision about a user and answers when it holds here and is on stable storage. Throws NOT_ADMIN,
   * BAD_ARGUMENT, STORAGE_FAILED, and why a presented session is invalid. After STORAGE_FAILED a lock holds
   * until the next start.
   */
  async setState(
    request: Pick<SetUserStateRequest, "state">,
    credential: AdminCredential,
  ): Promise<Plain<SetUserStateResponse>> {
    const { userStates, groups, clock, audit, log, personOf } = this.#deps;
    const by = await this.#requireRight(credential);
    const requested = requestedUserState({
      message: request.state,
      setBy: by,
      nowMs: clock.wallMs(),
      known: (username) => userStates.states.find(username),
      isMember: memberTest(groups),
    });
    const { username } = requested;
    if (requested.disabled && username === by) {
      throw new GroveError(
        "BAD_ARGUMENT",
        "nobody locks themselves out; another administrator or the password can",
      );
    }
    // Only who is locked out is meant as a person too.
    const person = requested.subject === "" && requested.disabled ? personOf(username) : undefined;
    const news = await userStates.merge([
      person === undefined ? requested : { ...requested, issuer: person.issuer, subject: person.subject },
    ]);
    const state = userStates.states.find(username) ?? requested;
    const ended = this.#ended.get(username);
    this.#ended.delete(username);
    const uploadsDropped = (await ended?.uploads) ?? 0;
    const sessionsEnded = ended?.sessions ?? 0;
    if (news.length > 0) {
      const { reason, version } = state;
      const facts = { reason, version, sessions_ended: sessionsEnded, uploads_dropped: uploadsDropped };
      const detail = { ...facts, closes_shares: state.closesShares, address: credential.peer.address };
      if (entryOf(state) !== entryOf(ended?.before)) {
        audit({ act: actOf(state, ended), actor: by, subject: username, detail });
      }
      this.#auditHandOvers(state, ended, by);
      log.info("user_state_set", { user: username, by, disabled: state.disabled, ...facts });
      this.#deps.onDecided?.();
    }
    return {
      state: userStateMessage(state),
      applied: state.version === requested.version,
      sessionsEnded,
      uploadsDropped,
    };
  }

  /** One page of the decisions about users. Throws NOT_ADMIN, BAD_ARGUMENT. */
  async listStates(
    request: Pick<ListUserStatesRequest, "after" | "username">,
    credential: AdminCredential,
  ): Promise<Plain<ListUserStatesResponse>> {
    await this.#requireRight(credential);
    const { userStates, sessions } = this.#deps;
    if (request.username !== "") {
      const username = canonicalUsername(request.username);
      const state = userStates.states.find(username);
      return {
        states: state === undefined ? [] : [userStateMessage(state)],
        more: false,
        sessions: sessions.list(username).length,
      };
    }
    const page = userStates.states.page(request.after, USER_STATES_PER_MESSAGE + 1);
    const states = firstOfMessage(page).map(userStateMessage);
    return { states, more: page.length > states.length, sessions: 0 };
  }

  /** Takes in and enforces decisions made elsewhere. Throws what the store throws. */
  async learn(states: readonly UserState[]): Promise<void> {
    const { userStates, audit, log } = this.#deps;
    for (const state of await userStates.merge(states)) {
      const ended = this.#ended.get(state.username);
      this.#ended.delete(state.username);
      const facts = { version: state.version, sessions_ended: ended?.sessions ?? 0, via: "metaserver" };
      if (entryOf(state) !== entryOf(ended?.before)) {
        audit({
          act: actOf(state, ended),
          actor: state.setBy,
          subject: state.username,
          detail: { reason: state.reason, ...facts },
        });
      }
      this.#auditHandOvers(state, ended);
      log.info("user_state_learned", { user: state.username, disabled: state.disabled, ...facts });
    }
  }

  /** A decision from elsewhere does not name the actor who ended a hand-over. */
  #auditHandOvers(state: UserState, ended: Ended | undefined, by?: string): void {
    auditHandOvers(this.#deps.audit, {
      state,
      before: ended?.before,
      endedBy: by ?? "administrator",
      nowMs: this.#deps.clock.wallMs(),
      detail: by === undefined ? { via: "metaserver" } : {},
    });
  }

  async #requireRight(credential: AdminCredential): Promise<string> {
    const right = await this.#deps.adminOf(credential);
    if (!right.success) {
      if (credential.passwordHash === undefined && credential.session() === undefined)
        throw new GroveError("SESSION_MISSING", "no session token; sign in first");
      throw new GroveError("NOT_ADMIN", right.error.replace(NOT_ADMIN_TEXT, NOT_ADMIN));
    }
    return right.by === "password" ? "administrator" : right.by;
  }

  /** Runs in the turn in which the decision begins to count, so that no session acts in between. */
  #enforce(state: UserState, before: UserState | undefined): void {
    const { userStates, sessions, resumable, log } = this.#deps;
    const { username } = state;
    let ended = 0;
    const isLockedOut = (identity: VerifiedIdentity): boolean =>
      userStates.states.lockOf(identity) !== undefined;
    if (state.disabled) ended += sessions.endLockedOut(isLockedOut);
    else sessions.forgetLocks(isLockedOut);
    const endsTokens = state.tokensFromMs > (before?.tokensFromMs ?? 0);
    if (endsTokens) ended += sessions.endAll(username);
    const uploads = state.disabled ? resumable.dropAllOf(username) : Promise.resolve(0);
    const told = uploads.catch((error: unknown) => {
      // They expire after a day, and no session can continue them.
      log.warn("uploads_not_dropped", { user: username, error: errorText(error) });
      return 0;
    });
    this.#ended.set(username, { sessions: ended, uploads: told, endsTokens, before });
  }
}

function actOf({ disabled, removal }: UserState, ended: Ended | undefined): AuditActName {
  const before = ended?.before?.removal;
  if (removal?.isReleased === true && before?.isReleased !== true)
    return removal.dueAtMs === before?.earlierDueAtMs ? "user.restore" : "user.release";
  if (removal !== undefined && removal.dueAtMs !== before?.dueAtMs) return "user.remove";
  if (removal === undefined && before !== undefined) return "user.restore";
  if (disabled) return "user.disable";
  return ended?.endsTokens === true ? "user.end_sessions" : "user.enable";
}

/** The node's side of the exchange of decisions with the metadata store. */
export function knownUserStates({ states }: UserStateStore, users: UserOperations): KnownUserStates {
  return {
    get digest() {
      return states.digest;
    },
    list: () => states.list(),
    learn: (learnt) => users.learn(learnt),
  };
}
