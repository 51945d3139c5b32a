// Whether a node is well after its restart: its health, its heartbeat, its failed operations; each with a limit and a reason in words (D7).
import type { Clock } from "#base/clock.ts";
import { pause } from "#base/waiting.ts";
import type { RequestedRollout } from "./rollout-plan.ts";

/** How often a rollout looks at a node that it watches. */
const ROLLOUT_LOOK_INTERVAL_MS = 1_000;
/** How long after its time a watched node's last poll is waited for: two polls and the time that one may take. */
export const ROLLOUT_LAST_POLL_MS = 15_000;
/** Time for reading a node's commit before a rollout changes anything. */
export const ROLLOUT_CHECK_LIMIT_MS = 30_000;

/** What the console's polls know of a node. */
export interface NodeLook {
  /** Steady time of the last good poll. */
  readonly answeredMs: number;
  /** When its FileServer started, in unix seconds by its own clock; null where it did not say. */
  readonly startedUnix: number | null;
  /** Failed operations since that start; null where it did not say. */
  readonly errors: number | null;
  /** The mean of the last minute. */
  readonly errorsPerSecond: number | null;
  /** The commit that it runs, as it says. */
  readonly commit: string | null;
}

/** Looks at nodes. */
export interface NodePulse {
  /** Undefined for a node of which no FileServer has ever answered. */
  look(nodeId: string): NodeLook | undefined;
  /** Whether the FileServer's /health answers; also true for a node that has none. */
  isHealthy(nodeId: string, signal: AbortSignal): Promise<boolean>;
}

/** What a gate is asked with. */
export interface GateRequest {
  readonly nodeId: string;
  readonly gates: RequestedRollout["gates"];
  /** Steady time at which the restart began, and at which it was done. */
  readonly restartBeganMs: number;
  readonly restartedMs: number;
  /** True when its FileServer was restarted: a new start must be seen. */
  readonly restartsFileServer: boolean;
  /** What was known of it just before the restart. */
  readonly before: NodeLook | undefined;
  /** Failed operations a second before anything was done; null where nobody knew. */
  readonly errorsPerSecondBefore: number | null;
  readonly signal: AbortSignal;
}

/** How it went: `message` says why not. Undefined: it was cut off by the signal. */
export interface GateResult {
  readonly message?: string;
  readonly errorsPerSecond?: number | null;
  readonly commit?: string;
}

/** Watches one node until it is known to be well or not, or the signal ends it; then undefined. Never rejects. */
export async function passGate(
  deps: { readonly clock: Clock; readonly pulse: NodePulse },
  wish: GateRequest,
): Promise<GateResult | undefined> {
  const gate = new Gate(deps.clock, deps.pulse, wish);
  const sick = await gate.awaitHealth();
  if (wish.signal.aborted) return undefined;
  if (sick !== undefined) return gate.result(sick);
  const worse = await gate.observe();
  return wish.signal.aborted ? undefined : gate.result(worse);
}

class Gate {
  readonly #clock: Clock;
  readonly #pulse: NodePulse;
  readonly #wish: GateRequest;
  #startedUnix: number | null = null;

  constructor(clock: Clock, pulse: NodePulse, wish: GateRequest) {
    this.#clock = clock;
    this.#pulse = pulse;
    this.#wish = wish;
  }

