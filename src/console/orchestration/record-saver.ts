// Saves the records of running actions: the newest state of each, and retries a failed save of an end (E-06).
import type { Clock } from "#base/clock.ts";
import { errorText, type Logger } from "#base/log.ts";
import type { ActionHistory } from "./action-history.ts";
import type { Job } from "./action-job.ts";

/** Retry interval for the end of an action. */
const HISTORY_RETRY_INTERVAL_MS = 5_000;

/** Dependencies of the saver. */
export interface RecordSaverDeps {
  readonly clock: Clock;
  readonly log: Logger;
  readonly history: ActionHistory;
  /** A retried end is in the history. */
  readonly onLateEnd: (id: string) => void;
}

/** Saves the records of all jobs. */
export class RecordSaver {
  readonly #deps: RecordSaverDeps;
  /** Ended actions whose final state is not saved. */
  readonly #unsaved = new Set<Job>();

  constructor(deps: RecordSaverDeps) {
    this.#deps = deps;
  }

  /** Saves the record as it is at its turn; changes in between are merged. Rejects on failure. */
  save(job: Job): Promise<void> {
    job.isDirty = true;
    job.saving ??= (async () => {
      try {
        while (job.isDirty) {
          job.isDirty = false;
          await this.#deps.history.put(job.record);
        }
      } finally {
        job.saving = undefined;
      }
    })();
    return job.saving;
  }

  /** Saves the end; false on failure, which is retried until it succeeds. */
  async saveEnd(job: Job): Promise<boolean> {
    const isSaved = await this.#write(job);
    if (!isSaved) this.#saveLater(job);
    return isSaved;
  }

  /** Saves the ends that failed before; false while one still fails, and no new action may begin. */
  async saveRest(): Promise<boolean> {
    for (const job of this.#unsaved) {
      if (!(await this.#write(job))) return false;
      this.#unsaved.delete(job);
      this.#deps.onLateEnd(job.record.id);
    }
    return true;
  }

  #saveLater(job: Job): void {
    this.#unsaved.add(job);
    if (this.#unsaved.size > 1) return;
    const stop = this.#deps.clock.every(HISTORY_RETRY_INTERVAL_MS, () => {
      void this.saveRest().then(() => {
        if (this.#unsaved.size === 0) stop();
      });
    });
  }

  async #write(job: Job): Promise<boolean> {
    await job.saving?.catch(() => undefined);
    try {
      await this.#deps.history.put(job.record);
      return true;
    } catch (error) {
      this.#deps.log.error("action_not_recorded", { id: job.record.id, error: errorText(error) });
      return false;
    }
  }
}
