// Counters of one node since its start: bytes, operations, failures and latencies (spec 2.7, 4.6.4).

import type { Clock } from "#base/clock.ts";
import type { Wait } from "#base/wait-times.ts";
import { LatencyWindow } from "./latency-window.ts";
import {
  buildMetrics,
  type MetricsInputs,
  type NodeMetrics,
  type OperationCounts,
} from "./metrics-document.ts";

/** Kinds of operations with their own counters and latencies. */
export type OperationKind = "write" | "read";

/**
 * The outcome of an operation: a refusal is a correct answer to the caller, a failure is the node's own (T4).
 */
export type OperationOutcome = "done" | "refused" | "failed";

/** Counts the node's operations in memory, cheaply enough for every chunk. */
export class NodeTelemetry {
  readonly #clock: Clock;
  readonly #startedAtWallMs: number;
  readonly #startedAtMs: number;
  // Exact to 2^53 bytes, nine petabytes; bigint would cost an allocation for each chunk.
  #bytesWritten = 0;
  #bytesRead = 0;
  #errors = 0;
  #calls = 0;
  #refused = 0;
  #slowCalls = 0;
  readonly #slowWaits = new Map<Wait, number>();
  readonly #operations = { write: 0, read: 0 };
  readonly #failures = { write: 0, read: 0 };
  readonly #latencies = { write: new LatencyWindow(), read: new LatencyWindow() };

  constructor(deps: { clock: Clock }) {
    this.#clock = deps.clock;
    this.#startedAtWallMs = deps.clock.wallMs();
    this.#startedAtMs = deps.clock.steadyMs();
  }

  /** Counts the bytes of a written chunk at once (spec 4.6.4). */
  bytesWritten(bytes: number): void {
    this.#bytesWritten += bytes;
  }

  /** Counts the bytes of a sent chunk at once (spec 4.6.4). */
  bytesRead(bytes: number): void {
    this.#bytesRead += bytes;
  }

  /**
   * Counts an operation at its end; a failed one is an error too. latencyMs is measured on the steady clock.
   */
  operation(kind: OperationKind, latencyMs: number, outcome: OperationOutcome): void {
    this.#operations[kind]++;
    this.#latencies[kind].record(latencyMs);
    if (outcome === "refused") this.#refused++;
    if (outcome !== "failed") return;
    this.#failures[kind]++;
    this.#errors++;
  }

  /**
   * Counts a call other than a read or write. Refused calls do not count: otherwise callers without any right
   * could dilute the error rate.
   */
  call(outcome: "done" | "failed"): void {
    this.#calls++;
    if (outcome === "failed") this.#errors++;
  }

  /** Counts a slow call with its waits in milliseconds. */
  slowCall(waits: ReadonlyMap<Wait, number>): void {
    this.#slowCalls++;
    for (const [wait, ms] of waits) this.#slowWaits.set(wait, (this.#slowWaits.get(wait) ?? 0) + ms);
  }

  /** The counters now. */
  counts(): OperationCounts {
    return {
      bytesWritten: BigInt(this.#bytesWritten),
      bytesRead: BigInt(this.#bytesRead),
      writeOps: this.#operations.write,
      readOps: this.#operations.read,
      errors: this.#errors,
      attempts: this.#operations.write + this.#operations.read + this.#calls,
      failedWrites: this.#failures.write,
      failedReads: this.#failures.read,
      refused: this.#refused,
      slowCalls: this.#slowCalls,
      slowWaits: this.#slowWaits,
      writeLatency: this.#latencies.write.summary(),
      readLatency: this.#latencies.read.summary(),
    };
  }

  /** The `/metrics` document without per-user data (spec 2.7). */
  document(inputs: MetricsInputs): NodeMetrics {
    return buildMetrics(this.counts(), inputs, {
      startedAtWallMs: this.#startedAtWallMs,
      uptimeMs: this.#clock.steadyMs() - this.#startedAtMs,
    });
  }
}
