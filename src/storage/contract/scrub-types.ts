// Input and findings of the scrub's thread, and the record of a pass that survives a restart.

import type { PassRecord } from "./pass-types.ts";

/** Progress of a pass: first all chunks, then small files, then the database as a whole. */
export interface ScrubPass {
  readonly startedAtMs: number;
  readonly part: "chunks" | "files" | "database";
  /** Number of the last chunk or inode that was read in this part. */
  readonly position: number;
  /** Newest chunk at the start of the pass; newer ones are left to the next pass. */
  readonly lastChunk: number;
  readonly readBytes: number;
  /** Damaged chunks and small files found, known ones included. */
  readonly found: number;
}

/** Record in the database: the pass under way, and the last finished one. */
export interface ScrubRecord extends PassRecord<ScrubPass> {
  readonly lastReadBytes: number;
  readonly lastFound: number;
}

/** Bounds of the scrub. */
export interface ScrubSettings {
  /** Bytes read per second, above 0. */
  readonly bytesPerSecond: number;
  /** Pause between two passes. */
  readonly pauseMs: number;
}

/** State of the scrub. */
export interface ScrubState extends ScrubRecord {
  /** False before it is started, and between two passes. */
  readonly isRunning: boolean;
}

/** Start data of the scrub's thread. */
export interface ScrubWorkerData {
  readonly directory: string;
  readonly databasePath: string;
  readonly bytesPerSecond: number;
  readonly pass: ScrubPass;
}

/** Stored bytes to be marked as damaged. */
export type DamagedBytes =
  | { readonly kind: "chunk"; readonly chunkId: number; readonly problem: string }
  | { readonly kind: "file"; readonly fileId: number; readonly version: number; readonly problem: string };

/** Finding of the scrub. */
export type ScrubFinding = DamagedBytes | { readonly kind: "database"; readonly problem: string };
