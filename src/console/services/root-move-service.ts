// What operators see and decide of roots that move: moves, drains of nodes, rebalancings, each audited (D27).
import type { AuditActName, AuditSink } from "#base/audit-act.ts";
import type { Clock } from "#base/clock.ts";
import { isGroveError } from "#base/errors.ts";
import type { Random } from "#base/random.ts";
import { shellWord } from "#base/shell-word.ts";
import type { ClusterState } from "#console/cluster/cluster-state.ts";
import type { UserList } from "#console/cluster/user-list.ts";
import { ProblemError } from "#console/http/route.ts";
import type { DirectoryReader, NodeStore } from "#metaserver/directory/directory.ts";
import { type PlannedMove, planRebalance, takesForEngine } from "#metaserver/directory/move-plan.ts";
import {
  confirmMoves,
  type DrainObstacles,
  drainFacts,
  drainObstacles,
  rootsByNode,
  sizedNodes,
  withoutMoving,
} from "#metaserver/directory/moving-roots.ts";
import { isRemovingCopy, isUnderWay, type RootMove } from "#metaserver/directory/root-move.ts";
import type {
  DrainPlanView,
  DrainView,
  MoveList,
  PlannedMoveView,
  RebalancePlanView,
  RootMoveView,
} from "#wire/webapi/root-move.ts";
import type { ConsoleOptions } from "./console-options.ts";
import type { DrainedNodes } from "./drained-nodes.ts";
import { metaFlag } from "./meta-flag.ts";
import type { MoveRunner, WithNodeStore } from "./move-runner.ts";

/** Moves in one answer. */
const MOVES_SHOWN = 500;
const PLANNED_SHOWN = 1_000;
/** How long a shown plan may be started. */
const PLAN_VALID_MS = 600_000;
/** Bytes that have arrived before they tell a pace. */
const PACE_FROM_BYTES = 1_000_000;

/** Dependencies of the service. */
export interface RootMoveServiceDeps {
  readonly directory: Pick<DirectoryReader, "listRoots" | "rootMoves">;
  readonly drained: DrainedNodes;
  readonly withStore: WithNodeStore;
  readonly runner: MoveRunner;
  readonly cluster: Pick<ClusterState, "node">;
  readonly users: Pick<UserList, "find">;
  /** Kind and place of the store, for commands that are shown. */
  readonly store: ConsoleOptions["store"];
  readonly audit: AuditSink;
  /** Resolves when the audit lines taken so far are on stable storage. */
  readonly flushAudit: () => Promise<void>;
  readonly random: Random;
  readonly clock: Clock;
}

/** The operator, for the audit log. */
export interface MoveActor {
  readonly id: string;
  readonly requestId: string;
}

/** The service. One instance for each console. */
export class RootMoveService {
  readonly #deps: RootMoveServiceDeps;
  #rebalance:
    | { readonly id: string; readonly moves: readonly PlannedMove[]; readonly atMs: number }
    | undefined;

  constructor(deps: RootMoveServiceDeps) {
    this.#deps = deps;
  }

