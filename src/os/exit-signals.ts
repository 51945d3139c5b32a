// Runs a process until SIGINT or SIGTERM asks it to stop, and then stops it within a grace time (G-01).
import { GroveError } from "#base/errors.ts";

/** Something that runs until it is stopped. */
export interface Running {
  /** Stops gracefully; resolves when nothing is left open. */
  stop(): Promise<void>;
  /** Resolves or rejects when the thing ends by itself; optional. */
  readonly ended?: Promise<void>;
}

/** How a run ends. */
export interface RunOptions {
  /** Longest graceful stop; default 20 s. */
  readonly graceMs?: number;
  /** Told of the signal, and of a stop that failed or took too long. */
  readonly onEvent?: (event: "stopping" | "stopped" | "stop_failed" | "stop_timeout", detail: string) => void;
}

/**
 * Starts, waits for SIGINT, SIGTERM or the end, stops, and resolves with the exit code set. A second signal, or a stop beyond the
 * grace time, ends the process by SIGKILL, since exit handlers may hang.
 */
export async function run(start: () => Promise<Running>, options: RunOptions = {}): Promise<void> {
  void start;
  void options;
  throw new GroveError("NOT_IMPLEMENTED", "being built");
}
