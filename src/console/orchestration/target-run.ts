// Runs one action on one node: sends it, reads its output, ends it on time, and determines the outcome.
import { constants } from "node:os";
import { pause } from "#base/waiting.ts";
import { runScript } from "./remote-script.ts";
import { newScriptSecret, REMOTE_LINGER_MS, RemoteSession, type SessionEnd } from "./remote-session.ts";
import type { RemoteStep } from "./remote-step.ts";
import type { SshConnection } from "./ssh-command.ts";
import { complaintLine } from "./ssh-refusal.ts";
import { checkSshTarget, type SshTarget } from "./ssh-target.ts";
import { scriptSubject, type TargetDeps, type TargetTrace, traceOnTarget } from "./target-trace.ts";

/** Time for which a lost node is retried in the middle of an action; then its state is unknown. */
const REMOTE_LOST_PATIENCE_MS = 60_000;
/** Interval of those retries, and of those after a reboot. */
const REMOTE_LOST_INTERVAL_MS = 2_000;

/** Outcome of an action on one node. `unknown`: whether it still runs, or how it ended, could not be read. */
export type TargetState = "succeeded" | "failed" | "unreachable" | "timed_out" | "cancelled" | "unknown";

/** The reason why a node was not reached, or its outcome is unknown. */
export type TargetReason =
  | "HOST_KEY_CHANGED"
  | "KEY_FILE_UNSAFE"
  | "KEY_REFUSED"
  | "CONNECT_FAILED"
  | "CONNECTION_LOST"
  | "NOT_STARTED"
  | "PROCESSES_LEFT"
  | "NO_NEW_BOOT"
  | "NOT_HEALTHY";

/** The result of one action on one node. */
export interface TargetResult {
  readonly state: TargetState;
  /** Of the failed step, or of the last one; null when unknown, or when nothing ran. */
  readonly exitCode: number | null;
  /** The signal that a shell's exit code stands for, as `SIGTERM`. */
  readonly signal?: string;
  /** Index of the step that failed. */
  readonly failedStep?: number;
  /** Output of the steps with `capture`. */
  readonly captured: Readonly<Record<string, string>>;
  readonly bootIdBefore?: string;
  readonly bootIdAfter?: string;
  readonly reason?: TargetReason;
  /** A sentence for people; holds no secret. */
  readonly message?: string;
  /** With HOST_KEY_CHANGED: `SHA256:…` of the pinned key, and of the presented one if known. */
  readonly hostKeys?: { readonly pinned: string; readonly shown?: string };
  /** True when the connection was lost, so that the end of the output may be missing. */
  readonly isOutputCut: boolean;
}

/** Options of a run on a node. */
export interface TargetRunOptions {
  readonly actionId: string;
  /** Time limit, connecting included; then the node's processes are ended. */
  readonly timeoutMs: number;
  /** Cancels: TERM, ten seconds, KILL, and a check for remaining processes. */
  readonly signal?: AbortSignal;
  /**
   * Receives output with the configured secrets masked. A pending promise pauses reading, and the node's
   * program waits.
   */
  readonly onOutput: (stream: "stdout" | "stderr", bytes: Buffer) => void | Promise<void>;
  /** For a reboot: a lost connection is expected, and success needs a new boot id and health. */
  readonly expectsReboot?: { readonly isHealthy: (signal: AbortSignal) => Promise<boolean> };
}

/**
 * Runs an action's steps on a node and resolves to its result; failures of connection and node are results.
 * Rejects only with BAD_ARGUMENT for an invalid target or step, and with the error of `onOutput`, after
 * ending the processes.
 */
export async function runOnTarget(
  deps: TargetDeps,
  target: SshTarget,
  steps: readonly RemoteStep[],
  options: TargetRunOptions,
): Promise<TargetResult> {
  checkSshTarget(target);
  const run = new TargetRun(deps, target, steps, options);
  try {
    return await run.run();
  } finally {
    run.close();
  }
}

/** The states of a stopped action. */
type Stop = "timed_out" | "cancelled";
type Facts = Omit<TargetResult, "captured" | "isOutputCut" | "bootIdBefore" | "bootIdAfter">;

class TargetRun {
  readonly #deps: TargetDeps;
  readonly #target: SshTarget;
  readonly #options: TargetRunOptions;
  readonly #secret = newScriptSecret();
  readonly #script: string;
  readonly #stop = new AbortController();
  readonly #cleanUps: (() => void)[] = [];
  #why: Stop = "cancelled";
  #session: RemoteSession | undefined;
  #bootIdBefore: string | undefined;
  #bootIdAfter: string | undefined;
  #isOutputCut = false;

