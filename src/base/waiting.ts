// Waiting on the steady clock: for a time, or for work within a time.
import type { Clock } from "./clock.ts";

type Timer = Pick<Clock, "after">;

/** Resolves after the time, or as soon as the signal aborts. */
export async function pause(clock: Timer, delayMs: number, signal?: AbortSignal): Promise<void> {
  if (signal?.aborted === true) return;
  const { promise, resolve } = Promise.withResolvers<void>();
  const cancel = clock.after(delayMs, resolve);
  const onAbort = (): void => resolve();
  signal?.addEventListener("abort", onAbort, { once: true });
  await promise;
  signal?.removeEventListener("abort", onAbort);
  cancel();
}

/**
 * Resolves when the work does, or after the time; rejects when the work does first. Unfinished work goes on.
 */
export async function waitAtMost(clock: Timer, limitMs: number, work: Promise<unknown>): Promise<void> {
  const { promise: late, resolve } = Promise.withResolvers<void>();
  const cancel = clock.after(limitMs, resolve);
  try {
    await Promise.race([work, late]);
  } finally {
    cancel();
  }
}