  /** Why the node did not get well in time. */
  async awaitHealth(): Promise<string | undefined> {
    const { nodeId, gates, restartedMs, signal } = this.#wish;
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

  /** Why the node is worse than before. */
  async observe(): Promise<string | undefined> {
    const { nodeId, gates, signal, restartedMs } = this.#wish;
    const look = this.#pulse.look(nodeId);
    // There is nothing that could be asked: its restart went well, and that is all that is known.
    if (look === undefined) return undefined;
    this.#startedUnix = look.startedUnix;
    const endMs = this.#clock.steadyMs() + gates.observe_seconds * 1_000;
    const answeredFromMs = gates.observe_seconds === 0 ? restartedMs : endMs;
    for (;;) {
      const why = this.#worse(endMs);
      if (why !== undefined) return why;
      const nowMs = this.#clock.steadyMs();
      const isAnswered = (this.#pulse.look(nodeId)?.answeredMs ?? 0) > answeredFromMs;
      if (nowMs >= endMs && isAnswered) break;
      if (nowMs >= endMs + ROLLOUT_LAST_POLL_MS) {
        return `${nodeId} stopped to answer polls while it was watched`;
      }
      await pause(this.#clock, ROLLOUT_LOOK_INTERVAL_MS, signal);
      if (signal.aborted) return undefined;
    }
    const isHealthy = await this.#pulse.isHealthy(nodeId, signal).catch(() => false);
    return isHealthy ? undefined : `${nodeId} does not answer /health any more`;
  }

  result(message: string | undefined): GateResult {
    const look = this.#pulse.look(this.#wish.nodeId);
    const hasAnswered = look !== undefined && look.answeredMs > this.#wish.restartedMs;
    const rate = hasAnswered ? this.#errorsSince()?.perSecond : undefined;
    return {
      ...(message === undefined ? {} : { message }),
      ...(rate === undefined ? {} : { errorsPerSecond: Math.round(rate * 1_000) / 1_000 }),
      ...(hasAnswered && look.commit !== null ? { commit: look.commit } : {}),
    };
  }

  /** What keeps the node from being well; undefined when nothing does. */
  async #sickness(): Promise<string | undefined> {
    const { nodeId, restartsFileServer, restartedMs, before, signal } = this.#wish;
    if (!(await this.#pulse.isHealthy(nodeId, signal).catch(() => false))) return "/health does not answer";
    const look = this.#pulse.look(nodeId);
    if (look === undefined) return restartsFileServer ? "no FileServer of it is known here" : undefined;
    if (look.answeredMs <= restartedMs) return "no poll of it has been answered since";
    const isSame = before?.startedUnix !== null && before?.startedUnix === look.startedUnix;
    if (restartsFileServer && isSame) return "its FileServer still runs since before";
    return undefined;
  }

  #worse(endMs: number): string | undefined {
    const { nodeId, gates, errorsPerSecondBefore } = this.#wish;
    const look = this.#pulse.look(nodeId);
    if (look !== undefined && look.startedUnix !== this.#startedUnix) {
      return `${nodeId} started again by itself while it was watched`;
    }
    const errors = this.#errorsSince();
    if (errors === undefined) return `${nodeId} does not tell how many of its operations failed`;
    const before = errorsPerSecondBefore ?? 0;
    const allowed = before + gates.errors_per_second_above;
    const wholeSeconds = Math.max(errors.seconds, (endMs - this.#sinceMs()) / 1_000);
    // Too many for the whole time are too many now.
    if (errors.count <= allowed * wholeSeconds) return undefined;
    const rounded = (rate: number): string => String(Math.round(rate * 100) / 100);
    return (
      `${nodeId} fails ${rounded(errors.perSecond)} operations a second since its restart; ` +
      `before it were ${rounded(before)}, and ${gates.errors_per_second_above} more are let pass`
    );
  }

  #sinceMs(): number {
    const { before, restartsFileServer, restartBeganMs } = this.#wish;
    return restartsFileServer || before === undefined ? restartBeganMs : before.answeredMs;
  }

  /** Failed operations since the restart; undefined when the node does not tell them. */
  #errorsSince():
    | { readonly count: number; readonly seconds: number; readonly perSecond: number }
    | undefined {
    const { nodeId, before, restartsFileServer } = this.#wish;
    const look = this.#pulse.look(nodeId);
    if (look === undefined || look.errors === null) return undefined;
    // A restart begins the count at zero.
    const from = restartsFileServer || before?.startedUnix !== look.startedUnix ? 0 : (before.errors ?? 0);
    const count = Math.max(0, look.errors - from);
    const seconds = Math.max(1, (look.answeredMs - this.#sinceMs()) / 1_000);
    return { count, seconds, perSecond: count / seconds };
  }
}
