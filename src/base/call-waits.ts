// The waits of a call in progress, recorded by the code that waits without passing an object along.
import { currentRequestId } from "./request-scope.ts";

/** Kinds of waits: a turn to write, the disk, a turn to sort, a MetaServer, the identity provider. */
export const WAITS = ["queue", "disk", "sort", "metaserver", "provider"] as const;

/** One kind of wait. */
export type Wait = (typeof WAITS)[number];

/** The waits of one call, in milliseconds. */
export class CallWaits {
  readonly #ms = new Map<Wait, number>();

  /** Adds a wait. */
  add(wait: Wait, ms: number): void {
    this.#ms.set(wait, (this.#ms.get(wait) ?? 0) + ms);
  }

  /** Milliseconds by kind of wait, in whole numbers. */
  get all(): ReadonlyMap<Wait, number> {
    return new Map(Array.from(this.#ms, ([wait, ms]) => [wait, Math.round(ms)]));
  }

  /** The sum of all waits; concurrent waits count each. */
  get totalMs(): number {
    let total = 0;
    for (const ms of this.#ms.values()) total += ms;
    return total;
  }
}

/** By request id; one entry per call in progress. */
const running = new Map<string, CallWaits>();

/** Starts recording waits of the current request; undefined where another call has the same id. */
export function beginWaits(): CallWaits | undefined {
  const id = currentRequestId();
  if (id === undefined || running.has(id)) return undefined;
  const waits = new CallWaits();
  running.set(id, waits);
  return waits;
}

/** Ends the recording of the current request. */
export function endWaits(waits: CallWaits | undefined, id: string | undefined): void {
  if (waits !== undefined && id !== undefined) running.delete(id);
}

/** The waits of the current request; undefined where none are recorded. */
export function currentWaits(): CallWaits | undefined {
  const id = currentRequestId();
  return id === undefined ? undefined : running.get(id);
}

/** Waits for a promise and records the time. */
export async function waiting<T>(wait: Wait, promise: Promise<T>): Promise<T> {
  const waits = currentWaits();
  if (waits === undefined) return await promise;
  const startMs = performance.now();
  try {
    return await promise;
  } finally {
    waits.add(wait, performance.now() - startMs);
  }
}
