// The storage's part in the move of a root: its rows leave in buckets, arrive, and are compared by checksums.

/**
 * A bucket of a root's rows: 0 has inodes, shares, trash and uploads of 256 ids from `a * 256` on; 1 has 4,096
 * positions from `b * 4096` on of the content `a`; 2 has small contents of 16 ids from `a * 16` on. Ids are
 * counted within the root, so that they are the same under every number of the root.
 */
export interface MoveBucketKey {
  readonly kind: 0 | 1 | 2;
  readonly a: number;
  readonly b: number;
}

/** A bucket's rows at one moment, each as a line of JSON. */
export interface MoveBucket extends MoveBucketKey {
  /** Count of its changes when it was read. */
  readonly changes: number;
  readonly lines: readonly string[];
}

/** A bucket that has arrived as it was read. */
export interface MoveReceipt extends MoveBucketKey {
  readonly changes: number;
  /** SHA-256 of its lines, in hexadecimal digits; empty asks for the bucket again. */
  readonly checksum: string;
  readonly rows: number;
}

/** Buckets that have changed since they last arrived, up to a number of bytes. */
export interface MoveRound {
  readonly buckets: readonly MoveBucket[];
  /** Buckets that are left besides those. */
  readonly left: number;
}

/** Sum of all that has arrived. */
export interface MoveTotals {
  readonly rows: number;
  /** SHA-256 over the checksums of all buckets with rows. */
  readonly checksum: string;
}

/** A root's counters when it was frozen. */
export interface MovedRootHead {
  readonly owner: string;
  readonly rootId: string;
  readonly accessVersion: number;
  readonly liveBytes: number;
  readonly trashBytes: number;
  readonly stagingBytes: number;
  readonly fileCount: number;
  readonly liveInodes: number;
  readonly trashInodes: number;
  readonly nextId: number;
  readonly grantCount: number;
  readonly lockVersion: number;
  readonly lockCount: number;
  readonly propertyBytes: number;
}

/** Where a root is on its way, as the data folder remembers it. */
export type LocalMoveState =
  /** Its rows are being copied; it is served here. */
  | "copying"
  /** Nothing of it changes here until the move goes on or is undone. */
  | "frozen"
  /** It is served elsewhere; its rows and chunks stay until the move is confirmed. */
  | "departed"
  /** Its rows come in here; it is not served yet. */
  | "arriving"
  /** It is served here. */
  | "arrived";

/** A move of which the data folder has a part. */
export interface LocalMove {
  readonly moveId: string;
  readonly owner: string;
  readonly state: LocalMoveState;
  /** The root's number here. */
  readonly number: number;
  /** Address of the node that serves the root, once it has departed; else empty. */
  readonly address: string;
  /** What the target keeps by keepHead; else empty. */
  readonly head: string;
}

/** A root that a move has taken from here to another node, and that has not come back since. */
export interface DepartedRoot {
  readonly rootId: string;
  readonly owner: string;
  /** The move; the ids of later ones are greater. */
  readonly moveId: string;
  /** Id and address of the node that it went to, as they were then. */
  readonly target: string;
  readonly address: string;
}

/** A chunk file that a bucket names. */
export interface MovedChunk {
  readonly name: string;
  readonly length: number;
  readonly crc32: number;
  /** True when its bytes are known to be damaged, and are not checked. */
  readonly isDamaged: boolean;
}

/** The storage of a node whose roots can move. Every command may be repeated. */
export interface RootMoveStorage {
  /** True for a node's own folder, which no other process has roots in. */
  readonly isOwnFolder: boolean;
  /** Moves that the data folder knows. */
  list(): readonly LocalMove[];
  /** Goes on with what another process on the same storage has begun; without that it does nothing. */
  takeOver(moveId: string): Promise<void>;
  /** True while nobody may be answered about a root, though it is here. */
  isShut(owner: string): boolean;

  /** Begins to note what changes in a root, and marks all that is there. Throws NO_SUCH_PATH. */
  beginExport(move: { readonly moveId: string; readonly owner: string }): Promise<LocalMove>;
  /** Records what has arrived, and reads the next changed buckets. */
  nextRound(moveId: string, receipts: readonly MoveReceipt[], maxBytes: number): Promise<MoveRound>;
  /** Reads a chunk file of the moving root; undefined when it is gone. */
  readChunk(moveId: string, name: string): Promise<Buffer | undefined>;
  /** Refuses every change of the root from now on, and answers with its counters. */
  freeze(moveId: string): Promise<MovedRootHead>;
  /** Sum of what has arrived at the other side; undefined while buckets are left. */
  exportTotals(moveId: string): Promise<MoveTotals | undefined>;
  /** Allows changes again. */
  thaw(moveId: string): Promise<void>;
  /** Serves the root no more; keeps everything, and remembers for good where the root went. */
  depart(moveId: string, address: string, target?: string): Promise<void>;
  /**
   * Roots that have left this storage, of one owner or of all: no root is made here in the place of one. At most
   * DEPARTED_ROOTS_MAX, of which the latest are kept. Empty on the shared engine, where leases say who has a root.
   */
  departedRoots(owner?: string): readonly DepartedRoot[];
  /** The moves that have brought roots here last, by root id; undefined on the shared engine. */
  arrivals(): ReadonlyMap<string, string> | undefined;
  /** Serves a root again that has departed, from the copy that was kept. Throws PATH_EXISTS, BAD_ARGUMENT. */
  takeBack(moveId: string): Promise<void>;
  /** Ends an export that is undone; or removes what has departed, once that is confirmed. */
  endExport(moveId: string): Promise<void>;

  /** True where this storage has the root already, and another process serves it. */
  isNear(owner: string): Promise<boolean>;
  /** Takes a near root from the process that has frozen it for this move; true once it is held here. */
  takeNear(move: { readonly moveId: string; readonly owner: string }): Promise<boolean>;

  /** Makes room for a root under the first of the numbers that is free here. */
  beginImport(move: {
    readonly moveId: string;
    readonly owner: string;
    readonly numbers: readonly number[];
  }): Promise<LocalMove>;
  /** Chunk files that buckets name and the store lacks. */
  missingChunks(moveId: string, buckets: readonly MoveBucket[]): Promise<MovedChunk[]>;
  /** Puts a chunk file on stable storage. Throws CHECKSUM_MISMATCH. */
  putChunk(moveId: string, chunk: MovedChunk, bytes: Buffer): Promise<void>;
  /** Replaces the rows of buckets, and reads them back. */
  putBuckets(moveId: string, buckets: readonly MoveBucket[]): Promise<readonly MoveReceipt[]>;
  /** Sum of what has arrived here. */
  importTotals(moveId: string): MoveTotals;
  /** Remembers what the source has said of the frozen root, before the switch. */
  keepHead(moveId: string, head: string): Promise<void>;
  /** Serves the root from now on; on the shared engine under an epoch that it never had before. */
  finishImport(moveId: string, head: MovedRootHead, firstEpoch: number): Promise<void>;
  /** Removes what has arrived of a move that is undone, or forgets one that is over. */
  endImport(moveId: string): Promise<void>;
}