  /** Every move, drain and rebalancing. */
  async list(): Promise<MoveList> {
    const { directory, drained, runner } = this.#deps;
    const moves = (await directory.rootMoves()).toSorted(underWayFirst);
    const out = await drained.read();
    const byNode = out.size === 0 ? new Map<string, readonly string[]>() : await rootsByNode(directory);
    const rebalancing = runner.rebalancing();
    return {
      moves: await Promise.all(moves.slice(0, MOVES_SHOWN).map((move) => this.#shown(move))),
      moves_total: moves.length,
      drains: [...out].map((id) => this.#drainShown(id, moves, byNode.get(id)?.length ?? 0)),
      rebalance:
        rebalancing === undefined
          ? null
          : { waiting: rebalancing.waiting, problem: rebalancing.problem ?? null },
    };
  }

  /** What a drain would do. Nothing begins. Throws NO_SUCH_NODE. */
  async planDrain(nodeId: string, toEngine = false): Promise<DrainPlanView> {
    this.#requireNode(nodeId);
    return (await this.#deps.withStore((store) => this.#planned(store, nodeId, toEngine))).view;
  }

  /** Takes a node out of service. Throws MOVES_REFUSED where the plan is blocked or there is no room. */
  async drain(nodeId: string, actor: MoveActor, toEngine = false): Promise<DrainView> {
    this.#requireNode(nodeId);
    const { withStore, runner } = this.#deps;
    const planned = await withStore(async (store) => {
      const { view, moves } = await this.#planned(store, nodeId, toEngine);
      const [blocked] = view.blocked_by;
      if (blocked !== undefined) throw new ProblemError("MOVES_REFUSED", blocked);
      if (view.without_room_total > 0) {
        throw new ProblemError(
          "MOVES_REFUSED",
          `there is no room for ${view.without_room_total} of its roots: free space on the others, or add a node`,
        );
      }
      await this.#record("drain.begin", nodeId, actor, {
        roots: view.moves_total,
        bytes: view.bytes_total,
        to: view.to_engine ? "engine" : "nodes",
      });
      await store.setDrained(nodeId, true);
      return { moves, toEngine: view.to_engine };
    });
    await runner.drain(nodeId, planned.moves, planned.toEngine);
    return this.#drainNow(nodeId);
  }

  /** Gives a node new roots again: no further root leaves it, those on their way arrive. */
  async bringBack(nodeId: string, actor: MoveActor): Promise<DrainView> {
    this.#requireNode(nodeId);
    const { withStore, runner } = this.#deps;
    await this.#record("drain.end", nodeId, actor, {});
    await runner.leave(nodeId);
    await withStore((store) => store.setDrained(nodeId, false));
    return this.#drainNow(nodeId);
  }

  /** Lets a node remove its copies of all roots that have moved away; how many. */
  async confirmOf(nodeId: string, actor: MoveActor): Promise<number> {
    this.#requireNode(nodeId);
    return this.#deps.withStore(async (store) => {
      const moves = (await store.rootMoves()).filter(
        ({ source, state }) => source === nodeId && state === "switched",
      );
      await this.#record("drain.confirm", nodeId, actor, { roots: moves.length });
      return refusing(() => confirmMoves(store, moves));
    });
  }

