// Accepts and runs actions: locks, queue, records, output; every record gets an end (spec 4.7, D7, T14).
import type { Clock } from "#base/clock.ts";
import { errorText, type Logger } from "#base/log.ts";
import type { Random } from "#base/random.ts";
import type { SshNode } from "#base/ssh-node.ts";
import { ulid } from "#base/ulid.ts";
import { waitAtMost } from "#base/waiting.ts";
import type { ActionRecord } from "#wire/webapi/action-record.ts";
import type { ActionRequest } from "#wire/webapi/action-request.ts";
import { type ActionHistory, isUnfinished } from "./action-history.ts";
import {
  type ActionOperator,
  type Job,
  type JobNode,
  newJob,
  newRecord,
  unixSeconds,
  wholeLimitMs,
} from "./action-job.ts";
import { plannedNodes } from "./action-nodes.ts";
import { ActionRefusal } from "./action-refusal.ts";
import { type ActionEvents, finishRecord, runJob, type TargetRunner } from "./action-run.ts";
import { IdempotencyKeys } from "./idempotency-keys.ts";
import type { NodeLocks } from "./node-locks.ts";
import { masked } from "./output-mask.ts";
import type { OutputStore } from "./output-store.ts";
import { reconcile } from "./reconcile.ts";
import { RecordSaver } from "./record-saver.ts";

/** Actions that run at the same time; others wait in the queue with their nodes locked. */
const ACTIONS_ACTIVE_MAX = 5;
/** Actions that wait; more are refused. */
const ACTIONS_QUEUED_MAX = 20;
/** Time a stop of the console waits for its actions; TERM and KILL on their nodes take 15 s of it. */
export const ACTIONS_STOP_MS = 16_000;

/** Dependencies of the engine. */
export interface ActionEngineDeps {
  readonly clock: Clock;
  readonly random: Random;
  readonly log: Logger;
  readonly history: ActionHistory;
  readonly outputs: OutputStore;
  readonly locks: NodeLocks;
  /** The enrolled nodes; rejects when the store does not answer. */
  readonly nodes: () => Promise<readonly SshNode[]>;
  readonly nameOf: (nodeId: string) => string;
  readonly runner: TargetRunner;
  /** Values that records mask. */
  readonly secrets: () => readonly string[];
  /** False with -no_custom. */
  readonly allowsCustom: boolean;
  /** Opens a maintenance window; the returned function closes it. */
  readonly openMaintenance: (nodeIds: readonly string[], untilWallMs: number, reason: string) => () => void;
  /** Resolves when the line is on stable storage; rejects when it cannot be written. */
  readonly audit: (act: "action.start" | "action.cancel" | "action.end", job: AuditedAction) => Promise<void>;
  readonly events: ActionEvents;
}

/** An action's fields in a line of the audit log. */
export interface AuditedAction {
  readonly operator: ActionOperator;
  readonly record: ActionRecord;
}

/** An accepted action. */
export interface TakenAction {
  readonly record: ActionRecord;
  /** Resolves with its final record. */
  readonly done: Promise<ActionRecord>;
}

/** All actions of a console. */
export class ActionEngine {
  readonly #deps: ActionEngineDeps;
  readonly #saver: RecordSaver;
  readonly #jobs = new Map<string, Job>();
  readonly #queue: Job[] = [];
  readonly #keyed: IdempotencyKeys<TakenAction>;
  readonly #closing = new AbortController();
  #active = 0;