  constructor(deps: TargetDeps, target: SshTarget, steps: readonly RemoteStep[], options: TargetRunOptions) {
    this.#deps = deps;
    this.#target = target;
    this.#options = options;
    this.#script = runScript(scriptSubject(deps, target, options.actionId, this.#secret), steps);
    const stop = (why: Stop): void => {
      if (this.#stop.signal.aborted) return;
      this.#why = why;
      this.#stop.abort();
    };
    this.#cleanUps.push(deps.clock.after(options.timeoutMs, () => stop("timed_out")));
    const onAbort = (): void => stop("cancelled");
    if (options.signal?.aborted === true) onAbort();
    options.signal?.addEventListener("abort", onAbort, { once: true });
    this.#cleanUps.push(() => options.signal?.removeEventListener("abort", onAbort));
  }

  close(): void {
    for (const cleanUp of this.#cleanUps) cleanUp();
  }

  async run(): Promise<TargetResult> {
    const facts = await this.#attempt(true);
    const before = this.#bootIdBefore ?? this.#session?.bootId;
    return {
      ...facts,
      captured: trimmed(this.#session?.captured ?? {}),
      ...(before === undefined ? {} : { bootIdBefore: before }),
      ...(this.#bootIdAfter === undefined ? {} : { bootIdAfter: this.#bootIdAfter }),
      isOutputCut: this.#isOutputCut,
    };
  }

  async #attempt(isFirst: boolean): Promise<Facts> {
    const connection = await this.#unlessStopped(
      this.#deps.connections.open(this.#target, this.#stop.signal),
    );
    if (connection === undefined) return { state: this.#why, exitCode: null, reason: "NOT_STARTED" };
    if ("reason" in connection) return { state: "unreachable", exitCode: null, ...connection };
    try {
      const session = this.#start(connection);
      const end = await this.#unlessStopped(session.ended);
      if (end === undefined) return await this.#endThere();
      if (end.kind === "unheard") {
        await this.#endThere();
        throw end.error;
      }
      if (end.kind === "lost") {
        connection.drop();
        // A retry cannot run twice: the second script finds the name taken if the first had begun.
        if (!session.isBegun && isFirst) return await this.#attempt(false);
        if (!session.isBegun) return await this.#neverBegun(end.complaint);
        this.#isOutputCut = true;
      }
      if (end.kind === "refused" && (end.why !== "taken" || isFirst)) return refusedFacts(end.why);
      // An attempt that was lost before its first word may have begun: its file on the node has the boot id.
      this.#bootIdBefore = session.bootId ?? (end.kind === "refused" ? end.bootId : undefined);
      if (this.#isRebooting(end)) return await this.#awaitReboot(connection);
      return end.kind === "ended" ? endedFacts(end.exitCode, end.failedStep) : await this.#findAgain();
    } finally {
      connection.release();
    }
  }

  #start(connection: SshConnection): RemoteSession {
    const { clock, secrets } = this.#deps;
    const deps = { connection, clock, secrets: secrets(), onOutput: this.#options.onOutput };
    this.#session = new RemoteSession(deps, this.#script, this.#secret);
    return this.#session;
  }

  /** Undefined when the action is to stop; `#why` has the reason. */
  async #unlessStopped<T>(promise: Promise<T>): Promise<T | undefined> {
    const { signal } = this.#stop;
    const { promise: stopped, resolve } = Promise.withResolvers<undefined>();
    const onAbort = (): void => resolve(undefined);
    if (signal.aborted) onAbort();
    signal.addEventListener("abort", onAbort, { once: true });
    try {
      return await Promise.race([stopped, promise]);
    } catch (error) {
      if (signal.aborted) return undefined;
      throw error;
    } finally {
      signal.removeEventListener("abort", onAbort);
    }
  }

  /** Ends the processes and returns the known facts; retries over a new connection when the first is dead. */
  async #endThere(): Promise<Facts> {
    const state = this.#why;
    const ask = (): Promise<TargetTrace> =>
      traceOnTarget(this.#deps, this.#target, { actionId: this.#options.actionId, mode: "end" });
    const first = await ask();
    const trace = first.state === "unreachable" && first.reason === "CONNECTION_LOST" ? await ask() : first;
    const last = await this.#lastWord();
    if (trace.state === "unreachable") {
      this.#isOutputCut = true;
      return {
        state: "unknown",
        exitCode: null,
        reason: trace.reason,
        message: `whether it still runs there is not known: ${trace.message}`,
        ...(trace.hostKeys === undefined ? {} : { hostKeys: trace.hostKeys }),
      };
    }
    if (trace.state === "left") {
      const message = `did not end: ${trace.pids.join(", ")}`;
      return { state: "unknown", exitCode: null, reason: "PROCESSES_LEFT", message };
    }
    const end = last?.kind === "ended" ? last : trace.state === "ended" ? trace : undefined;
    return end === undefined
      ? { state, exitCode: null }
      : { ...endedFacts(end.exitCode, end.failedStep), state };
  }

  /** Waits briefly for output that is under way, then cuts the session. */
  async #lastWord(): Promise<SessionEnd | undefined> {
    const session = this.#session;
    if (session === undefined) return undefined;
    const cancel = this.#deps.clock.after(REMOTE_LINGER_MS, () => session.cut());
    const end = await session.ended;
    cancel();
    return end;
  }

  async #neverBegun(complaint: string): Promise<Facts> {
    const { state } = await traceOnTarget(this.#deps, this.#target, {
      actionId: this.#options.actionId,
      mode: "end",
    });
    const message = `its shell did not begin: ${complaintLine(complaint)}`;
    const isSure = state === "none";
    return { state: isSure ? "failed" : "unknown", exitCode: null, reason: "NOT_STARTED", message };
  }

