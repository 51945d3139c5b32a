// Brings records of actions that run into the history: the newest state of each, and an end that could not be written once it can be (E-06).
import type { Clock } from "#base/clock.ts";
import { errorText, type Logger } from "#base/log.ts";
import type { ActionHistory } from "./action-history.ts";
import type { Job } from "./action-job.ts";

/** How often the end of an action is written again that could not be written. */
const HISTORY_RETRY_INTERVAL_MS = 5_000;

/** What saving needs. */
export interface RecordSaverDeps {
  readonly clock: Clock;
  readonly log: Logger;
  readonly history: ActionHistory;
  /** The history has the end of an action at last. */
  readonly onLateEnd: (id: string) => void;
}

/** Saves the records of all jobs. */
export class RecordSaver {
  readonly #deps: RecordSaverDeps;
  /** Ended actions whose last state could not be written. */
  readonly #unsaved = new Set<Job>();

  constructor(deps: RecordSaverDeps) {
    this.#deps = deps;
  }

  /** Writes the record as it is when its turn comes; of several changes meanwhile only the last. Rejects when it cannot. */
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

  /** Writes the end; false when it cannot be written: then it is tried again until it can. */
  async saveEnd(job: Job): Promise<boolean> {
    const isSaved = await this.#write(job);
    if (!isSaved) this.#saveLater(job);
    return isSaved;
  }

  /** Writes the ends that could not be written; false when they still cannot, and no other action may begin. */
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
