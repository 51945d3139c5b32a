// Runs one rollout: checks, then each wave with a gate; stops at the first failure (spec 4.7, D7).
import type { Clock } from "#base/clock.ts";
import { errorText, type Logger } from "#base/log.ts";
import type { Random } from "#base/random.ts";
import { ulid } from "#base/ulid.ts";
import type { ActionRecord } from "#wire/webapi/action-record.ts";
import type { ActionRequest } from "#wire/webapi/action-request.ts";
import type { RolloutRecord } from "#wire/webapi/rollout.ts";
import { ACTION_LIMIT_SECONDS, GIT_BEFORE } from "./action-arguments.ts";
import { ACTION_PARALLEL_DEFAULT, runBatch } from "./action-batch.ts";
import type { TakenAction } from "./action-engine.ts";
import {
  type ActionOperator,
  type JobNode,
  NODE_LOCK_GRACE_MS,
  type RecordTarget,
  unixSeconds,
} from "./action-job.ts";
import type { TargetRunner } from "./action-run.ts";
import { type NodePulse, passGate, ROLLOUT_CHECK_LIMIT_MS } from "./rollout-gate.ts";
import {
  GIT_CHANGES,
  goesBack,
  isCommit,
  type RolloutEntry,
  type RolloutNode,
  type RolloutStep,
  stepRequest,
} from "./rollout-plan.ts";

/** Dependencies of a running rollout. */
export interface RolloutRunDeps {
  readonly clock: Clock;
  readonly random: Random;
  readonly log: Logger;
  readonly runner: TargetRunner;
  readonly pulse: NodePulse;
  /** Runs one step as an action on nodes that the rollout has locked. Throws ActionRefusal. */
  readonly takeStep: (
    request: ActionRequest,
    nodes: readonly JobNode[],
    operator: ActionOperator,
    signal: AbortSignal,
  ) => Promise<TakenAction>;
  /** Opens a maintenance window; the returned function closes it. */
  readonly openMaintenance: (nodeIds: readonly string[], untilWallMs: number, reason: string) => () => void;
  /** Saves each state; resolves when it is on stable storage. */
  readonly save: (record: RolloutRecord) => Promise<void>;
  /** Unlocks its nodes; called before its end is visible. */
  readonly release: () => void;
}

/** The reason why a rollout was stopped from outside. */
export type RolloutEnd = "cancelled" | "interrupted";

/** One running rollout. */
export class RolloutRun {
  record: RolloutRecord;
  readonly #deps: RolloutRunDeps;
  readonly #nodes: readonly RolloutNode[];
  readonly #operator: ActionOperator;
  readonly #abort = new AbortController();
  #end: RolloutEnd | undefined;
  /** The first node's new commit: all others must get the same. */
  #commit: string | undefined;

  constructor(
    deps: RolloutRunDeps,
    record: RolloutRecord,
    nodes: readonly RolloutNode[],
    operator: ActionOperator,
  ) {
    this.#deps = deps;
    this.record = record;
    this.#nodes = nodes;
    this.#operator = operator;
  }

  /** Stops the rollout: ends its actions on the nodes and starts no others. */
  stop(end: RolloutEnd): void {
    this.#end ??= end;
    this.#abort.abort();
  }

  /** Runs the rollout to its end; never rejects. The record is final then. */
  async run(): Promise<void> {
    try {
      await this.#check();
      const waves = Math.max(...this.#nodes.map(({ wave }) => wave)) + 1;
      for (let wave = 0; wave < waves && this.#mayGoOn(); wave++) await this.#wave(wave);
    } catch (error) {
      this.#deps.log.error("rollout_failed_within", { id: this.record.id, error: errorText(error) });
      this.#fail("an error of the console ended it; the console's log tells more");
    }
    await this.#finish();
  }

  get #isForward(): boolean {
    return this.record.direction === "forward";
  }

  /** Forward, one failure keeps the rest from a bad commit; back, every other node still goes. */
  #mayGoOn(): boolean {
    return !this.#abort.signal.aborted && !(this.#isForward && this.record.reason !== undefined);
  }