  /** Reads the outcome after a lost connection, up to the action's time limit. */
  async #findAgain(): Promise<Facts> {
    const { clock } = this.#deps;
    let seenMs = clock.steadyMs();
    for (;;) {
      const trace = await this.#look();
      if (trace === undefined) return await this.#endThere();
      if (trace.state === "ended") {
        return { ...endedFacts(trace.exitCode, trace.failedStep), reason: "CONNECTION_LOST", message: LOST };
      }
      if (trace.state === "running") seenMs = clock.steadyMs();
      else if (trace.state !== "unreachable")
        return unknownFacts("the connection was lost, and so was its exit code");
      else if (trace.reason === "HOST_KEY_CHANGED")
        return { state: "unknown", exitCode: null, ...withoutState(trace) };
      else if (clock.steadyMs() - seenMs > REMOTE_LOST_PATIENCE_MS) return unknownFacts(trace.message);
      await this.#pause();
    }
  }

  #isRebooting(end: SessionEnd): boolean {
    if (this.#options.expectsReboot === undefined) return false;
    // A shell that the shutdown killed is no failure of the step.
    return end.kind !== "ended" || end.exitCode === 0 || end.exitCode > SIGNALLED;
  }

  /** Waits for a new boot id and a healthy service (D7). */
  async #awaitReboot(connection: SshConnection): Promise<Facts> {
    connection.drop();
    const before = this.#bootIdBefore;
    if (before === undefined) return unknownFacts("whether the host has restarted is not known");
    const late = (reason: "NO_NEW_BOOT" | "NOT_HEALTHY", message: string): Facts => ({
      state: this.#why,
      exitCode: null,
      reason,
      message,
    });
    while (this.#bootIdAfter === undefined) {
      const trace = await this.#look();
      if (trace === undefined) return late("NO_NEW_BOOT", "the host was not seen to start again");
      if (trace.state === "unreachable") {
        if (trace.reason === "HOST_KEY_CHANGED")
          return { state: "unreachable", exitCode: null, ...withoutState(trace) };
      } else if (trace.bootId !== before && trace.bootId !== "none") this.#bootIdAfter = trace.bootId;
      if (this.#bootIdAfter === undefined) await this.#pause();
    }
    const isHealthy = this.#options.expectsReboot?.isHealthy ?? (async () => true);
    for (;;) {
      const answer = await this.#unlessStopped(isHealthy(this.#stop.signal).catch(() => false));
      if (answer === true) return { state: "succeeded", exitCode: 0 };
      if (this.#stop.signal.aborted)
        return late("NOT_HEALTHY", "the host started again, but its service is not healthy");
      await this.#pause();
    }
  }

  #look(): Promise<TargetTrace | undefined> {
    const { actionId } = this.#options;
    const { signal } = this.#stop;
    return this.#unlessStopped(traceOnTarget(this.#deps, this.#target, { actionId, mode: "look", signal }));
  }

  #pause(): Promise<void> {
    return pause(this.#deps.clock, REMOTE_LOST_INTERVAL_MS, this.#stop.signal);
  }
}

const LOST = "the connection was lost on the way, and found again; the end of the output may be missing";
/** Exit codes above it stand for the signal that ended a program. */
const SIGNALLED = 128;

function endedFacts(exitCode: number, failedStep: number | undefined): Facts {
  const signal = exitCode > SIGNALLED ? signalName(exitCode - SIGNALLED) : undefined;
  return {
    state: exitCode === 0 ? "succeeded" : "failed",
    exitCode,
    ...(signal === undefined ? {} : { signal }),
    ...(failedStep === undefined ? {} : { failedStep }),
  };
}

function trimmed(facts: Readonly<Record<string, string>>): Record<string, string> {
  return Object.fromEntries(Object.entries(facts).map(([name, text]) => [name, text.trim()]));
}

function signalName(number: number): string | undefined {
  return Object.entries(constants.signals).find(([, value]) => value === number)?.[0];
}

function refusedFacts(why: string): Facts {
  return {
    state: "failed",
    exitCode: null,
    reason: "NOT_STARTED",
    message: REFUSED[why] ?? `refused: ${why}`,
  };
}

const REFUSED: Readonly<Record<string, string>> = {
  taken: "an action of this id is on the node already",
  session: "its shell has no session of its own, so that the action could not be ended",
  place: "neither ~/.grove-actions nor /dev/shm takes the file by which the action could be ended",
};

function unknownFacts(message: string): Facts {
  return { state: "unknown", exitCode: null, reason: "CONNECTION_LOST", message };
}

function withoutState(trace: Extract<TargetTrace, { state: "unreachable" }>): Omit<typeof trace, "state"> {
  const { state: _state, ...rest } = trace;
  return rest;
}
