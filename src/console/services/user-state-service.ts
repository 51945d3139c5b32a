// Locks users out and lets them in again: sends the decision to every node and reports their answers.
import type { z } from "zod";
import type { AuditActName, AuditSink } from "#base/audit-act.ts";
import type { Clock } from "#base/clock.ts";
import { GroveError } from "#base/errors.ts";
import { type HandOver, isInForce } from "#base/hand-over.ts";
import { INHERITED_ROOTS_LISTED_MAX } from "#base/limits.ts";
import type { Logger } from "#base/log.ts";
import { checkedUserState, laterState, type UserState } from "#base/user-state.ts";
import type { ClusterState, NodeState } from "#console/cluster/cluster-state.ts";
import type { DecidedUsers } from "#console/cluster/decided-users.ts";
import { type OperatorSession, ProblemError } from "#console/http/route.ts";
import type { Directory } from "#metaserver/directory/directory.ts";
import { groupNameOf, rolesOfGroups } from "#security/policy/group.ts";
import { userStateMessage, userStateOf } from "#wire/proto/user-state-message.ts";
import type { userStateChanged, userStateKnown } from "#wire/webapi/user-state.ts";
import type { SetUserStateOnNode, UserStateOnNode } from "./node-dial.ts";
import { UserChanges } from "./user-changes.ts";

/** A node's time limit for a pushed decision; all nodes are called concurrently. */
const USER_STATE_PUSH_TIMEOUT_MS = 4_000;

type Changed = z.infer<typeof userStateChanged>;
type Known = z.infer<typeof userStateKnown>;

/** Dependencies of the service. */
export interface UserStateServiceDeps {
  readonly clock: Pick<Clock, "wallMs">;
  readonly log: Logger;
  readonly cluster: Pick<ClusterState, "nodes">;
  readonly decided: Pick<DecidedUsers, "latest" | "stored" | "own" | "decide" | "inheritedBy">;
  readonly directory: Pick<Directory, "groupBook">;
  readonly setOnNode: SetUserStateOnNode;
  /** Asked while the store is away. */
  readonly onNode: UserStateOnNode;
  readonly audit: AuditSink;
  /** Resolves when the earlier audit lines are on stable storage. */
  readonly flushAudit: () => Promise<void>;
}

/** A requested decision; undefined fields stay as they are. */
export interface UserStateRequest {
  /** In its canonical form. */
  readonly username: string;
  readonly disabled?: boolean | undefined;
  readonly closesShares?: boolean | undefined;
  /** True ends all sessions, and invalidates earlier ID tokens. */
  readonly endsSessions?: boolean | undefined;
  /** Hands the root over, replacing an earlier handing over to the same user. */
  readonly handsOver?: Pick<HandOver, "mayDelete" | "to" | "untilMs"> | undefined;
  /** The user whose handing over ends. */
  readonly endsHandOverTo?: string | undefined;
  readonly reason: string;
  readonly operator: OperatorSession;
  readonly address: string;
  readonly requestId: string;
}

interface Outcome {
  readonly node: NodeState;
  readonly sessionsEnded: number;
  readonly problem: string | null;
  /** A newer state that the node has. */
  readonly later?: UserState | undefined;
}

/** The service. Decisions about one user are sequential, so that none is made without knowing the last. */
export class UserStateService {
  readonly #deps: UserStateServiceDeps;
  readonly #changes = new UserChanges("users");

  constructor(deps: UserStateServiceDeps) {
    this.#deps = deps;
  }

  /** The known state of a user. Throws the store's error where no decision is known here either. */
  async known(username: string): Promise<Known> {
    const nowMs = this.#deps.clock.wallMs();
    const state = await this.#deps.decided.latest(username);
    const handOvers = state?.handOvers?.filter((handOver) => isInForce(handOver, nowMs)) ?? [];
    const inherits = await this.#inherits(username, nowMs);
    const roots = { hand_overs: handOvers.map(handedOver), inherits };
    if (state === undefined) return { username, state: null, ...roots };
    const { disabled, closesShares, reason, setBy, setAtMs } = state;
    const { removal } = state;
    const told = {
      disabled,
      closes_shares: closesShares,
      reason,
      set_by: setBy,
      set_at: Math.floor(setAtMs / 1_000),
      removed_until: removal === undefined || removal.isReleased ? null : Math.floor(removal.dueAtMs / 1_000),
    };
    return { username, state: told, ...roots };
  }

