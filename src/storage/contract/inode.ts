// The smallest types of storage: inodes, a root's usage, and changes.

/** Number of an inode; its upper bits are its root's number, so that it reveals nothing about other users. */
export type InodeId = number;

/** A root's number is the upper part of every id below it. */
export const ROOT_STRIDE: number = 2 ** 32;

/** The number of the root to which an id belongs. */
export function rootNumberOf(id: InodeId): number {
  return Math.floor(id / ROOT_STRIDE);
}

/** Kind of an inode. There are no symbolic links (decision D13). */
export type InodeKind = "file" | "directory";

/** State of a file or directory at one moment. */
export interface Inode {
  readonly id: InodeId;
  /** Undefined for the root directory. */
  readonly parentId: InodeId | undefined;
  /** Canonical (NFC) name; empty for the root directory. */
  readonly name: string;
  readonly kind: InodeKind;
  /** Bytes of a file; of a directory the live bytes below it. Always below 2^53. */
  readonly sizeBytes: number;
  /** Entries of a directory, 0 for a file. */
  readonly childCount: number;
  readonly mtimeMs: number;
  readonly ctimeMs: number;
  /**
   * Grows with every change of the inode's content or attributes; id and version make the etag. An entry that
   * comes or goes moves its directory's version and times as POSIX does. Directory sizes follow the content
   * below and move neither.
   */
  readonly version: number;
  /** CRC-32 (IEEE) of a file's whole content, 0 for a directory. */
  readonly crc32: number;
  readonly createdBy: string;
  /**
   * True once stored bytes do not match their checksum, until the content is replaced; reads are CORRUPT
   * meanwhile.
   */
  readonly damaged: boolean;
}

/** Usage of a root; updated in the same transaction as every change of the namespace. */
export interface Usage {
  readonly liveBytes: number;
  readonly trashBytes: number;
  readonly stagingBytes: number;
  readonly fileCount: number;
  /** Files and directories below the root's own directory. */
  readonly liveInodes: number;
  /** Files and directories in its trash. */
  readonly trashInodes: number;
}

/**
 * Thrown when a change's permission check is outdated: check again and repeat. The root's accessVersion has
 * changed, the path leads elsewhere, or more would be made than was claimed.
 */
export class StaleAccessError extends Error {
  override readonly name = "StaleAccessError";
}

/** Common to all changes: the root and the access version that the permission check saw. */
export interface ChangeContext {
  readonly owner: string;
  /** Undefined for the owner, whom no share or move can shut out. */
  readonly accessVersion: number | undefined;
  /** Username of the caller. */
  readonly by: string;
  /**
   * Absolute path in the root that was followed to the target; undefined for a change of an inode,
   * independent of its place.
   */
  readonly at?: string | undefined;
  /** Inodes that the caller has claimed; a change that would make more is stale. Undefined for no limit. */
  readonly maxInodes?: number | undefined;
  /** Bytes that the caller has claimed for a write or cut; one that would add more is stale. Undefined for no limit. */
  readonly maxAddedBytes?: number | undefined;
  /** The root's lock version that the check saw; a change is stale once a lock was taken after it. */
  readonly lockVersion?: number | undefined;
}

/** Versions that a move or a copy must find, as etags; undefined for any. */
export interface ExpectedVersions {
  /** Of what is moved or copied. */
  readonly ifMatch?: string | undefined;
  /** Of what is replaced: something must be there. */
  readonly targetIfMatch?: string | undefined;
}

/** What becomes of an entry that has the name which another one is to get. */
export type ConflictRule = "fail" | "rename" | "replace";

/** The same where the other one comes from a place in the tree: "trash" keeps what is there in the trash. */
export type TreeConflictRule = ConflictRule | "trash";

/** A former share of an item in the trash; it has no effect, and can be given again after a restore. */
export interface FormerShare {
  /** Names below the item; empty for the item itself. */
  readonly names: readonly string[];
  readonly username: string;
}

/** What a change has replaced or cut, and has put into the owner's trash (decision D13). */
export interface TrashedContent {
  /** Id of the item in the trash. */
  readonly id: string;
  readonly originalPath: string;
  readonly sizeBytes: number;
  readonly inodeCount: number;
  readonly formerShares: readonly FormerShare[];
}

/** Result of a change. */
export interface Change {
  readonly inode: Inode;
  /** The root's usage right after this change. */
  readonly usage: Usage;
  /** Bytes that this change alone added to live + trash + staging; negative when it freed. */
  readonly usedDeltaBytes: number;
  /** Inodes that this change alone added, live or in the trash. */
  readonly inodeDelta: number;
  readonly kept?: TrashedContent | undefined;
}

/**
 * The answer to a change, with the inodes that it added, live or in the trash, and the item that it kept
 * there.
 */
export type Counted<T> = T extends { readonly usedDeltaBytes: number }
  ? T & { readonly inodeDelta: number; readonly kept?: TrashedContent | undefined }
  : T;

/** Target of a finished upload. */
export interface UploadTarget extends ChangeContext {
  readonly parentId: InodeId;
  readonly name: string;
  readonly onExists: "replace" | "fail";
  /** Etag that the existing file must have; undefined for any. */
  readonly ifMatch: string | undefined;
  /** 0 means now. */
  readonly mtimeMs: number;
}

/**
 * Receives one upload, in messages of any length; each byte is read once for its checksums. Nothing is
 * visible or counted before commit, and start-up sweeps the remains of a crash before it.
 */
export interface UploadSink {
  /** Bytes received so far. */
  readonly receivedBytes: number;
  /** Starts the next message's checksum. */
  beginMessage(): void;
  /**
   * Takes a slice, which the caller must not change afterwards. Returns a promise only when the disk is
   * behind: await it.
   */
  write(slice: Buffer): Promise<void> | undefined;
  /** CRC-32 (IEEE) of the bytes since beginMessage. */
  endMessage(): number;
  /**
   * Has the next message written by the thread that the sink was made with, instead of `write`. Resolves with
   * the CRC-32 of its payload, once the disk is no longer behind.
   */
  takeElsewhere(payloadBytes: number): Promise<number>;
  /**
   * Puts all content on stable storage, then into the namespace in one transaction. Resolves when both are
   * durable. After a refusal (a stale access version, a taken name) another target may follow; otherwise the
   * caller must abort.
   */
  commit(target: UploadTarget): Promise<Change>;
  /** Drops everything received. Resolves when no trace is left. */
  abort(): Promise<void>;
}

/** The id of an inode as text, in base 36. */
export function inodeIdText(id: InodeId): string {
  // Above 2^31, toString(36) takes the slow path of fractions; a listing calls this a thousand times.
  if (id < 2 ** 31) return id.toString(36);
  const low = id % BASE36_LOW;
  return Math.floor(id / BASE36_LOW).toString(36) + low.toString(36).padStart(5, "0");
}

const BASE36_LOW = 36 ** 5;

/** The id that such a text names; undefined for text that names none. */
export function parseInodeId(text: string): InodeId | undefined {
  if (!/^[0-9a-z]{1,11}$/.test(text)) return undefined;
  const id = Number.parseInt(text, 36);
  return Number.isSafeInteger(id) && inodeIdText(id) === text ? id : undefined;
}

/** The etag of an inode's current version. */
export function etagOf(inode: Pick<Inode, "id" | "version">): string {
  return `${inodeIdText(inode.id)}-${inode.version.toString(36)}`;
}
