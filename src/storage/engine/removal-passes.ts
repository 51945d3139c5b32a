// Removes what the object store holds for no file any more: one process of a cluster at a time.
import type { Clock } from "#base/clock.ts";
import { errorText, type Logger } from "#base/log.ts";
import { type SweepPlaces, sweepBlocks } from "#storage/object-store/block-sweeps.ts";
import {
  RECOVERY_WINDOW_MS,
  type RemovalCounts,
  removeDropped,
} from "#storage/object-store/dropped-chunks.ts";
import type { ObjectStore } from "#storage/object-store/object-store.ts";
import type { SharedLine } from "#storage/shared/shared-line.ts";
import type { EngineRows } from "./engine-rows.ts";
import { removalNowMs } from "./removal-clock.ts";

/** Interval of the passes: twice as often as the shortest wait that they look at. */
const PASS_MS = 1_800_000;
/** The advisory lock of whoever removes objects: "GrvR" in ASCII. */
export const REMOVAL_LOCK = 0x47_72_76_52;

/** Dependencies of the passes. */
export interface RemovalPassesDeps {
  readonly rows: EngineRows;
  /** A connection of its own, whose end gives the lock away. */
  readonly line: SharedLine;
  readonly store: ObjectStore;
  readonly incarnation: string;
  readonly clock: Clock;
  readonly logger: Logger;
}

/** Passes on a timer. */
export class RemovalPasses {
  readonly #deps: RemovalPassesDeps;
  readonly #gone = new AbortController();
  readonly #places: SweepPlaces = new Map();
  readonly #stop: () => void;
  #running: Promise<unknown> = Promise.resolve();

  constructor(deps: RemovalPassesDeps) {
    this.#deps = deps;
    this.#stop = deps.clock.every(PASS_MS, () => {
      this.#running = this.run().catch((error: unknown) => {
        deps.logger.warn("engine.removal_failed", { error: errorText(error) });
      });
    });
  }

  /** One pass; undefined while another process is at it. Rejects as database and store do. */
  run(): Promise<RemovalCounts | undefined> {
    const { line, clock, logger } = this.#deps;
    return line.run(async (client) => {
      const asked = await client.query('SELECT pg_try_advisory_lock($1) AS "isMine"', [REMOVAL_LOCK]);
      if (!(asked.rows[0] as { isMine: boolean }).isMine) return undefined;
      try {
        // Times of rows are the database's.
        const nowMs = await removalNowMs(client, RECOVERY_WINDOW_MS);
        const counts = await this.#remove(nowMs - clock.wallMs());
        if (counts.removed > 0 || counts.kept > 0) logger.info("engine.removed", { ...counts });
        return counts;
      } finally {
        await client.query("SELECT pg_advisory_unlock($1)", [REMOVAL_LOCK]);
      }
    });
  }

  async stop(): Promise<void> {
    this.#stop();
    this.#gone.abort();
    await this.#running;
  }

  async #remove(skewMs: number): Promise<RemovalCounts> {
    const { rows, store, incarnation, clock } = this.#deps;
    const removal = {
      ...store.removal({ incarnation, recoveryWindowMs: RECOVERY_WINDOW_MS }),
      clock: { wallMs: () => clock.wallMs() + skewMs },
    };
    const { signal } = this.#gone;
    const failures: unknown[] = [];
    const attempt = (step: Promise<RemovalCounts>): Promise<RemovalCounts> =>
      step.catch((error: unknown) => {
        failures.push(error);
        return { removed: 0, kept: 0 };
      });
    const dropped = await attempt(removeDropped({ ...removal, dropped: rows }, signal));
    const swept = await attempt(sweepBlocks({ ...removal, blocks: rows, places: this.#places }, signal));
    if (failures.length > 0) throw failures[0];
    return { removed: dropped.removed + swept.removed, kept: dropped.kept + swept.kept };
  }
}