  async #inherits(username: string, nowMs: number): Promise<Known["inherits"]> {
    const roots = await this.#deps.decided.inheritedBy(username, nowMs);
    return roots
      .slice(0, INHERITED_ROOTS_LISTED_MAX)
      .map(({ owner, ...handOver }) => ({ root: owner, ...handedOver(handOver) }));
  }

  /**
   * Decides and sends. Throws BAD_ARGUMENT, ProblemError RATE_LIMITED, and NODE_ERROR when no node has taken
   * it.
   */
  change(requested: UserStateRequest): Promise<Changed> {
    return this.#changes.run(requested.username, () => this.#change(requested));
  }

  async #change(requested: UserStateRequest): Promise<Changed> {
    const { username } = requested;
    await this.#requireGroup(requested);
    const known = await this.#deps.decided.stored(username).catch(() => this.#knownByNodes(requested));
    let state = this.#stateOf(requested, known);
    let outcomes = await this.#push(state, requested);
    const later = outcomes.flatMap((outcome) => outcome.later ?? []);
    if (later.length > 0) {
      state = this.#stateOf(requested, later.reduce(laterState));
      outcomes = await this.#push(state, requested);
    }
    const holding = outcomes.filter(({ problem }) => problem === null);
    if (holding.length > 0) this.#deps.decided.decide(state);
    await this.#record(requested, state, { holding: holding.length, nodes: outcomes.length });
    if (holding.length === 0) {
      const why = outcomes[0]?.problem ?? "no node is known";
      throw new ProblemError("NODE_ERROR", `no node has taken it: ${why}`, { reason: why });
    }
    return {
      username,
      disabled: state.disabled,
      holds_everywhere: holding.length === outcomes.length,
      nodes: outcomes.map(({ node, sessionsEnded, problem }) => ({
        id: node.id,
        name: node.name,
        holds: problem === null,
        sessions_ended: sessionsEnded,
        problem,
      })),
    };
  }

  /** A group that exists, and by the nodes' rule none of the operator's own: nodes know them by the password alone. */
  async #requireGroup({ handsOver, operator }: UserStateRequest): Promise<void> {
    const group = handsOver === undefined ? undefined : groupNameOf(handsOver.to);
    if (group === undefined) return;
    const isNamed = operator.id.includes("/");
    const book = await this.#deps.directory.groupBook().catch((error: unknown) => {
      if (isNamed) throw error;
      return undefined;
    });
    if (book === undefined) return;
    const of = rolesOfGroups(book, { withClaims: true }).find(({ name }) => name === group);
    if (of === undefined) throw new GroveError("BAD_ARGUMENT", `there is no group ${group}`);
    const nowMs = this.#deps.clock.wallMs();
    const isMember = of.roles.some(
      ({ username, untilMs }) => operator.id.startsWith(`${username}/`) && (untilMs === 0 || nowMs < untilMs),
    );
    if (isMember)
      throw new GroveError(
        "BAD_ARGUMENT",
        "nobody hands a root over to a group of their own; another operator can",
      );
  }

  /**
   * What counts by the nodes that answer and by what was decided here: what is not said of a user is decided
   * otherwise with the rest.
   */
  async #knownByNodes({ username, operator }: UserStateRequest): Promise<UserState | undefined> {
    const { cluster, onNode, decided } = this.#deps;
    const { passwordHash } = operator;
    const told = await Promise.all(
      cluster.nodes().map(async ({ address }) => {
        const call = { address, username, passwordHash, timeoutMs: USER_STATE_PUSH_TIMEOUT_MS };
        const state = await onNode(call).catch(() => undefined);
        return state === undefined ? [] : [userStateOf(state)];
      }),
    );
    const states = [...told.flat(), ...[decided.own(username) ?? []].flat()];
    return states.length === 0 ? undefined : states.reduce(laterState);
  }

  #stateOf(requested: UserStateRequest, known: UserState | undefined): UserState {
    const nowMs = Math.trunc(this.#deps.clock.wallMs());
    const handOvers = handOversOf(requested, known, nowMs);
    // A handing over of the root alone is no decision about access.
    const isEntry = requested.disabled !== undefined || requested.endsSessions === true;
    return checkedUserState({
      username: requested.username,
      disabled: requested.disabled ?? known?.disabled ?? false,
      closesShares: requested.closesShares ?? known?.closesShares ?? false,
      version: Math.max((known?.version ?? 0) + 1, nowMs),
      reason: isEntry ? requested.reason : (known?.reason ?? ""),
      setBy: isEntry ? requested.operator.id : (known?.setBy ?? requested.operator.id),
      setAtMs: isEntry ? nowMs : (known?.setAtMs ?? nowMs),
      tokensFromMs: requested.endsSessions === true ? nowMs : (known?.tokensFromMs ?? 0),
      issuer: known?.issuer ?? "",
      subject: known?.subject ?? "",
      ...(handOvers.length === 0 ? {} : { handOvers }),
      removal: known?.removal,
    });
  }

  /** Calls nodes that the last poll found offline too: they may be back, and have their own time limit. */
  #push(state: UserState, { operator }: UserStateRequest): Promise<Outcome[]> {
    const { cluster, setOnNode } = this.#deps;
    return Promise.all(
      cluster.nodes().map(async (node): Promise<Outcome> => {
        try {
          const reply = await setOnNode({
            address: node.address,
            state: userStateMessage(state),
            passwordHash: operator.passwordHash,
            timeoutMs: USER_STATE_PUSH_TIMEOUT_MS,
          });
          const { applied, sessionsEnded } = reply;
          const later = applied || reply.state === undefined ? undefined : userStateOf(reply.state);
          const problem = applied ? null : "it knows a newer decision of another administrator, which stays";
          return { node, sessionsEnded, problem, later };
        } catch (error) {
          // The causes repeat the message in fewer words.
          return { node, sessionsEnded: 0, problem: error instanceof Error ? error.message : String(error) };
        }
      }),
    );
  }

  /** Written before the answer, so that the log has everything that an operator has seen succeed. */
  async #record(
    requested: UserStateRequest,
    { disabled, version, closesShares }: UserState,
    counts: { readonly holding: number; readonly nodes: number },
  ): Promise<void> {
    const { audit, flushAudit, log } = this.#deps;
    const { operator, username, reason, requestId, address } = requested;
    const act = actOf(requested, disabled);
    const { to, mayDelete, untilMs } = { to: requested.endsHandOverTo, ...requested.handsOver };
    const root =
      to === undefined
        ? { closes_shares: closesShares }
        : {
            to,
            may_delete: mayDelete,
            until: untilMs === undefined ? undefined : new Date(untilMs).toISOString(),
          };
    const detail = { reason, version, ...root, address, ...counts };
    const who = { actor: operator.id, request: requestId };
    audit({ act, ...who, subject: username, detail });
    if (to !== undefined) {
      const inherited = requested.handsOver === undefined ? "user.inherit_end" : "user.inherit";
      audit({ act: inherited, ...who, subject: to, detail: { ...detail, to: undefined, root: username } });
    }
    log.info("user_state_pushed", { session: operator.id, act, ...detail });
    await flushAudit();
  }
}

