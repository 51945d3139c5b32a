// The gate after a restart: health, heartbeat, failed operations, each with a limit and a reason (D7).
import type { Clock } from "#base/clock.ts";
import { pause } from "#base/waiting.ts";
import type { RequestedRollout } from "./rollout-plan.ts";

/** Interval of a rollout's checks of a node. */
const ROLLOUT_LOOK_INTERVAL_MS = 1_000;
/** Wait for a watched node's last poll and answer beyond its time: two polls and the duration of one. */
export const ROLLOUT_LAST_POLL_MS = 15_000;
/** Time limit for reading a node's commit before a rollout changes anything. */
export const ROLLOUT_CHECK_LIMIT_MS = 30_000;

/** A node as the console's polls see it. */
export interface NodeLook {
  /** Steady time of the last good poll. */
  readonly answeredMs: number;
  /** Start of its FileServer, in unix seconds by its own clock; null when not reported. */
  readonly startedUnix: number | null;
  /** Failed operations since that start; null when not reported. */
  readonly errors: number | null;
  /** Mean of the last minute. */
  readonly errorsPerSecond: number | null;
  /** The commit that it reports. */
  readonly commit: string | null;
}

/** Reads the state of nodes. */
export interface NodePulse {
  /** Undefined for a node whose FileServer has never answered. */
  look(nodeId: string): NodeLook | undefined;
  /** Whether the FileServer's /health answers; also true for a node without one. */
  isHealthy(nodeId: string, signal: AbortSignal): Promise<boolean>;
}

/** Input of a gate. */
export interface GateRequest {
  readonly nodeId: string;
  readonly gates: RequestedRollout["gates"];
  /** Steady times of the restart's begin and end. */
  readonly restartBeganMs: number;
  readonly restartedMs: number;
  /** True when its FileServer was restarted: the gate needs a new start time. */
  readonly restartsFileServer: boolean;
  /** The node just before the restart. */
  readonly before: NodeLook | undefined;
  /** Failed operations a second before the rollout; null when unknown. */
  readonly errorsPerSecondBefore: number | null;
  readonly signal: AbortSignal;
}

/** Outcome of a gate; `message` is the reason of a failure. Undefined: the signal ended it. */
export interface GateResult {
  readonly message?: string;
  readonly errorsPerSecond?: number | null;
  readonly commit?: string;
}

/** Watches one node until its outcome is known, or the signal ends it; then undefined. Never rejects. */
export async function passGate(
  deps: { readonly clock: Clock; readonly pulse: NodePulse },
  request: GateRequest,
): Promise<GateResult | undefined> {
  const gate = new Gate(deps.clock, deps.pulse, request);
  const sick = await gate.awaitHealth();
  if (request.signal.aborted) return undefined;
  if (sick !== undefined) return gate.result(sick);
  const worse = await gate.observe();
  return request.signal.aborted ? undefined : gate.result(worse);
}

class Gate {
  readonly #clock: Clock;
  readonly #pulse: NodePulse;
  readonly #request: GateRequest;
  #startedUnix: number | null = null;

  constructor(clock: Clock, pulse: NodePulse, request: GateRequest) {
    this.#clock = clock;
    this.#pulse = pulse;
    this.#request = request;
  }

