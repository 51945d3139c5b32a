// Input and findings of the recount's thread, and the record of a pass that survives a restart.
import type { PassName, PassRecord } from "./pass-types.ts";

/** Key of the record of recounts in the table `meta`. */
export const RECOUNT_KEY: PassName = "recount";

/** Sums over the counters that a pass found wrong. */
export interface Drift {
  /** Wrongly counted bytes: a surplus in one counter and a deficit in the one above it count once. */
  readonly bytes: number;
  /** Counters of bytes, files or entries that differ from what they count. A directory is one. */
  readonly counters: number;
  /** By how many bytes directories differ from their entries. */
  readonly directoryBytes: number;
  /** By how many bytes the counters of live bytes differ from the directories of their roots. */
  readonly liveBytes: number;
  /** By how many bytes the counters of the trash differ from what is in it. */
  readonly trashBytes: number;
  /** By how many bytes the counters of staged bytes differ from what is staged. */
  readonly stagingBytes: number;
}

/** Progress of a pass. It counts root after root, and at last the counters of the whole data directory. */
export interface RecountPass {
  readonly startedAtMs: number;
  /** Number of the current or last root. */
  readonly root: number;
  /**
   * Last inode of that root when its turn came; newer ones are left to the next pass. 0 before a root is
   * begun.
   */
  readonly lastId: number;
  /** Last inode of that root that was read. */
  readonly position: number;
  /** Surplus bytes in counters of this root. */
  readonly surplusBytes: number;
  /** Missing bytes in counters of this root. */
  readonly deficitBytes: number;
  /** See Offsets. */
  readonly inodesOff: number;
  /** See Offsets. */
  readonly trashOff: number;
  /** Roots that are finished. */
  readonly roots: number;
  /** Rows that were read. */
  readonly rows: number;
  readonly drift: Drift;
}

/** Record in the database: the pass under way, and the last finished one. */
export interface RecountRecord extends PassRecord<RecountPass> {
  readonly lastRoots: number;
  readonly lastRows: number;
  readonly lastDrift: Drift;
}

/** Bounds of the recount. */
export interface RecountSettings {
  readonly rowsPerSecond: number;
  /** Pause between two passes. */
  readonly pauseMs: number;
}

/** State and findings of the recount. */
export interface RecountState extends RecountRecord {
  /** False before it is started, and between two passes. */
  readonly isRunning: boolean;
  /** Drift found by the last pass and the current one; undefined before a pass has ended or found any. */
  readonly drift: Drift | undefined;
}

/** Start data of the recount's thread. */
export interface RecountWorkerData {
  readonly databasePath: string;
  readonly rowsPerSecond: number;
  readonly pass: RecountPass;
}

/** A counter that differs from what it counts. */
export interface RecountFinding {
  /** Owner of the root; undefined for a counter of the whole data directory. */
  readonly owner: string | undefined;
  /** Name of the counter for the log. */
  readonly counter: string;
  /** The directory or upload with the counter. */
  readonly id: number | undefined;
  readonly said: number;
  readonly is: number;
}
