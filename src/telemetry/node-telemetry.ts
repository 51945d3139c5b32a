// The counters of one node: bytes, operations, failures and latencies since the process started (spec 2.7, 4.6.4).
import type { Clock } from "#base/clock.ts";
import { LatencyWindow } from "./latency-window.ts";
import {
  buildMetrics,
  type FileserverMetrics,
  type MetricsInputs,
  type OperationCounts,
} from "./metrics-document.ts";

/** Kinds of operations that are counted and timed apart. */
export type OperationKind = "write" | "read";

/** Counts in memory what the node does; cheap enough for every chunk. */
export class NodeTelemetry {
  readonly #clock: Clock;
  readonly #startedAtWallMs: number;
  readonly #startedAtMs: number;
  // Exact to 2^53 bytes, nine petabytes; bigint would cost an allocation for each chunk.
  #bytesWritten = 0;
  #bytesRead = 0;
  #errors = 0;
  readonly #operations = { write: 0, read: 0 };
  readonly #failures = { write: 0, read: 0 };
  readonly #latencies = { write: new LatencyWindow(), read: new LatencyWindow() };

  constructor(deps: { clock: Clock }) {
    this.#clock = deps.clock;
    this.#startedAtWallMs = deps.clock.wallMs();
    this.#startedAtMs = deps.clock.steadyMs();
  }

  /** Counts bytes of a chunk that was written, at once (spec 4.6.4). */
  bytesWritten(bytes: number): void {
    this.#bytesWritten += bytes;
  }

  /** Counts bytes of a chunk that was sent, at once (spec 4.6.4). */
  bytesRead(bytes: number): void {
    this.#bytesRead += bytes;
  }

  /** Counts an operation when it ends; a failed one is an error too. latencyMs is measured on the steady clock. */
  operation(kind: OperationKind, latencyMs: number, failed: boolean): void {
    this.#operations[kind]++;
    this.#latencies[kind].record(latencyMs);
    if (!failed) return;
    this.#failures[kind]++;
    this.#errors++;
  }

  /** Counts a handler's failure that is no read or write. */
  error(): void {
    this.#errors++;
  }

  /** The counters now. */
  counts(): OperationCounts {
    return {
      bytesWritten: BigInt(this.#bytesWritten),
      bytesRead: BigInt(this.#bytesRead),
      writeOps: this.#operations.write,
      readOps: this.#operations.read,
      errors: this.#errors,
      failedWrites: this.#failures.write,
      failedReads: this.#failures.read,
      writeLatency: this.#latencies.write.summary(),
      readLatency: this.#latencies.read.summary(),
    };
  }

  /** The whole `/metrics` document (spec 2.7). */
  document(inputs: MetricsInputs): FileserverMetrics {
    return buildMetrics(this.counts(), inputs, {
      startedAtWallMs: this.#startedAtWallMs,
      uptimeMs: this.#clock.steadyMs() - this.#startedAtMs,
    });
  }
}