  #entry(id: string): RolloutEntry | undefined {
    return this.record.nodes.find((node) => node.node_id === id);
  }

  /** The nodes of a wave that have not failed. */
  #going(wave: number): RolloutNode[] {
    return this.#nodes.filter((each) => {
      const state = this.#entry(each.node.id)?.state;
      return each.wave === wave && (state === "pending" || state === "running");
    });
  }

  /** Reads all nodes: one that cannot be reached or brought back stops the rollout before any change. */
  async #check(): Promise<void> {
    const { signal } = this.#abort;
    const order = { maxParallel: ACTION_PARALLEL_DEFAULT, stopsOnFailure: false };
    await runBatch(this.#nodes, order, signal, async (each) => {
      const { id } = each.node;
      const { commit, problem } = await this.#look(each);
      if (signal.aborted) return false;
      if (problem === undefined) this.#set(id, { commit_before: commit });
      else this.#failNode(id, "check", problem);
      return true;
    });
    await this.#save();
  }

  async #look({ node, check }: RolloutNode): Promise<{ commit: string; problem?: string }> {
    const { runner, clock, random } = this.#deps;
    let said = "";
    const result = await runner.run(node, check, {
      actionId: `look-${ulid(clock, random)}`,
      timeoutMs: ROLLOUT_CHECK_LIMIT_MS,
      signal: this.#abort.signal,
      onOutput: (_stream, bytes) => {
        said = (said + bytes.toString("utf8")).slice(-500);
      },
    });
    const { [GIT_BEFORE]: commit = "", [GIT_CHANGES]: changes = "" } = result.captured;
    if (result.state !== "succeeded" || !isCommit(commit)) {
      const why = result.message ?? lastLine(said) ?? result.state.replaceAll("_", " ");
      return { commit, problem: `the commit of ${node.repository} cannot be read: ${why}` };
    }
    if (!this.#isForward || changes === "") return { commit };
    const count = changes.split("\n").length;
    const what = count === 1 ? "a change" : "changes";
    return {
      commit,
      problem: `${node.repository} has ${what} of its own (keep with 'git stash'): ${lastLine(changes)}`,
    };
  }

  async #wave(wave: number): Promise<void> {
    const begun = this.#going(wave);
    const source = this.#isForward ? "pull" : "back";
    for (const { node } of begun) {
      const rate = this.#deps.pulse.look(node.id)?.errorsPerSecond ?? null;
      this.#set(node.id, {
        state: "running",
        started_at: unixSeconds(this.#deps.clock),
        errors_per_second_before: rate === null ? null : Math.round(rate * 1_000) / 1_000,
        changed: true,
        step: source,
      });
    }
    if (begun.length === 0 || !(await this.#isWritten())) return;
    await this.#act(wave, source, (node, target) => this.#sourceProblem(node, target));
    if (!this.#mayGoOn()) return;
    await this.#act(wave, "build");
    if (!this.#mayGoOn()) return;
    const going = this.#going(wave);
    const ids = going.map(({ node }) => node.id);
    if (ids.length === 0) return;
    const { health_seconds: healthS, observe_seconds: observeS } = this.record.request.gates;
    const lastsMs = (ACTION_LIMIT_SECONDS.restart + healthS + observeS) * 1_000 + NODE_LOCK_GRACE_MS;
    const untilMs = this.#deps.clock.wallMs() + lastsMs;
    const closeMaintenance = this.#deps.openMaintenance(ids, untilMs, `rollout ${this.record.id}`);
    try {
      const looks = new Map(ids.map((id) => [id, this.#deps.pulse.look(id)]));
      const restartBeganMs = this.#deps.clock.steadyMs();
      await this.#act(wave, "restart");
      if (this.#mayGoOn()) await this.#gate(wave, { looks, restartBeganMs });
    } finally {
      closeMaintenance();
    }
  }

  /** Saves the commits to go back to; without them nothing is changed. */
  async #isWritten(): Promise<boolean> {
    try {
      await this.#put();
      return true;
    } catch (error) {
      this.#deps.log.error("rollout_not_recorded", { id: this.record.id, error: errorText(error) });
      for (const { node_id: id, step, state } of this.record.nodes) {
        const isNext = state === "running" && (step === "pull" || step === "back");
        if (isNext) this.#set(id, { state: "unfinished", changed: false });
      }
      this.#fail("it cannot be written down, so that nothing more was done");
      this.#abort.abort();
      return false;
    }
  }

  /** Runs one step on all remaining nodes of a wave, as one action. */
  async #act(
    wave: number,
    step: RolloutStep,
    problemOf: (node: RolloutNode, target: RecordTarget) => string | undefined = () => undefined,
  ): Promise<void> {
    const going = this.#going(wave);
    if (going.length === 0) return;
    const ids = going.map(({ node }) => node.id);
    for (const id of ids) this.#set(id, { step });
    const record = await this.#action(going, step, ids);
    if (record === undefined) return;
    for (const each of going) {
      const target = record.targets.find((one) => one.node_id === each.node.id);
      if (target === undefined) continue;
      if (target.state === "cancelled" && this.#abort.signal.aborted) continue;
      const problem = target.state === "succeeded" ? problemOf(each, target) : words(target);
      if (problem === undefined) continue;
      this.#failNode(each.node.id, step, problem);
      if (step === "pull" && (await this.#isUntouched(each))) this.#set(each.node.id, { changed: false });
    }
    await this.#save();
  }

  /** Whether a failed pull has changed nothing; a node that does not answer counts as changed. */
  async #isUntouched(each: RolloutNode): Promise<boolean> {
    const { commit, problem } = await this.#look(each);
    return problem === undefined && commit === this.#entry(each.node.id)?.commit_before;
  }

  async #action(
    going: readonly RolloutNode[],
    step: RolloutStep,
    ids: string[],
  ): Promise<ActionRecord | undefined> {
    const comment = `rollout ${this.record.id}`;
    const request = stepRequest(step, this.record.request, { nodes: ids, comment });
    const nodes = going.flatMap(({ node, plans }): JobNode[] => {
      const plan = plans.find((each) => each.step === step)?.plan;
      return plan === undefined ? [] : [{ node, plan }];
    });
    try {
      const taken = await this.#deps.takeStep(request, nodes, this.#operator, this.#abort.signal);
      for (const id of ids) {
        const steps = this.#entry(id)?.steps ?? [];
        const begun = steps.map((each) =>
          each.step === step ? { ...each, action_id: taken.record.id } : each,
        );
        this.#set(id, { steps: begun });
      }
      await this.#save();
      return await taken.done;
    } catch (error) {
      if (this.#abort.signal.aborted) return undefined;
      for (const id of ids) this.#failNode(id, step, errorText(error));
      await this.#save();
      return undefined;
    }
  }

  /** The reason why a working copy is not at the intended commit, which is the same for all nodes. */
  #sourceProblem({ node, commit }: RolloutNode, target: RecordTarget): string | undefined {
    const after = target.git_after;
    if (!isCommit(after)) return "git did not tell the commit afterwards";
    this.#set(node.id, { commit_after: after });
    if (commit !== undefined) return after === commit ? undefined : `it is at ${after} instead of ${commit}`;
    this.#commit ??= after;
    if (after === this.#commit) return undefined;
    const short = (name: string): string => name.slice(0, 12);
    return (
      `it got the commit ${short(after)}, and the first node ${short(this.#commit)}: ` +
      "the branch has moved on, and nothing else was done here"
    );
  }

  async #gate(
    wave: number,
    restart: {
      readonly looks: ReadonlyMap<string, ReturnType<NodePulse["look"]>>;
      readonly restartBeganMs: number;
    },
  ): Promise<void> {
    const going = this.#going(wave);
    for (const { node } of going) this.#set(node.id, { step: "gate" });
    await this.#save();
    const cut = new AbortController();
    const signal = AbortSignal.any([this.#abort.signal, cut.signal]);
    const restartedMs = this.#deps.clock.steadyMs();
    await Promise.all(
      going.map(async ({ node, restartsFileServer }) => {
        const { id } = node;
        const result = await passGate(this.#deps, {
          nodeId: id,
          gates: this.record.request.gates,
          restartBeganMs: restart.restartBeganMs,
          restartedMs,
          restartsFileServer,
          before: restart.looks.get(id),
          errorsPerSecondBefore: this.#entry(id)?.errors_per_second_before ?? null,
          signal,
        });
        if (result === undefined) return;
        const { message, errorsPerSecond, commit } = result;
        this.#set(id, {
          ...(errorsPerSecond === undefined ? {} : { errors_per_second_after: errorsPerSecond }),
          ...(commit === undefined ? {} : { commit_running: commit }),
        });
        if (message === undefined) {
          this.#set(id, { state: "succeeded", finished_at: unixSeconds(this.#deps.clock) });
        } else {
          this.#failNode(id, "gate", message);
          if (this.#isForward) cut.abort();
        }
        await this.#save();
      }),
    );
  }

  #failNode(id: string, step: RolloutStep | "check" | "gate", message: string): void {
    this.#set(id, { state: "failed", step, message, finished_at: unixSeconds(this.#deps.clock) });
    this.#fail(`${id}, ${step}: ${message}`);
  }

  /** Sets the rollout's reason, once; the reasons of other nodes are in their entries. */
  #fail(reason: string): void {
    this.record = { ...this.record, reason: this.record.reason ?? reason };
  }

  async #finish(): Promise<void> {
    this.#deps.release();
    const end = this.#end;
    const finishedAt = unixSeconds(this.#deps.clock);
    const nodes = this.record.nodes.map((node): RolloutEntry => {
      if (node.state === "pending") return { ...node, state: "skipped" };
      if (node.state !== "running") return node;
      return { ...node, state: end === "cancelled" ? "cancelled" : "unfinished", finished_at: finishedAt };
    });
    const failed = this.record.reason !== undefined;
    const isCut = nodes.some(({ state }) => state !== "succeeded" && state !== "failed");
    const state = end !== undefined && isCut ? end : failed ? "failed" : "succeeded";
    const reason = this.record.reason ?? (state === "succeeded" ? undefined : ENDS[state]);
    this.record = {
      ...this.record,
      state,
      ...(reason === undefined ? {} : { reason }),
      finished_at: finishedAt,
      can_go_back: nodes.some(goesBack),
      nodes,
    };
    await this.#save();
  }

  #set(id: string, change: Partial<RolloutEntry>): void {
    const nodes = this.record.nodes.map((node) => (node.node_id === id ? { ...node, ...change } : node));
    this.record = { ...this.record, nodes };
  }

  async #save(): Promise<void> {
    await this.#put().catch((error: unknown) => {
      this.#deps.log.error("rollout_not_recorded", { id: this.record.id, error: errorText(error) });
    });
  }

  #put(): Promise<void> {
    this.record = { ...this.record, seq: this.record.seq + 1 };
    return this.#deps.save(this.record);
  }
}

const ENDS: Readonly<Record<string, string>> = {
  cancelled: "an operator ended it",
  interrupted: "the console was stopped in the middle of it",
  failed: "it was ended",
};

/** The end of a step, as a sentence. */
function words({ state, message, exit_code: code, signal, stderr }: RecordTarget): string {
  if (message !== undefined) return message;
  const said = lastLine(stderr);
  const how = signal ?? (code === null ? state.replaceAll("_", " ") : `exit code ${code}`);
  return said === undefined ? how : `${how}: ${said}`;
}

function lastLine(text: string): string | undefined {
  return text
    .split("\n")
    .map((line) => line.trim())
    .findLast((line) => line !== "")
    ?.slice(0, 300);
}
