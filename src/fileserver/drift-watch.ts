// Compares every root's quota counter with the size of its directory tree, so that drift, which is always a bug, is seen (D16, A-17).
import type { Clock } from "#base/clock.ts";
import { DRIFT_CHECK_INTERVAL_MS, DRIFT_ROOTS_PER_TURN } from "#base/limits.ts";
import { errorText, type Logger } from "#base/log.ts";
import type { Storage } from "#storage/storage.ts";

/** What the watch is made from. */
export interface DriftWatchDeps {
  readonly storage: Pick<Storage, "resolve">;
  readonly owners: () => Iterable<string>;
  readonly clock: Clock;
  readonly log: Logger;
}

/** Goes through the roots at the start and every hour, a few at a time. */
export class DriftWatch {
  readonly #deps: DriftWatchDeps;
  readonly #stop: () => void;
  #driftBytes: number | null = null;
  #isRunning = false;
  #isStopped = false;

  constructor(deps: DriftWatchDeps) {
    this.#deps = deps;
    this.#stop = deps.clock.every(DRIFT_CHECK_INTERVAL_MS, () => void this.check());
    void this.check();
  }

  /** Bytes by which counters and trees differed when they were last compared, summed over the roots; null before the first time. */
  get driftBytes(): number | null {
    return this.#driftBytes;
  }

  /** Compares all roots now; one comparison runs at a time. */
  async check(): Promise<void> {
    if (this.#isRunning || this.#isStopped) return;
    this.#isRunning = true;
    let driftBytes = 0;
    let checked = 0;
    for (const owner of this.#deps.owners()) {
      if (this.#isStopped) break;
      driftBytes += Math.abs(this.#driftOf(owner));
      // Other calls go in between: a node may hold ten thousand roots.
      if (++checked % DRIFT_ROOTS_PER_TURN === 0) await new Promise((resolve) => setImmediate(resolve));
    }
    this.#driftBytes = driftBytes;
    this.#isRunning = false;
  }

  /** Ends the watch. */
  stop(): void {
    this.#isStopped = true;
    this.#stop();
  }

  /** 0 for a root that cannot be read: a damaged database is told, and takes the rest of the node not with it. */
  #driftOf(owner: string): number {
    let driftBytes: number;
    try {
      // Counter and tree come out of one snapshot, so that a change in progress is in both or in neither.
      const { root, chain } = this.#deps.storage.resolve(owner, []);
      driftBytes = root.usage.liveBytes - chain[0].sizeBytes;
    } catch (error) {
      this.#deps.log.error("quota_drift_unknown", { user: owner, error: errorText(error) });
      return 0;
    }
    if (driftBytes !== 0) this.#deps.log.error("quota_drift", { user: owner, drift_bytes: driftBytes });
    return driftBytes;
  }
}