function actOf(requested: UserStateRequest, disabled: boolean): AuditActName {
  if (requested.handsOver !== undefined) return "user.hand_over";
  if (requested.endsHandOverTo !== undefined) return "user.hand_over_end";
  if (requested.endsSessions === true) return "user.end_sessions";
  return disabled ? "user.disable" : "user.enable";
}

/** The resulting handings over, without expired ones. */
function handOversOf(requested: UserStateRequest, known: UserState | undefined, nowMs: number): HandOver[] {
  const { handsOver, endsHandOverTo, operator, reason } = requested;
  const to = handsOver?.to ?? endsHandOverTo;
  const others =
    known?.handOvers?.filter((handOver) => isInForce(handOver, nowMs) && handOver.to !== to) ?? [];
  if (handsOver === undefined) return others;
  // After a sign-in by name an operator's id begins with the user name.
  if (operator.id.startsWith(`${handsOver.to}/`)) {
    throw new GroveError("BAD_ARGUMENT", "nobody hands a root over to themselves; another operator can");
  }
  return [...others, { ...handsOver, reason, setBy: operator.id, setAtMs: nowMs }];
}

function handedOver(handOver: HandOver): Known["hand_overs"][number] {
  const { to, mayDelete, reason, setBy, setAtMs, untilMs } = handOver;
  const [setAt, until] = [Math.floor(setAtMs / 1_000), Math.floor(untilMs / 1_000)];
  return { to, may_delete: mayDelete, reason, set_by: setBy, set_at: setAt, until };
}
