// Receives reports of damaged bytes, has the writer mark the chunk or file, and announces each find once
//

import type { DamageFound } from "#storage/contract/storage.ts";
import { DAMAGED_FILES_PER_COMMAND, type DamageTarget } from "#storage/metadata/damage-rows.ts";
import type { WriteQueue } from "#storage/writer/write-queue.ts";

/** Damaged chunks and files whose marks may be under way at once; the next read finds others again. */
const DAMAGE_REPORTS_IN_FLIGHT = 1_024;

/** Dependencies of marking. */
export interface DamageReportsDeps {
  readonly queue: Pick<WriteQueue, "submit">;
  readonly nowMs: () => number;
}

/** Marks damage; one mark per target at a time. */
export class DamageReports {
  readonly #deps: DamageReportsDeps;
  readonly #callbacks: ((found: DamageFound) => void)[] = [];
  readonly #inFlight = new Map<string, Promise<number>>();
  #foundTotal = 0;

  constructor(deps: DamageReportsDeps) {
    this.#deps = deps;
  }

  /** Files marked since the start. */
  get foundTotal(): number {
    return this.#foundTotal;
  }

  /** Calls back for new damage. */
  onFound(callback: (found: DamageFound) => void): void {
    this.#callbacks.push(callback);
  }

  /**
   * Resolves with the number of marked files; 0 when the target is gone, marked already, or cannot be marked
   * now.
   */
  report(target: DamageTarget, problem: string): Promise<number> {
    const key = JSON.stringify(target);
    const running = this.#inFlight.get(key);
    if (running !== undefined) return running;
    if (this.#inFlight.size >= DAMAGE_REPORTS_IN_FLIGHT) return Promise.resolve(0);
    // Without the mark the next read finds the same.
    const marked = this.#mark(target, problem)
      .catch(() => 0)
      .finally(() => this.#inFlight.delete(key));
    this.#inFlight.set(key, marked);
    return marked;
  }

  async #mark(target: DamageTarget, problem: string): Promise<number> {
    const { queue, nowMs } = this.#deps;
    let files = 0;
    for (;;) {
      const marked = await queue.submit({ op: "markDamaged", target, problem, nowMs: nowMs() });
      files += marked;
      if (marked < DAMAGED_FILES_PER_COMMAND) break;
    }
    if (files === 0) return 0;
    this.#foundTotal += files;
    const what = "fileId" in target ? { inode: target.fileId } : { chunk: target.chunkId };
    for (const callback of this.#callbacks) callback({ ...what, problem, files });
    return files;
  }
}
