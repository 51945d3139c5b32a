// Runs a process until SIGINT or SIGTERM, then stops it within a grace time (G-01).
import { STOP_GRACE_MS } from "#base/limits.ts";
import { errorText } from "#base/log.ts";

/** Time between the last event and SIGKILL. */
const LAST_WORDS_MS = 100;

/** A running service that can be stopped. */
export interface Running {
  /** Stops gracefully; resolves when everything is closed. */
  stop(): Promise<void>;
  /** Settles when the service ends by itself; optional. */
  readonly ended?: Promise<void>;
}

/** Events of a process that stops; the detail is the signal's name or the error's text. */
export type RunEvent = "stopping" | "stopped" | "stop_failed" | "stop_timeout";

/** Options of a run. */
export interface RunOptions {
  /** Longest graceful stop; default 20 s. */
  readonly graceMs?: number;
  /** Default SIGINT and SIGTERM. */
  readonly signals?: readonly NodeJS.Signals[];
  /** Receives the signal, and a stop that failed or took too long. */
  readonly onEvent?: (event: RunEvent, detail: string) => void;
}

/**
 * Starts, waits for a signal or the end, stops, and resolves with `process.exitCode` set: 0 after a graceful
 * stop, 1 after a failure. Rejects when the start fails. A second signal, a stop beyond the grace time, or
 * handles that stay open after it end the process by SIGKILL. Exit handlers may hang for ever.
 */
export async function run(start: () => Promise<Running>, options: RunOptions = {}): Promise<void> {
  const signals = options.signals ?? ["SIGINT", "SIGTERM"];
  const graceMs = options.graceMs ?? STOP_GRACE_MS;
  const tell = options.onEvent ?? (() => {});
  const asked = Promise.withResolvers<string>();
  let isStopping = false;
  const onSignal = (signal: NodeJS.Signals): void => {
    if (isStopping) killSelf();
    isStopping = true;
    tell("stopping", signal);
    // Bounds a start that never ends as well.
    watchdog(graceMs, () => tell("stop_timeout", `not stopped after ${graceMs} ms`));
    asked.resolve(signal);
  };
  for (const signal of signals) process.on(signal, onSignal);

  let running: Running;
  try {
    running = await start();
  } catch (error) {
    for (const signal of signals) process.off(signal, onSignal);
    throw error;
  }
  let failure: unknown;
  await Promise.race([
    asked.promise,
    running.ended?.catch((error: unknown) => {
      failure = error;
    }) ?? asked.promise,
  ]);
  if (!isStopping) {
    isStopping = true;
    tell("stopping", failure === undefined ? "ended by itself" : errorText(failure));
    watchdog(graceMs, () => tell("stop_timeout", `not stopped after ${graceMs} ms`));
  }
  try {
    await running.stop();
    tell("stopped", "");
  } catch (error) {
    failure ??= error;
    tell("stop_failed", errorText(error));
  }
  process.exitCode = failure === undefined ? (process.exitCode ?? 0) : 1;
}

/** The timer is unreferenced, so that a process with nothing left to do ends at once. */
function watchdog(graceMs: number, beforehand: () => void): void {
  setTimeout(() => {
    beforehand();
    // The event is on its way to a log file, and nothing flushes it afterwards.
    setTimeout(killSelf, LAST_WORDS_MS).unref();
  }, graceMs).unref();
}

function killSelf(): void {
  process.kill(process.pid, "SIGKILL");
}