  /** Confirms a move that has switched, or undoes one that has not. Throws NO_SUCH_USER, MOVES_REFUSED. */
  async decide(owner: string, decision: "confirm" | "undo", actor: MoveActor): Promise<RootMoveView> {
    const act = decision === "confirm" ? "move.confirm" : "move.undo";
    const decided = await this.#deps.withStore(async (store) => {
      const known = (await store.rootMoves()).find((move) => move.owner === owner);
      if (known === undefined)
        throw new ProblemError("NO_SUCH_USER", `the root of ${owner} is under no move`);
      await this.#record(act, owner, actor, { from: known.source, to: known.target });
      return refusing(() => store.decideMove(owner, decision));
    });
    if (decided === undefined)
      throw new ProblemError("NO_SUCH_USER", `the root of ${owner} is under no move`);
    return this.#shown(decided);
  }

  /** Moves that would bring the nodes into balance. Nothing begins. */
  async planRebalance(): Promise<RebalancePlanView> {
    const { withStore, clock, random } = this.#deps;
    const { moves, silent } = await withStore(async (store) => {
      const running = (await store.nodes())
        .filter(({ live, onEngine }) => live && onEngine !== true)
        .map(({ fsId }) => fsId);
      const nodes = await sizedNodes(store, clock, running);
      const moving = await store.rootMoves();
      const silentOnes = nodes.filter(({ fsId, roots }) => running.includes(fsId) && roots === undefined);
      return {
        moves: planRebalance(nodes.map((node) => withoutMoving(node, moving))),
        silent: silentOnes.map(({ fsId }) => fsId),
      };
    });
    const id = random.bytes(16).toString("hex");
    this.#rebalance = { id, moves, atMs: clock.steadyMs() };
    return {
      plan_id: id,
      moves: moves.map((move) => this.#plannedMove(move)),
      bytes_total: sumOf(moves),
      silent_nodes: silent.map((nodeId) => this.#nameOf(nodeId)),
    };
  }

  /** Starts the moves of a shown plan. Throws MOVES_REFUSED for one that is not the last or too old. */
  async rebalance(planId: string, actor: MoveActor): Promise<number> {
    const { clock, runner } = this.#deps;
    const plan = this.#rebalance;
    if (plan?.id !== planId || clock.steadyMs() - plan.atMs > PLAN_VALID_MS) {
      throw new ProblemError("MOVES_REFUSED", "this plan is no longer the last one: plan it anew");
    }
    this.#rebalance = undefined;
    await this.#record("rebalance.begin", "cluster", actor, {
      roots: plan.moves.length,
      bytes: sumOf(plan.moves),
    });
    await runner.rebalance(plan.moves.map(({ owner, target }) => ({ owner, target })));
    return plan.moves.length;
  }

  /** Begins no further move of a rebalancing; how many had not begun. */
  async stopRebalance(actor: MoveActor): Promise<number> {
    const waiting = this.#deps.runner.rebalancing()?.waiting ?? 0;
    await this.#record("rebalance.end", "cluster", actor, { roots: waiting });
    await this.#deps.runner.stopRebalance();
    return waiting;
  }

  async #planned(
    store: NodeStore,
    nodeId: string,
    wantsEngine: boolean,
  ): Promise<{ readonly view: DrainPlanView; readonly moves: readonly PlannedMove[] }> {
    const facts = await drainFacts(nodeId, store, this.#deps.clock, wantsEngine);
    const { plan, underWay, areSizesKnown, nodes } = facts;
    const node = nodes.find(({ fsId }) => fsId === nodeId);
    const onEngine = node?.onEngine === true;
    const toEngine = wantsEngine || onEngine;
    const takers = nodes.filter((other) => other.fsId !== nodeId && takesForEngine(other));
    const lacksEngine = toEngine && takers.length === 0;
    const obstacles = await drainObstacles(nodeId, store);
    const about = { live: node?.live === true, onEngine, lacksEngine };
    const blocked = blockedBy(this.#nameOf(nodeId), about, obstacles);
    // Without a node of the engine there is no question of room.
    const withoutRoom = lacksEngine ? [] : plan.withoutRoom;
    const view: DrainPlanView = {
      node_id: nodeId,
      node_name: this.#nameOf(nodeId),
      sizes_known: areSizesKnown,
      moves: plan.moves.slice(0, PLANNED_SHOWN).map((move) => this.#plannedMove(move)),
      moves_total: plan.moves.length,
      bytes_total: sumOf(plan.moves),
      under_way: underWay.length,
      to_engine: toEngine,
      on_engine: onEngine,
      engine_nodes: takers.length,
      without_room: withoutRoom.slice(0, PLANNED_SHOWN).map(({ owner, bytes, missingBytes }) => ({
        owner,
        bytes,
        missing_bytes: Number(missingBytes),
      })),
      without_room_total: withoutRoom.length,
      blocked_by: blocked,
    };
    return { view, moves: plan.moves };
  }

  async #drainNow(nodeId: string): Promise<DrainView> {
    const { directory, drained } = this.#deps;
    await drained.read();
    const owners = (await rootsByNode(directory)).get(nodeId) ?? [];
    return this.#drainShown(nodeId, await directory.rootMoves(), owners.length);
  }

  #drainShown(nodeId: string, moves: readonly RootMove[], rootsLeft: number): DrainView {
    const away = moves.filter(({ source }) => source === nodeId);
    const driven = this.#deps.runner.drainOf(nodeId);
    return {
      node_id: nodeId,
      node_name: this.#nameOf(nodeId),
      driven: driven !== undefined,
      roots_left: rootsLeft,
      under_way: away.filter(isUnderWay).length,
      kept_copies: away.filter(({ state }) => state === "switched").length,
      removing_copies: away.filter(isRemovingCopy).length,
      to_engine: driven?.toEngine ?? false,
      remove_command: `grove node remove ${shellWord(nodeId)} ${metaFlag(this.#deps.store)}`,
      problem: driven?.problem ?? null,
    };
  }

  async #shown(move: RootMove): Promise<RootMoveView> {
    const known = isUnderWay(move) ? await this.#deps.users.find(move.owner) : undefined;
    const total = known === undefined ? null : Number(known.usedBytes);
    const nowMs = this.#deps.clock.wallMs();
    return {
      owner: move.owner,
      from: move.source,
      from_name: this.#nameOf(move.source),
      to: move.target,
      to_name: this.#nameOf(move.target),
      state: move.state,
      ...progressOf(move, total, nowMs),
      copied_bytes: move.bytes,
      total_bytes: total,
      problem: move.problem === "" ? null : move.problem,
      started_at: Math.floor(move.startedMs / 1_000),
      changed_at: Math.floor(move.changedMs / 1_000),
    };
  }

  #plannedMove({ owner, bytes, source, target }: PlannedMove): PlannedMoveView {
    const names = { from_name: this.#nameOf(source), to_name: this.#nameOf(target) };
    return { owner, bytes, from: source, to: target, ...names };
  }

  #nameOf(nodeId: string): string {
    return this.#deps.cluster.node(nodeId)?.name ?? nodeId;
  }

  #requireNode(nodeId: string): void {
    if (this.#deps.cluster.node(nodeId) !== undefined) return;
    throw new ProblemError("NO_SUCH_NODE", "no node has this id");
  }

  /** Written before the act, so that none goes without a line. */
  async #record(
    act: AuditActName,
    subject: string,
    actor: MoveActor,
    detail: Readonly<Record<string, string | number>>,
  ): Promise<void> {
    const { audit, flushAudit } = this.#deps;
    audit({ act, actor: actor.id, subject, request: actor.requestId, detail });
    await flushAudit();
  }
}

