// Findings of a check of a data directory, as text.
import { CHECK_DIFFERENCES_LISTED } from "#base/limits.ts";

/** Result of checking a data directory. */
export interface StorageReport {
  readonly dataId: string;
  readonly rootCount: number;
  readonly inodeCount: number;
  readonly chunkCount: number;
  /** Bytes of all live files. */
  readonly liveBytes: number;
  /** Bytes in the trash. */
  readonly trashBytes: number;
  /** Bytes whose checksums were verified; 0 unless the check was deep. */
  readonly verifiedBytes: number;
  /** Differences found, at most CHECK_DIFFERENCES_LISTED of them. */
  readonly differences: readonly string[];
  /** Number of all differences; 0 for a sound directory. */
  readonly differenceCount: number;
  /** Differences repaired; files marked as damaged are not among them. */
  readonly repairedCount: number;
  /** Harmless oddities: leftovers that the next start removes. */
  readonly notes: readonly string[];
}

/** Collects differences while a check runs. */
export class Findings {
  readonly #differences: string[] = [];
  readonly #notes: string[] = [];
  #differenceCount = 0;
  #repairedCount = 0;

  /** Adds a difference, and whether it was repaired. */
  difference(text: string, isRepaired = false): void {
    this.#differenceCount++;
    if (isRepaired) this.#repairedCount++;
    if (this.#differences.length < CHECK_DIFFERENCES_LISTED) {
      this.#differences.push(isRepaired ? `${text} (repaired)` : text);
    }
  }

  note(text: string): void {
    this.#notes.push(text);
  }

  get result(): Pick<StorageReport, "differences" | "differenceCount" | "repairedCount" | "notes"> {
    return {
      differences: this.#differences,
      differenceCount: this.#differenceCount,
      repairedCount: this.#repairedCount,
      notes: this.#notes,
    };
  }
}
