// Stands for node:timers/promises, in simulated time.

/** Resolves after the time; rejects when the signal aborts before. */
export function setTimeout(
  delayMs: number,
  value?: unknown,
  options: { readonly signal?: AbortSignal } = {},
): Promise<unknown> {
  const { signal } = options;
  return new Promise((resolve, reject) => {
    const timer = globalThis.setTimeout(() => resolve(value), delayMs);
    signal?.addEventListener("abort", () => {
      clearTimeout(timer);
      reject(signal.reason as Error);
    });
  });
}

/** Resolves at the end of this turn. */
export function setImmediate(value?: unknown): Promise<unknown> {
  return new Promise((resolve) => globalThis.setImmediate(() => resolve(value)));
}
