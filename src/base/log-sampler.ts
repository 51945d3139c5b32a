// Keeps repeated log lines few: so many of each kind in a stretch of time, then one that says how many were left out.
import { LRUCache } from "lru-cache";
import { atMost } from "./at-most.ts";
import type { Clock } from "./clock.ts";

/** Lines of one kind that are written in one stretch of time. */
const LINES = 10;
const STRETCH_MS = 60_000;
/** Kinds that are told apart; the one that came longest ago is forgotten. */
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

  /** What a line of this kind is to have beside its own fields: how many before it were left out; undefined for one to leave out. */
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
