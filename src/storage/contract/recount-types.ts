// What the recount's thread is told and finds, and what is kept of a pass over a restart.
import type { PassName, PassRecord } from "./pass-types.ts";

/** Key of the table `meta` below which the record of recounts is kept. */
export const RECOUNT_KEY: PassName = "recount";

/** Sums over the counters that a pass has found wrong. */
export interface Drift {
  /** Bytes that are counted wrongly: what one counter has too many and the one above it too few counts once. */
  readonly bytes: number;
  /** Counters that differ from what they count, whether they count bytes, files or entries. A directory is one. */
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

/** How far a pass has come. Roots are counted one after the other, and at last the counters of the whole data directory. */
export interface RecountPass {
  readonly startedAtMs: number;
  /** Number of the root that is being counted, or was last. */
  readonly root: number;
  /** Last inode of that root when its turn came: what is newer is left to the next pass. 0 while no root is begun. */
  readonly lastId: number;
  /** Its last inode that was looked at. */
  readonly position: number;
  /** Bytes that counters of this root have too many. */
  readonly surplusBytes: number;
  /** Bytes that counters of this root have too few. */
  readonly deficitBytes: number;
  /** See Offsets. */
  readonly inodesOff: number;
  /** See Offsets. */
  readonly trashOff: number;
  /** Roots that are done. */
  readonly roots: number;
  /** Rows that were read. */
  readonly rows: number;
  readonly drift: Drift;
}

/** What is kept in the database: the pass under way, and the last that was ended. */
export interface RecountRecord extends PassRecord<RecountPass> {
  readonly lastRoots: number;
  readonly lastRows: number;
  readonly lastDrift: Drift;
}

/** Bounds of the recount. */
export interface RecountSettings {
  readonly rowsPerSecond: number;
  /** From the end of a pass to the start of the next. */
  readonly pauseMs: number;
}

/** What the recount is doing, and what it has found. */
export interface RecountState extends RecountRecord {
  /** False when nobody has started it, and between two passes. */
  readonly isRunning: boolean;
  /** What the last pass and the one under way have found; undefined before anything was counted to its end or found wrong. */
  readonly drift: Drift | undefined;
}

/** What the recount's thread is started with. */
export interface RecountWorkerData {
  readonly databasePath: string;
  readonly rowsPerSecond: number;
  readonly pass: RecountPass;
}

/** A counter that differs from what it counts. */
export interface RecountFinding {
  /** Owner of the root; undefined for a counter of the whole data directory. */
  readonly owner: string | undefined;
  /** What is counted, in words. */
  readonly counter: string;
  /** The directory or upload that it is about. */
  readonly id: number | undefined;
  readonly said: number;
  readonly is: number;
}
