// The port to a thread that moves an upload's bytes: the sink decides, that thread writes into files it lends.

/** A chunk whose bytes all lie in its file, not yet on stable storage. */
export interface WrittenChunk {
  /** Position of the chunk in the content. */
  readonly position: number;
  readonly length: number;
  readonly crc32: number;
  readonly blockCrcs: readonly number[];
}

/** Content that the thread has received to its end. */
export interface EndedContent {
  /** The bytes of a content that is small enough to lie in the database. */
  readonly inline: Uint8Array | undefined;
  readonly crc32: number;
}

/** Where content begins, and its size where that is known. */
export interface ElsewhereStart {
  readonly offsetBytes: number;
  readonly crc32: number;
  readonly sizeBytes: number | undefined;
}

/** A content's start, and whether its bytes may be written before each message is decided. */
export interface ElsewhereBegin extends ElsewhereStart {
  /** True where all bytes up to the size are reserved: then only a refusal stops the thread. */
  readonly isAhead: boolean;
}

/** What the thread reports. */
export interface ElsewhereReports {
  /** The thread uses that file no more. */
  readonly written: (chunk: WrittenChunk) => void;
  /** A write failed; nothing more is written. */
  readonly failed: (error: Error) => void;
}

/**
 * The content of one upload, in the thread that has its connection. No byte of a larger content crosses.
 * Nothing but `stop` settles the use of files that were lent and not reported as written.
 */
export interface ContentElsewhere {
  /** Begins, once; the content goes on after whole chunks that are stored already. */
  begin(start: ElsewhereStart, reports: ElsewhereReports): void;
  /** Lends the file of the chunk at a position, or says that there is none. */
  lend(position: number, descriptor: number | undefined): void;
  /** Decides that the next message is written, or may be, where it is ahead. Resolves with the CRC-32 of its payload; rejects when the call has ended. */
  take(): Promise<number>;
  /** Says that a written chunk is on stable storage, or never will be. */
  flushed(position: number): void;
  /** Ends the content. Resolves when all chunks are reported. */
  end(): Promise<EndedContent>;
  /** Drops the rest. Resolves when no write is under way, also when the thread has ended. */
  stop(): Promise<void>;
}