  constructor(deps: ActionEngineDeps) {
    this.#deps = deps;
    const { clock, log, history, secrets } = deps;
    this.#saver = new RecordSaver({ clock, log, history, onLateEnd: (id) => this.#jobs.delete(id) });
    this.#keyed = new IdempotencyKeys({
      recordOf: ({ record }) => record,
      known: (isMeant) => this.#known(isMeant),
      secrets,
    });
  }

  get #isClosed(): boolean {
    return this.#closing.signal.aborted;
  }

  /** All records, the newest first. */
  list(): ActionRecord[] {
    return this.#deps.history.list().map((record) => this.#jobs.get(record.id)?.record ?? record);
  }

  /** One record as it is now. */
  find(id: string): ActionRecord | undefined {
    return this.#jobs.get(id)?.record ?? this.#deps.history.find(id);
  }

  /** The output of a running action; undefined when it does not run. */
  outputOf(id: string): Job["output"] {
    return this.#jobs.get(id)?.output;
  }

  /**
   * Accepts an action; resolves once its nodes are locked and its record is on stable storage. A repeated key
   * of the same operator means the same action. Throws ActionRefusal; a refusal because of locks has a record
   * too.
   */
  async submit(request: ActionRequest, operator: ActionOperator): Promise<TakenAction> {
    return await this.#keyed.once(request, operator, () => this.#submit(request, operator));
  }

  /**
   * Runs one step of a rollout at once, on nodes that the rollout has locked, with a record of its own. The
   * signal cancels it. Throws ActionRefusal.
   */
  async takeStep(
    request: ActionRequest,
    nodes: readonly JobNode[],
    operator: ActionOperator,
    signal: AbortSignal,
  ): Promise<TakenAction> {
    const { clock, random } = this.#deps;
    if (this.#isClosed || signal.aborted) throw new ActionRefusal("unavailable", STOPS);
    const record = this.#newRecord(ulid(clock, random), { request, operator, nodes });
    const job = newJob(record, { request, operator, nodes, isStep: true });
    this.#jobs.set(record.id, job);
    try {
      await this.#writeDown(job);
    } catch (error) {
      this.#jobs.delete(record.id);
      throw error;
    }
    const onAbort = (): void => job.abort.abort();
    signal.addEventListener("abort", onAbort, { once: true });
    // The rollout may have been stopped while the record was written.
    if (signal.aborted || this.#isClosed) onAbort();
    void this.#run(job).finally(() => signal.removeEventListener("abort", onAbort));
    return { record: job.record, done: job.done.promise };
  }

  /** Cancels an action and ends its programs on the nodes. False when it has ended or is unknown. */
  async cancel(id: string, operator: ActionOperator): Promise<boolean> {
    const job = this.#jobs.get(id);
    if (job === undefined || !isUnfinished(job.record)) return false;
    await this.#deps.audit("action.cancel", { operator, record: job.record }).catch((error: unknown) => {
      // A full disk must not keep an operator from cancelling.
      this.#deps.log.error("action_cancel_not_audited", { id, error: errorText(error) });
    });
    job.abort.abort();
    this.#dropCancelled();
    return true;
  }

  /**
   * Settles the unfinished records of an earlier console; called once, before any action is accepted (T14).
   */
  async reconcile(): Promise<void> {
    const { events } = this.#deps;
    // A restart of the console fails or succeeds as any action does, though another console hears of its end.
    const onEnd = async (record: ActionRecord): Promise<void> => {
      await this.#auditEnd({ operator: record.operator, record });
      events.onEnd(record);
    };
    await reconcile({ ...this.#deps, onEnd, signal: this.#closing.signal });
    await this.#prune();
  }

  /**
   * Refuses new actions and cancels those that run; resolves when they have ended, or after 16 s. It does not
   * wait for actions that were handed over: their callers get the record as it is.
   */
  async close(): Promise<void> {
    this.#closing.abort();
    const open = [...this.#jobs.values()].filter(({ record }) => isUnfinished(record));
    const ends = open.filter(({ record }) => record.state !== "handed_over");
    for (const job of ends) job.abort.abort();
    for (const job of open.filter(({ record }) => record.state === "handed_over")) {
      job.isLetGo = true;
      job.done.resolve(job.record);
    }
    this.#dropCancelled();
    const through = Promise.all(ends.map(({ done }) => done.promise));
    await waitAtMost(this.#deps.clock, ACTIONS_STOP_MS, through);
    await this.#saver.saveRest();
  }

  async #submit(request: ActionRequest, operator: ActionOperator): Promise<TakenAction> {
    this.#checkPlace(request);
    const nodes = plannedNodes(request, await this.#deps.nodes());
    // No await between this check and the locks.
    this.#checkPlace(request);
    const { clock, random, locks, history } = this.#deps;
    const id = ulid(clock, random);
    const record = this.#newRecord(id, { request, operator, nodes });
    if (request.dry_run) return await this.#dryRun(record);
    const job = newJob(record, { request, operator, nodes });
    const ids = nodes.map(({ node }) => node.id);
    const leaseMs = wholeLimitMs(nodes, job.order);
    const lock = locks.acquire(id, ids, leaseMs);
    if (!lock.isHeld) {
      const now = unixSeconds(clock);
      const rejected = { ...record, state: "rejected" as const, finished_at: now };
      await history.put(rejected).catch((error: unknown) => this.#unwritten(id, error));
      throw new ActionRefusal("locked", "another action holds nodes of this one; nothing was run", {
        heldBy: lock.heldBy,
      });
    }
    job.release = lock.release;
    this.#jobs.set(id, job);
    try {
      await this.#writeDown(job);
    } catch (error) {
      lock.release();
      this.#jobs.delete(id);
      throw error;
    }
    this.#queue.push(job);
    this.#startNext();
    return { record: job.record, done: job.done.promise };
  }

  /** A secret that an operator has typed reaches the node, but no record. */
  #newRecord(id: string, requested: Pick<Job, "request" | "operator" | "nodes">): ActionRecord {
    const { clock, nameOf, secrets } = this.#deps;
    return masked(newRecord(id, clock, { ...requested, nameOf }), secrets());
  }

  #checkPlace(request: ActionRequest): void {
    if (this.#isClosed) throw new ActionRefusal("unavailable", STOPS);
    if (request.action === "custom" && !this.#deps.allowsCustom) {
      throw new ActionRefusal("invalid", "custom commands are switched off on this console (-no_custom)");
    }
    if (!request.dry_run && this.#queue.length >= ACTIONS_QUEUED_MAX) {
      throw new ActionRefusal("busy", `${ACTIONS_QUEUED_MAX} actions wait already`);
    }
  }

  /** Writes the audit line, then the record; the action runs only after both (E-03). */
  async #writeDown(job: Job): Promise<void> {
    try {
      await this.#deps.audit("action.start", job);
    } catch (cause) {
      throw new ActionRefusal("unrecorded", "the audit log cannot be written; nothing was run", { cause });
    }
    try {
      if (!(await this.#saver.saveRest())) throw new Error("what ended before could not be written");
      await this.#deps.history.put(job.record);
    } catch (cause) {
      this.#unwritten(job.record.id, cause);
      throw new ActionRefusal("unrecorded", "the history of actions cannot be written; nothing was run", {
        cause,
      });
    }
  }

  async #dryRun(record: ActionRecord): Promise<TakenAction> {
    const now = unixSeconds(this.#deps.clock);
    const targets = record.targets.map((target) => ({ ...target, state: "skipped" as const }));
    const shown: ActionRecord = { ...record, state: "succeeded", started_at: now, finished_at: now, targets };
    await this.#deps.history.put(shown).catch((cause: unknown) => {
      throw new ActionRefusal("unrecorded", "the history of actions cannot be written", { cause });
    });
    return { record: shown, done: Promise.resolve(shown) };
  }

  #known(isMeant: (record: ActionRecord) => boolean): TakenAction | undefined {
    const record = this.list().find((each) => each.state !== "rejected" && isMeant(each));
    if (record === undefined) return undefined;
    return { record, done: this.#jobs.get(record.id)?.done.promise ?? Promise.resolve(record) };
  }

  #dropCancelled(): void {
    for (const job of this.#queue.splice(0)) {
      if (job.abort.signal.aborted) void this.#run(job);
      else this.#queue.push(job);
    }
  }

  /** Never rejects: a full disk keeps no action from its end. */
  async #auditEnd(action: AuditedAction): Promise<void> {
    await this.#deps.audit("action.end", action).catch((error: unknown) => {
      this.#deps.log.error("action_end_not_audited", { id: action.record.id, error: errorText(error) });
    });
  }

  #startNext(): void {
    while (this.#active < ACTIONS_ACTIVE_MAX) {
      const job = this.#queue.shift();
      if (job === undefined) return;
      this.#renewLock(job);
      void this.#run(job);
    }
  }

  /** The locks' time starts anew with the action, however long it has waited. */
  #renewLock(job: Job): void {
    const ids = job.nodes.map(({ node }) => node.id);
    job.release();
    const lock = this.#deps.locks.acquire(job.record.id, ids, wholeLimitMs(job.nodes, job.order));
    if (lock.isHeld) job.release = lock.release;
    // Its locks have expired in the queue, and another action has its nodes.
    else job.abort.abort();
  }

  async #run(job: Job): Promise<void> {
    const { clock, openMaintenance, log, events } = this.#deps;
    this.#active++;
    const ids = job.nodes.map(({ node }) => node.id);
    const untilWallMs = clock.wallMs() + wholeLimitMs(job.nodes, job.order);
    const closeMaintenance = job.isStep
      ? (): void => undefined
      : openMaintenance(ids, untilWallMs, `${job.record.action} (action ${job.record.id})`);
    try {
      await runJob(job, this.#deps, () => this.#saver.save(job));
    } catch (error) {
      log.error("action_failed_within", { id: job.record.id, error: errorText(error) });
      finishRecord(job, clock);
    }
    closeMaintenance();
    job.release();
    const isSaved = await this.#saver.saveEnd(job);
    await this.#auditEnd(job);
    const record = isSaved ? (this.#deps.history.find(job.record.id) ?? job.record) : job.record;
    this.#active--;
    job.done.resolve(record);
    this.#startNext();
    events.onEnd(record);
    await job.output?.told;
    events.onDone(record, job.output?.newest ?? 0);
    // An end that is not on disk yet is answered from memory.
    if (isSaved) this.#jobs.delete(job.record.id);
    await this.#prune();
  }

  #unwritten(id: string, error: unknown): void {
    this.#deps.log.error("action_not_recorded", { id, error: errorText(error) });
  }

  async #prune(): Promise<void> {
    const { history, outputs } = this.#deps;
    await outputs
      .prune(() => history.known())
      .catch((error: unknown) => {
        this.#deps.log.warn("action_output_not_pruned", { error: errorText(error) });
      });
  }
}

const STOPS = "the console stops";
