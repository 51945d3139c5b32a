// All rollouts: starts them, locks their nodes, cancels them, brings nodes back (spec 4.7, decision D7).
import { isGroveError } from "#base/errors.ts";
import { ACTION_NODES_MAX } from "#base/limits.ts";
import { errorText } from "#base/log.ts";
import type { SshNode } from "#base/ssh-node.ts";
import { ulid } from "#base/ulid.ts";
import { waitAtMost } from "#base/waiting.ts";
import type { RolloutRecord, RolloutRequest } from "#wire/webapi/rollout.ts";
import { ACTION_LIMIT_SECONDS } from "./action-arguments.ts";
import { ACTIONS_STOP_MS } from "./action-engine.ts";
import { type ActionOperator, NODE_LOCK_GRACE_MS, unixSeconds } from "./action-job.ts";
import { ActionRefusal } from "./action-refusal.ts";
import { IdempotencyKeys } from "./idempotency-keys.ts";
import type { NodeLocks } from "./node-locks.ts";
import { masked } from "./output-mask.ts";
import { ROLLOUT_CHECK_LIMIT_MS, ROLLOUT_LAST_POLL_MS } from "./rollout-gate.ts";
import type { RolloutHistory } from "./rollout-history.ts";
import { planBack, planForward, plannedSteps, type RolloutEntry, type RolloutNode } from "./rollout-plan.ts";
import { RolloutRun, type RolloutRunDeps } from "./rollout-run.ts";

/** Concurrent rollouts, on different nodes; more are refused. */
const ROLLOUTS_ACTIVE_MAX = 2;

/** Dependencies of rollouts. */
export interface RolloutsDeps extends Omit<RolloutRunDeps, "save" | "release"> {
  readonly history: RolloutHistory;
  readonly locks: NodeLocks;
  /** The enrolled nodes; rejects when the store does not answer. */
  readonly nodes: () => Promise<readonly SshNode[]>;
  readonly nameOf: (nodeId: string) => string;
  /** Values that records mask. */
  readonly secrets: () => readonly string[];
  /** Resolves when the line is on stable storage; rejects when it cannot be written. */
  readonly audit: (
    act: "rollout.start" | "rollout.cancel" | "rollout.end",
    rollout: { readonly operator: ActionOperator; readonly record: RolloutRecord },
  ) => Promise<void>;
  /** Receives each state; must not throw. */
  readonly onState: (record: RolloutRecord) => void;
  /** Receives the final state; must not throw. */
  readonly onEnd: (record: RolloutRecord) => void;
}

/** A request to bring nodes back. */
export interface BackRequest {
  readonly dry_run: boolean;
  readonly comment?: string | undefined;
}

/** All rollouts. One instance for each console. */
export class Rollouts {
  readonly #deps: RolloutsDeps;
  readonly #running = new Map<
    string,
    { readonly run: RolloutRun; readonly done: PromiseWithResolvers<void> }
  >();
  readonly #keyed: IdempotencyKeys<RolloutRecord>;
  #isClosed = false;

