// How long a call has waited for what, in milliseconds.

/** Kinds of waits: a turn to write, the disk, a turn to sort, a MetaServer, the identity provider. */
export const WAITS = ["queue", "disk", "sort", "metaserver", "provider"] as const;

/** One kind of wait. */
export type Wait = (typeof WAITS)[number];

/** The waits of one call. */
export class CallWaits {
  #ms: Map<Wait, number> | undefined;

  /** Adds a wait. */
  add(wait: Wait, ms: number): void {
    this.#ms ??= new Map();
    this.#ms.set(wait, (this.#ms.get(wait) ?? 0) + ms);
  }

  /** Milliseconds by kind of wait, in whole numbers. */
  get all(): ReadonlyMap<Wait, number> {
    return new Map(Array.from(this.#ms ?? [], ([wait, ms]) => [wait, Math.round(ms)]));
  }

  /** The sum of all waits; concurrent waits count each. */
  get totalMs(): number {
    let total = 0;
    for (const ms of this.#ms?.values() ?? []) total += ms;
    return total;
  }
}
