// What the scrub's thread is told and finds, and what is kept of a pass over a restart.

import type { PassRecord } from "./pass-types.ts";

/** How far a pass has come. Chunks are read first, then small files, then the database is checked as a whole. */
export interface ScrubPass {
  readonly startedAtMs: number;
  readonly part: "chunks" | "files" | "database";
  /** Number of the last chunk or inode that was read in this part. */
  readonly position: number;
  /** Chunks that came after the pass began are left to the next one. */
  readonly lastChunk: number;
  readonly readBytes: number;
  /** Damaged chunks and small files met, whether they were known or not. */
  readonly found: number;
}

/** What is kept in the database: the pass under way, and the last that was ended. */
export interface ScrubRecord extends PassRecord<ScrubPass> {
  readonly lastReadBytes: number;
  readonly lastFound: number;
}

/** Bounds of the scrub. */
export interface ScrubSettings {
  /** Bytes read per second, above 0. */
  readonly bytesPerSecond: number;
  /** From the end of a pass to the start of the next. */
  readonly pauseMs: number;
}

/** What the scrub is doing. */
export interface ScrubState extends ScrubRecord {
  /** False when nobody has started it, and between two passes. */
  readonly isRunning: boolean;
}

/** What the scrub's thread is started with. */
export interface ScrubWorkerData {
  readonly directory: string;
  readonly databasePath: string;
  readonly bytesPerSecond: number;
  readonly pass: ScrubPass;
}

/** Stored bytes whose damage is to be marked. */
export type DamagedBytes =
  | { readonly kind: "chunk"; readonly chunkId: number; readonly problem: string }
  | { readonly kind: "file"; readonly fileId: number; readonly version: number; readonly problem: string };

/** What the scrub has found wrong. */
export type ScrubFinding = DamagedBytes | { readonly kind: "database"; readonly problem: string };