  constructor(deps: RolloutsDeps) {
    this.#deps = deps;
    this.#keyed = new IdempotencyKeys({
      recordOf: (record) => record,
      known: (isMeant) => this.list().find(isMeant),
      secrets: deps.secrets,
    });
  }

  /** All rollouts, the newest first. */
  list(): RolloutRecord[] {
    return this.#deps.history.list().map((record) => this.#running.get(record.id)?.run.record ?? record);
  }

  /** A rollout's current record. */
  find(id: string): RolloutRecord | undefined {
    return this.#running.get(id)?.run.record ?? this.#deps.history.find(id);
  }

  /**
   * Starts a rollout; resolves once its nodes are locked and its record is on stable storage. A dry run is
   * only planned: it keeps nothing and asks no node. A repeated key of the same operator means the same
   * rollout. Throws ActionRefusal.
   */
  async start(request: RolloutRequest, operator: ActionOperator): Promise<RolloutRecord> {
    const start = (): Promise<RolloutRecord> => this.#start(request, operator);
    return request.dry_run ? await start() : await this.#keyed.once(request, operator, start);
  }

  /** Brings the nodes that a rollout has changed to their commits before it. Throws ActionRefusal. */
  async back(
    before: RolloutRecord,
    requested: BackRequest,
    operator: ActionOperator,
  ): Promise<RolloutRecord> {
    if (before.state === "running") {
      const heldBy = this.#deps.locks.held().filter(({ actionId }) => actionId === before.id);
      throw new ActionRefusal("locked", "this rollout still runs; cancel it first", { heldBy });
    }
    const enrolled = await this.#deps.nodes();
    const { nodes, left } = plannedOrRefused(() => planBack(before, enrolled));
    if (nodes.length === 0) throw new ActionRefusal("invalid", "this rollout has changed no node");
    const { branch, make_target, restart_mode, target_service, step_size, gates } = before.request;
    const request = {
      nodes: nodes.map(({ node }) => node.id),
      branch,
      make_target,
      restart_mode,
      target_service,
      step_size,
      gates,
      dry_run: requested.dry_run,
      ...(requested.comment === undefined ? {} : { comment: requested.comment }),
    };
    return await this.#take({ request, nodes, left, operator, back: before });
  }

  /** Cancels a rollout and its actions on nodes. False when it has ended or is unknown. */
  async cancel(id: string, operator: ActionOperator): Promise<boolean> {
    const running = this.#running.get(id);
    if (running === undefined) return false;
    await this.#deps
      .audit("rollout.cancel", { operator, record: running.run.record })
      .catch((error: unknown) => {
        // A full disk must not keep an operator from cancelling.
        this.#deps.log.error("rollout_cancel_not_audited", { id, error: errorText(error) });
      });
    running.run.stop("cancelled");
    return true;
  }

  /** Refuses new rollouts and interrupts those that run; resolves when they have ended, or after 16 s. */
  async close(): Promise<void> {
    this.#isClosed = true;
    const running = [...this.#running.values()];
    for (const { run } of running) run.stop("interrupted");
    const through = Promise.all(running.map(({ done }) => done.promise));
    await waitAtMost(this.#deps.clock, ACTIONS_STOP_MS, through);
  }

  async #start(request: RolloutRequest, operator: ActionOperator): Promise<RolloutRecord> {
    this.#checkPlace(request);
    const enrolled = await this.#deps.nodes();
    const nodes = plannedOrRefused(() => planForward(request, enrolled));
    if (nodes.length > ACTION_NODES_MAX) {
      throw new ActionRefusal("invalid", `a rollout has at most ${ACTION_NODES_MAX} nodes`);
    }
    return await this.#take({ request, nodes, operator, back: undefined });
  }

  #checkPlace({ dry_run: isDry }: { readonly dry_run: boolean }): void {
    if (this.#isClosed) throw new ActionRefusal("unavailable", "the console stops");
    if (!isDry && this.#running.size >= ROLLOUTS_ACTIVE_MAX) {
      throw new ActionRefusal("busy", `${ROLLOUTS_ACTIVE_MAX} rollouts run already`);
    }
  }

  /** Checks and locks without an await in between. */
  async #take(plan: Plan): Promise<RolloutRecord> {
    const { request, nodes, operator, back } = plan;
    this.#checkPlace(request);
    const { locks, history } = this.#deps;
    const record = masked(this.#newRecord(plan), this.#deps.secrets());
    if (request.dry_run) return { ...record, state: "planned" };
    const ids = nodes.map(({ node }) => node.id);
    const lock = locks.acquire(record.id, ids, wholeLimitMs(nodes, request.gates));
    if (!lock.isHeld) {
      const { heldBy } = lock;
      throw new ActionRefusal("locked", "another action holds nodes of this rollout; nothing was run", {
        heldBy,
      });
    }
    const run = new RolloutRun(
      { ...this.#deps, save: (newer) => this.#save(newer), release: () => lock.release() },
      record,
      nodes,
      operator,
    );
    const done = Promise.withResolvers<void>();
    this.#running.set(record.id, { run, done });
    try {
      await this.#writeDown(record, operator);
    } catch (error) {
      this.#running.delete(record.id);
      history.drop(record.id);
      lock.release();
      done.resolve();
      throw error;
    }
    if (back !== undefined) await this.#noteBack(back.id, record.id);
    void this.#see(run, operator).finally(() => done.resolve());
    return record;
  }

  /** Writes the audit line, then the record; the rollout runs only after both (E-03). */
  async #writeDown(record: RolloutRecord, operator: ActionOperator): Promise<void> {
    const { audit, history } = this.#deps;
    await audit("rollout.start", { operator, record }).catch((cause: unknown) => {
      throw new ActionRefusal("unrecorded", "the audit log cannot be written; nothing was run", { cause });
    });
    await history.put(record).catch((cause: unknown) => {
      throw new ActionRefusal("unrecorded", "the rollout cannot be written down; nothing was run", { cause });
    });
  }

  async #see(run: RolloutRun, operator: ActionOperator): Promise<void> {
    const { audit, history, log, onEnd } = this.#deps;
    await run.run();
    const { record } = run;
    this.#running.delete(record.id);
    await audit("rollout.end", { operator, record }).catch((error: unknown) => {
      log.error("rollout_end_not_audited", { id: record.id, error: errorText(error) });
    });
    onEnd(record);
    await history.prune();
  }

  async #save(record: RolloutRecord): Promise<void> {
    this.#deps.onState(record);
    await this.#deps.history.put(record);
  }

  async #noteBack(id: string, backId: string): Promise<void> {
    const before = this.#deps.history.find(id);
    if (before === undefined) return;
    await this.#save({ ...before, back_by: backId, seq: before.seq + 1 }).catch((error: unknown) => {
      this.#deps.log.error("rollout_not_recorded", { id, error: errorText(error) });
    });
  }

  #newRecord({ request, nodes, left = [], operator, back }: Plan): RolloutRecord {
    const { clock, random, nameOf } = this.#deps;
    const { session, ip } = operator;
    const planned = nodes.map(
      (each): RolloutEntry => ({
        node_id: each.node.id,
        node_name: nameOf(each.node.id),
        wave: each.wave,
        state: "pending",
        steps: plannedSteps(each),
        changed: false,
      }),
    );
    return {
      id: ulid(clock, random),
      direction: back === undefined ? "forward" : "back",
      ...(back === undefined ? {} : { back_of: back.id }),
      request,
      operator: { session, ip },
      state: "running",
      seq: 1,
      created_at: unixSeconds(clock),
      can_go_back: false,
      nodes: [...planned, ...left],
    };
  }
}

