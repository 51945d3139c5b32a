// Runs one action on its nodes, turn by turn, and keeps its record true while it does (spec 4.7, D7, T14).
import type { FileHandle } from "node:fs/promises";
import type { Clock } from "#base/clock.ts";
import { errorText, type Logger } from "#base/log.ts";
import type { SshNode } from "#base/ssh-node.ts";
import { pause } from "#base/waiting.ts";
import type { ActionRecord } from "#wire/webapi/action-record.ts";
import { runBatch } from "./action-batch.ts";
import {
  changeTarget,
  finalState,
  type Job,
  type JobNode,
  joined,
  ownPart,
  type RecordTarget,
  resultFields,
  unixSeconds,
  worstExitCode,
} from "./action-job.ts";
import { ActionOutput, type OutputEntry } from "./action-output.ts";
import type { OutputStore } from "./output-store.ts";
import type { RemoteStep } from "./remote-step.ts";
import type { TargetResult, TargetRunOptions } from "./target-run.ts";

/** How often a node is asked for its health before the next one has its turn. */
export const HEALTH_GATE_INTERVAL_MS = 1_000;

/** What became of an action that nobody listened to: its exit code, nothing, processes that run, or that may run. */
export type SettledTarget =
  | { readonly state: "ended"; readonly exitCode: number; readonly bootId: string }
  | { readonly state: "none" | "running"; readonly bootId: string }
  | { readonly state: "unknown"; readonly message: string };

/** Brings steps to nodes. */
export interface TargetRunner {
  /** Never rejects for what a node does. */
  run(node: SshNode, steps: readonly RemoteStep[], options: TargetRunOptions): Promise<TargetResult>;
  /** Tells what became of an action of an earlier console on a node; `end` also ends what still runs of it. */
  settle(node: SshNode, actionId: string, mode: "look" | "end"): Promise<SettledTarget>;
  /** Whether the node's service answers as healthy. */
  isHealthy(nodeId: string, signal: AbortSignal): Promise<boolean>;
}

/** Who is told of actions. None of these may throw. */
export interface ActionEvents {
  onState(record: ActionRecord, seq: number): void;
  onOutput(id: string, entry: OutputEntry): void;
  /** An action is over; its output may still be on its way. */
  onEnd(record: ActionRecord): void;
  /** The same, after its last output. */
  onDone(record: ActionRecord, seq: number): void;
}

/** What running needs. */
export interface ActionRunDeps {
  readonly clock: Clock;
  readonly log: Logger;
  readonly outputs: OutputStore;
  readonly runner: TargetRunner;
  readonly events: ActionEvents;
}

/** Runs a job to its end; `save` writes its record. The record is finished then, and its output is in its file. */
export async function runJob(job: Job, deps: ActionRunDeps, save: () => Promise<void>): Promise<void> {
  const { clock } = deps;
  const change = (): void => {
    deps.events.onState(job.record, job.output?.newest ?? 0);
    save().catch((error: unknown) => {
      deps.log.error("action_not_recorded", { id: job.record.id, error: errorText(error) });
    });
  };
  job.output = new ActionOutput({
    clock,
    file: await outputFile(job, deps),
    onEntry: (entry) => deps.events.onOutput(job.record.id, entry),
    onFailure: (error) =>
      deps.log.error("action_output_failed", { id: job.record.id, error: errorText(error) }),
  });
  job.record = { ...job.record, state: "running", started_at: unixSeconds(clock) };
  change();
  const turn = new Turn(job, deps, change, save);
  // The console's own restart comes last of all: what follows it is told by the next one (T14).
  const others = job.nodes.filter(({ plan }) => plan.consoleStep === undefined);
  const own = job.nodes.filter(({ plan }) => plan.consoleStep !== undefined);
  const left = await runBatch(others, job.order, job.abort.signal, (item) => turn.run(item));
  const mayGoOn = left.length === 0 && !(job.order.stopsOnFailure && hasFailed(job));
  const leftOwn = mayGoOn
    ? await runBatch(own, { ...job.order, maxParallel: 1 }, job.abort.signal, (item) => turn.run(item))
    : own;
  for (const { node } of [...left, ...leftOwn]) {
    changeTarget(job, node.id, { state: job.abort.signal.aborted ? "cancelled" : "skipped" });
  }
  await job.output.finish();
  finishRecord(job, clock);
  deps.events.onState(job.record, job.output.newest);
}

/** Gives the record its last state; of nodes about which nothing is known it says so. */
export function finishRecord(job: Job, clock: Clock): void {
  const { output } = job;
  const targets = job.record.targets.map((target): RecordTarget => {
    const isOpen = target.state === "running" || target.state === "pending";
    const fields = outputFields(job, target.node_id);
    return {
      ...target,
      ...fields,
      // What was lost on the way stays lost.
      truncated: target.truncated || fields.truncated === true,
      ...(isOpen ? { state: "unknown" as const } : {}),
    };
  });
  job.record = {
    ...job.record,
    targets,
    state: finalState(targets, job.abort.signal.aborted),
    finished_at: unixSeconds(clock),
    exit_code: worstExitCode(targets),
    stdout: output === undefined ? "" : joined(targets, "stdout"),
    stderr: output === undefined ? "" : joined(targets, "stderr"),
  };
}

/** Without a file the action runs all the same: its record has the ends of its output. */
async function outputFile(job: Job, { outputs, log }: ActionRunDeps): Promise<FileHandle | undefined> {
  try {
    return await outputs.create(job.record.id);
  } catch (error) {
    log.error("action_output_failed", { id: job.record.id, error: errorText(error) });
    return undefined;
  }
}

