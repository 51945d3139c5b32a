// Limits repeated log lines per kind and interval, then logs how many were left out.
import { LRUCache } from "lru-cache";
import { atMost } from "./at-most.ts";
import type { Clock } from "./clock.ts";

/** Lines of one kind per interval. */
const LINES = 10;
const STRETCH_MS = 60_000;
/** Distinct kinds; the least recent is dropped first. */
const KINDS_MAX = 1_000;

interface Kind {
  sinceMs: number;
  lines: number;
  leftOut: number;
}

/** Counts lines by kind, on the steady clock. */
export class LogSampler {
  readonly #clock: Clock;
  readonly #kinds = new LRUCache<string, Kind>(atMost(KINDS_MAX));

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Fields to add to a line of this kind: the number left out before it. Undefined to leave the line out. */
  take(kind: string): { readonly left_out?: number } | undefined {
    const nowMs = this.#clock.steadyMs();
    let own = this.#kinds.get(kind);
    if (own === undefined || nowMs - own.sinceMs >= STRETCH_MS) {
      const leftOut = own?.leftOut ?? 0;
      own = { sinceMs: nowMs, lines: 1, leftOut: 0 };
      this.#kinds.set(kind, own);
      return leftOut === 0 ? {} : { left_out: leftOut };
    }
    if (own.lines < LINES) {
      own.lines++;
      return {};
    }
    own.leftOut++;
    return undefined;
  }
}