interface Plan {
  readonly request: RolloutRecord["request"];
  readonly nodes: readonly RolloutNode[];
  /** Nodes that stay as they are. */
  readonly left?: readonly RolloutEntry[];
  readonly operator: ActionOperator;
  /** The rollout that this one reverts. */
  readonly back: RolloutRecord | undefined;
}

/** Upper bound of a rollout's duration; its locks expire then. */
function wholeLimitMs(nodes: readonly RolloutNode[], gates: RolloutRecord["request"]["gates"]): number {
  const { pull, build, restart } = ACTION_LIMIT_SECONDS;
  const gateSeconds = gates.health_seconds + gates.observe_seconds;
  const waveMs = (pull + build + restart + gateSeconds) * 1_000 + ROLLOUT_LAST_POLL_MS + NODE_LOCK_GRACE_MS;
  const waves = Math.max(0, ...nodes.map(({ wave }) => wave)) + 1;
  return nodes.length * ROLLOUT_CHECK_LIMIT_MS + waves * waveMs;
}

function plannedOrRefused<T>(plan: () => T): T {
  try {
    return plan();
  } catch (error) {
    if (!isGroveError(error, "BAD_ARGUMENT")) throw error;
    throw new ActionRefusal("invalid", error.message, { cause: error });
  }
}