function outputFields(job: Job, nodeId: string): Partial<RecordTarget> {
  if (job.output === undefined) return {};
  const [stdout, stderr] = [job.output.endOf(nodeId, "stdout"), job.output.endOf(nodeId, "stderr")];
  return { stdout: stdout.text, stderr: stderr.text, truncated: stdout.isCut || stderr.isCut };
}

function hasFailed({ record }: Job): boolean {
  return record.targets.some(({ state }) => state !== "pending" && state !== "succeeded");
}

/** The turn of one node. */
class Turn {
  readonly #job: Job;
  readonly #deps: ActionRunDeps;
  readonly #change: () => void;
  readonly #save: () => Promise<void>;

  constructor(job: Job, deps: ActionRunDeps, change: () => void, save: () => Promise<void>) {
    this.#job = job;
    this.#deps = deps;
    this.#change = change;
    this.#save = save;
  }

  /** Whether it went well. */
  async run({ node, plan }: JobNode): Promise<boolean> {
    const { clock } = this.#deps;
    this.#set(node.id, { state: "running", started_at: unixSeconds(clock) });
    const endsMs = clock.steadyMs() + plan.limitSeconds * 1_000;
    let result: TargetResult;
    try {
      result = await this.#steps({ node, plan }, endsMs);
      if (result.state === "succeeded") result = await this.#gate(node.id, result);
    } catch (error) {
      this.#deps.log.error("action_target_failed", { node_id: node.id, error: errorText(error) });
      const message = "an error of the console; its log tells more";
      result = { state: "unknown", exitCode: null, captured: {}, message, isOutputCut: true };
    }
    const cut = result.isOutputCut ? { truncated: true } : {};
    const output = outputFields(this.#job, node.id);
    this.#set(node.id, { ...output, ...cut, ...resultFields(result), finished_at: unixSeconds(clock) });
    return result.state === "succeeded";
  }

  async #steps({ node, plan }: JobNode, endsMs: number): Promise<TargetResult> {
    const { steps, consoleStep } = plan;
    if (consoleStep === undefined)
      return await this.#run(node, steps, { endsMs, expectsReboot: plan.expectsReboot });
    if (consoleStep > 0) {
      const before = await this.#run(node, steps.slice(0, consoleStep), { endsMs, expectsReboot: false });
      if (before.state !== "succeeded") return before;
    }
    if (plan.expectsReboot) await this.#noteBootId(node);
    await this.#handOver();
    const { expectsReboot } = plan;
    const actionId = ownPart(this.#job.record.id);
    const last = await this.#run(node, steps.slice(consoleStep), { endsMs, expectsReboot, actionId });
    // The next console tells the end; here there is none any more.
    if (this.#job.isLetGo) return await new Promise<never>(() => undefined);
    // It was not this console that was restarted, or the restart failed: the action goes on here.
    this.#job.record = { ...this.#job.record, state: "running" };
    return last;
  }

  /** So that the next console can tell a new start of the host from the old one. */
  async #noteBootId(node: SshNode): Promise<void> {
    const trace = await this.#deps.runner.settle(node, ownPart(this.#job.record.id), "look");
    if (trace.state !== "unknown") changeTarget(this.#job, node.id, { boot_id_before: trace.bootId });
  }

  /** From here on the next console tells how it ended; without that on stable storage nothing is restarted. */
  async #handOver(): Promise<void> {
    this.#job.record = { ...this.#job.record, state: "handed_over" };
    this.#deps.events.onState(this.#job.record, this.#job.output?.newest ?? 0);
    await this.#save();
  }

  #run(
    node: SshNode,
    steps: readonly RemoteStep[],
    {
      endsMs,
      expectsReboot,
      actionId = this.#job.record.id,
    }: { readonly endsMs: number; readonly expectsReboot: boolean; readonly actionId?: string },
  ): Promise<TargetResult> {
    const { runner, clock } = this.#deps;
    const { output, abort } = this.#job;
    return runner.run(node, steps, {
      actionId,
      timeoutMs: Math.max(1, endsMs - clock.steadyMs()),
      signal: abort.signal,
      onOutput: (stream, bytes) => output?.append(node.id, stream, bytes),
      ...(expectsReboot
        ? { expectsReboot: { isHealthy: (signal: AbortSignal) => runner.isHealthy(node.id, signal) } }
        : {}),
    });
  }

  /** A node that does not get healthy within its time counts as failed (D7). */
  async #gate(nodeId: string, result: TargetResult): Promise<TargetResult> {
    const { healthGateSeconds } = this.#job.order;
    if (healthGateSeconds === 0) return result;
    const { clock, runner } = this.#deps;
    const { signal } = this.#job.abort;
    const endMs = clock.steadyMs() + healthGateSeconds * 1_000;
    for (;;) {
      if (signal.aborted) return { ...result, state: "cancelled" };
      if (await runner.isHealthy(nodeId, signal).catch(() => false)) return result;
      if (clock.steadyMs() >= endMs) break;
      await pause(clock, HEALTH_GATE_INTERVAL_MS);
    }
    const message = `${nodeId} was not healthy within ${healthGateSeconds} seconds`;
    return { ...result, state: "failed", reason: "NOT_HEALTHY", message };
  }

  #set(nodeId: string, change: Partial<RecordTarget>): void {
    changeTarget(this.#job, nodeId, change);
    this.#change();
  }
}