  /** The reason why the node did not become healthy in time. */
  async awaitHealth(): Promise<string | undefined> {
    const { nodeId, gates, restartedMs, signal } = this.#request;
    const endMs = restartedMs + gates.health_seconds * 1_000;
    for (;;) {
      const why = await this.#sickness();
      if (why === undefined || signal.aborted) return undefined;
      if (this.#clock.steadyMs() >= endMs) {
        return `${nodeId} was not well within ${gates.health_seconds} seconds of its restart: ${why}`;
      }
      await pause(this.#clock, ROLLOUT_LOOK_INTERVAL_MS, signal);
    }
  }

  /** The reason why the node is worse than before. */
  async observe(): Promise<string | undefined> {
    const { nodeId, gates, signal, restartedMs } = this.#request;
    const look = this.#pulse.look(nodeId);
    // A node without a FileServer has nothing to observe but its restart.
    if (look === undefined) return undefined;
    this.#startedUnix = look.startedUnix;
    const endMs = this.#clock.steadyMs() + gates.observe_seconds * 1_000;
    const answeredFromMs = gates.observe_seconds === 0 ? restartedMs : endMs;
    for (;;) {
      const why = this.#worse(endMs);
      if (why !== undefined) return why;
      const nowMs = this.#clock.steadyMs();
      const isAnswered = (this.#pulse.look(nodeId)?.answeredMs ?? 0) > answeredFromMs;
      // One late answer of a busy node is no reason to stop a rollout.
      if (nowMs >= endMs && isAnswered && (await this.#isHealthy())) return undefined;
      if (nowMs >= endMs + ROLLOUT_LAST_POLL_MS) {
        return isAnswered
          ? `${nodeId} does not answer /health any more`
          : `${nodeId} stopped to answer polls while it was watched`;
      }
      await pause(this.#clock, ROLLOUT_LOOK_INTERVAL_MS, signal);
      if (signal.aborted) return undefined;
    }
  }

  #isHealthy(): Promise<boolean> {
    const { nodeId, signal } = this.#request;
    return this.#pulse.isHealthy(nodeId, signal).catch(() => false);
  }

  result(message: string | undefined): GateResult {
    const look = this.#pulse.look(this.#request.nodeId);
    const hasAnswered = look !== undefined && look.answeredMs > this.#request.restartedMs;
    const rate = hasAnswered ? this.#errorsSince()?.perSecond : undefined;
    return {
      ...(message === undefined ? {} : { message }),
      ...(rate === undefined ? {} : { errorsPerSecond: Math.round(rate * 1_000) / 1_000 }),
      ...(hasAnswered && look.commit !== null ? { commit: look.commit } : {}),
    };
  }

  /** The reason why the node is not healthy; undefined when it is. */
  async #sickness(): Promise<string | undefined> {
    const { nodeId, restartsFileServer, restartedMs, before } = this.#request;
    if (!(await this.#isHealthy())) return "/health does not answer";
    const look = this.#pulse.look(nodeId);
    if (look === undefined) return restartsFileServer ? "no FileServer of it is known here" : undefined;
    if (look.answeredMs <= restartedMs) return "no poll of it has been answered since";
    const isSame = before?.startedUnix !== null && before?.startedUnix === look.startedUnix;
    if (restartsFileServer && isSame) return "its FileServer still runs since before";
    return undefined;
  }

  #worse(endMs: number): string | undefined {
    const { nodeId, gates, errorsPerSecondBefore } = this.#request;
    const look = this.#pulse.look(nodeId);
    if (look !== undefined && look.startedUnix !== this.#startedUnix) {
      return `${nodeId} started again by itself while it was watched`;
    }
    const errors = this.#errorsSince();
    if (errors === undefined) return `${nodeId} does not tell how many of its operations failed`;
    const before = errorsPerSecondBefore ?? 0;
    const allowed = before + gates.errors_per_second_above;
    const wholeSeconds = Math.max(errors.seconds, (endMs - this.#sinceMs()) / 1_000);
    // More errors than the whole time allows fail at once.
    if (errors.count <= allowed * wholeSeconds) return undefined;
    const rounded = (rate: number): string => String(Math.round(rate * 100) / 100);
    return (
      `${nodeId} fails ${rounded(errors.perSecond)} operations a second since its restart; ` +
      `before it were ${rounded(before)}, and ${gates.errors_per_second_above} more are let pass`
    );
  }

  #sinceMs(): number {
    const { before, restartsFileServer, restartBeganMs } = this.#request;
    return restartsFileServer || before === undefined ? restartBeganMs : before.answeredMs;
  }

  /** Failed operations since the restart; undefined when not reported. */
  #errorsSince():
    | { readonly count: number; readonly seconds: number; readonly perSecond: number }
    | undefined {
    const { nodeId, before, restartsFileServer } = this.#request;
    const look = this.#pulse.look(nodeId);
    if (look === undefined || look.errors === null) return undefined;
    // A restart resets the counter.
    const from = restartsFileServer || before?.startedUnix !== look.startedUnix ? 0 : (before.errors ?? 0);
    const count = Math.max(0, look.errors - from);
    const seconds = Math.max(1, (look.answeredMs - this.#sinceMs()) / 1_000);
    return { count, seconds, perSecond: count / seconds };
  }
}
