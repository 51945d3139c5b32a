// Runs one action on its nodes, batch by batch, and keeps its record up to date (spec 4.7, D7, T14).
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

/** Interval of a node's health checks before the next node starts. */
export const HEALTH_GATE_INTERVAL_MS = 1_000;

/** Outcome of an action without a console: an exit code, none, live processes, or possibly live ones. */
export type SettledTarget =
  | { readonly state: "ended"; readonly exitCode: number; readonly bootId: string }
  | { readonly state: "none" | "running"; readonly bootId: string }
  | { readonly state: "unknown"; readonly message: string };

/** Runs steps on nodes. */
export interface TargetRunner {
  /** A node's failure is a result; the promise never rejects for it. */
  run(node: SshNode, steps: readonly RemoteStep[], options: TargetRunOptions): Promise<TargetResult>;
  /** Reads the outcome of an earlier console's action on a node; `end` also ends its processes. */
  settle(node: SshNode, actionId: string, mode: "look" | "end"): Promise<SettledTarget>;
  /** Whether the node's service answers as healthy. */
  isHealthy(nodeId: string, signal: AbortSignal): Promise<boolean>;
}

/** Listeners for the events of actions. None may throw. */
export interface ActionEvents {
  onState(record: ActionRecord, seq: number): void;
  onOutput(id: string, entry: OutputEntry): void;
  /** An action has ended; output may follow. */
  onEnd(record: ActionRecord): void;
  /** An action has ended and its last output is sent. */
  onDone(record: ActionRecord, seq: number): void;
}

/** Dependencies of a run. */
export interface ActionRunDeps {
  readonly clock: Clock;
  readonly log: Logger;
  readonly outputs: OutputStore;
  readonly runner: TargetRunner;
  readonly events: ActionEvents;
}

/**
 * Runs a job to its end; `save` writes its record. The record is final then, and the output is in its file.
 */
export async function runJob(job: Job, deps: ActionRunDeps, save: () => Promise<void>): Promise<void> {
  const { clock } = deps;
  /** Resolves once the change is on stable storage, or could not be written. */
  const change = (): Promise<void> => {
    deps.events.onState(job.record, job.output?.newest ?? 0);
    return save().catch((error: unknown) => {
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
  void change();
  const turn = new Turn(job, deps, change, save);
  // The console's own restart comes last; the next console reports its outcome (T14).
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

/** Gives the record its final state; nodes without a result become unknown. */
export function finishRecord(job: Job, clock: Clock): void {
  const { output } = job;
  const targets = job.record.targets.map((target): RecordTarget => {
    const isOpen = target.state === "running" || target.state === "pending";
    const fields = outputFields(job, target.node_id);
    return {
      ...target,
      ...fields,
      // A truncated output stays marked.
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

/** Opens the output file. An action runs without one too: its record has the ends of its output. */
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

/** One node's run. */
class Turn {
  readonly #job: Job;
  readonly #deps: ActionRunDeps;
  readonly #change: () => Promise<void>;
  readonly #save: () => Promise<void>;

  constructor(job: Job, deps: ActionRunDeps, change: () => Promise<void>, save: () => Promise<void>) {
    this.#job = job;
    this.#deps = deps;
    this.#change = change;
    this.#save = save;
  }

  /** Runs the plan; true on success. */
  async run({ node, plan }: JobNode): Promise<boolean> {
    const { clock } = this.#deps;
    // What the record does not name, the console after a killed one does not end (D7).
    await this.#set(node.id, { state: "running", started_at: unixSeconds(clock) });
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
    void this.#set(node.id, { ...output, ...cut, ...resultFields(result), finished_at: unixSeconds(clock) });
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
    // The next console reports the end; this one never resolves.
    if (this.#job.isLetGo) return await new Promise<never>(() => undefined);
    // This console was not restarted, or the restart failed: the action goes on here.
    this.#job.record = { ...this.#job.record, state: "running" };
    return last;
  }

  /** Records the boot id, by which the next console recognises a reboot of the host. */
  async #noteBootId(node: SshNode): Promise<void> {
    const trace = await this.#deps.runner.settle(node, ownPart(this.#job.record.id), "look");
    if (trace.state !== "unknown") changeTarget(this.#job, node.id, { boot_id_before: trace.bootId });
  }

  /** Hands the record to the next console; nothing is restarted before that is on stable storage. */
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

  /** Fails a node that is not healthy within its time (D7). */
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

  #set(nodeId: string, change: Partial<RecordTarget>): Promise<void> {
    changeTarget(this.#job, nodeId, change);
    return this.#change();
  }
}
