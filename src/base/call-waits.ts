// What a call that is being worked on has waited for, noted by whoever makes it wait, without being handed along.
import { currentRequestId } from "./request-scope.ts";

/** What may be waited for: a turn to write, the disk, a turn to sort, a MetaServer, the identity provider. */
export const WAITS = ["queue", "disk", "sort", "metaserver", "provider"] as const;

/** One of them. */
export type Wait = (typeof WAITS)[number];

/** The waits of one call, in milliseconds. */
export class CallWaits {
  readonly #ms = new Map<Wait, number>();

  /** Notes a wait. */
  add(wait: Wait, ms: number): void {
    this.#ms.set(wait, (this.#ms.get(wait) ?? 0) + ms);
  }

  /** What was waited for, in whole milliseconds. */
  get all(): ReadonlyMap<Wait, number> {
    return new Map(Array.from(this.#ms, ([wait, ms]) => [wait, Math.round(ms)]));
  }

  /** All of it together; waits at the same time count each. */
  get totalMs(): number {
    let total = 0;
    for (const ms of this.#ms.values()) total += ms;
    return total;
  }
}

/** By the id of the request; as many as there are calls in progress. */
const running = new Map<string, CallWaits>();

/** Begins to note the waits of the request that runs; undefined where another call has the same id. */
export function beginWaits(): CallWaits | undefined {
  const id = currentRequestId();
  if (id === undefined || running.has(id)) return undefined;
  const waits = new CallWaits();
  running.set(id, waits);
  return waits;
}

/** Ends what was begun for the request that runs. */
export function endWaits(waits: CallWaits | undefined, id: string | undefined): void {
  if (waits !== undefined && id !== undefined) running.delete(id);
}

/** Where waits of the request that runs are noted; undefined where nobody asks. */
export function currentWaits(): CallWaits | undefined {
  const id = currentRequestId();
  return id === undefined ? undefined : running.get(id);
}

/** Waits for a promise, and notes for how long. */
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