/** How far a move is, by bytes; nothing is told after its switch, or where its size is not known. */
export function progressOf(
  { bytes, state, startedMs, problem }: Pick<RootMove, "bytes" | "problem" | "startedMs" | "state">,
  total: number | null,
  nowMs: number,
): Pick<RootMoveView, "percent" | "remaining_seconds"> {
  if (state === "frozen") return { percent: 99, remaining_seconds: 0 };
  if (state !== "copying" || total === null || total <= 0) return { percent: null, remaining_seconds: null };
  // The last step is the switch, whatever has arrived.
  const percent = Math.min(99, Math.floor((100 * bytes) / total));
  if (problem !== "" || bytes < PACE_FROM_BYTES) return { percent, remaining_seconds: null };
  const elapsed = Math.max(0, nowMs - startedMs) / 1_000;
  return { percent, remaining_seconds: Math.round((elapsed * Math.max(0, total - bytes)) / bytes) };
}

function blockedBy(
  name: string,
  { live, onEngine, lacksEngine }: Readonly<Record<"lacksEngine" | "live" | "onEngine", boolean>>,
  { coming, arrived }: DrainObstacles,
): string[] {
  const blocked: string[] = [];
  if (lacksEngine) {
    blocked.push(
      onEngine
        ? `${name} serves roots of the shared engine, and no other node of it runs: start one, and its users stay served`
        : "No FileServer of the shared engine runs: start one with -engine_file and -store",
    );
  }
  if (!live) {
    blocked.push(
      `${name} does not run, and roots move from a node that runs: start it, or restore its newest backup`,
    );
  }
  if (coming.length > 0) {
    blocked.push(`Roots are on their way to ${name} (${someOf(coming)}): undo these moves first, or wait`);
  }
  if (arrived.length > 0) {
    blocked.push(
      `Roots have moved to ${name} (${someOf(arrived)}), and that is not confirmed: look at them and confirm these moves first`,
    );
  }
  return blocked;
}

function someOf(owners: readonly string[]): string {
  const shown = owners.slice(0, 5).join(", ");
  return owners.length > 5 ? `${shown} and ${owners.length - 5} more` : shown;
}

function sumOf(moves: readonly PlannedMove[]): number {
  return moves.reduce((all, { bytes }) => all + bytes, 0);
}

const ORDER: readonly RootMove["state"][] = [
  "frozen",
  "copying",
  "switched",
  "undone",
  "confirmed",
  "returned",
];

function underWayFirst(a: RootMove, b: RootMove): number {
  return (
    ORDER.indexOf(a.state) - ORDER.indexOf(b.state) ||
    a.startedMs - b.startedMs ||
    (a.owner < b.owner ? -1 : 1)
  );
}

async function refusing<T>(work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    if (!isGroveError(error, "BAD_ARGUMENT")) throw error;
    throw new ProblemError("MOVES_REFUSED", error.message, { cause: error });
  }
}
