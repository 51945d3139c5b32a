// Counts and times operations when they end (spec 4.6.4), and tells failures of the node's work from refusals.
import type { Clock } from "#base/clock.ts";
import { type ErrorCode, GroveError } from "#base/errors.ts";
import { Code, StatusError } from "#grpc/status.ts";
import type { NodeTelemetry, OperationKind } from "#telemetry/node-telemetry.ts";

/** What was asked could not be, and saying so is the right answer: no failure of the node, which an error rate should show (T4). */
const REFUSALS: ReadonlySet<ErrorCode> = new Set([
  "RATE_LIMITED",
  "SESSION_MISSING",
  "SESSION_UNKNOWN",
  "SESSION_IDLE",
  "SESSION_EXPIRED",
  "SESSION_EVICTED",
  "IP_MISMATCH",
  "NOT_OWNER",
  "NOT_SHARED",
  "NOT_ADMIN",
  "NO_SUCH_PATH",
  "PATH_EXISTS",
  "NOT_EMPTY",
  "IS_DIRECTORY",
  "NOT_DIRECTORY",
  "ETAG_MISMATCH",
  "SHARED_ABOVE",
  "SHARE_LIMIT",
  "BAD_NAME",
  "BAD_ARGUMENT",
  "WRONG_NODE",
  "NOT_IMPLEMENTED",
]);

/** Puts every operation on the node's counters. */
export class OperationMeter {
  readonly #telemetry: NodeTelemetry;
  readonly #clock: Clock;

  constructor(deps: { telemetry: NodeTelemetry; clock: Clock }) {
    this.#telemetry = deps.telemetry;
    this.#clock = deps.clock;
  }

  /** Runs an operation that answers at once. */
  now<T>(kind: OperationKind, operation: () => T): T {
    const startMs = this.#clock.steadyMs();
    try {
      const result = operation();
      this.#telemetry.operation(kind, this.#clock.steadyMs() - startMs, false);
      return result;
    } catch (error) {
      this.#telemetry.operation(kind, this.#clock.steadyMs() - startMs, isFailure(error));
      throw error;
    }
  }

  /** Runs an operation that takes its time. */
  async later<T>(kind: OperationKind, operation: () => Promise<T>): Promise<T> {
    const startMs = this.#clock.steadyMs();
    let failed = false;
    try {
      return await operation();
    } catch (error) {
      failed = isFailure(error);
      throw error;
    } finally {
      this.#telemetry.operation(kind, this.#clock.steadyMs() - startMs, failed);
    }
  }
}

function isFailure(error: unknown): boolean {
  if (error instanceof GroveError) return !REFUSALS.has(error.code);
  // A client that goes away or lets its deadline pass has failed by itself.
  return !(
    error instanceof StatusError &&
    (error.code === Code.CANCELLED || error.code === Code.DEADLINE_EXCEEDED)
  );
}
