// What storage is about, in its smallest parts: inodes, what a root holds, what a change is and does.

/** Number of an inode; its root's number is in the upper bits, so that it tells nothing about other users. */
export type InodeId = number;

/** What an inode is. There are no symbolic links (decision D13). */
export type InodeKind = "file" | "directory";

/** One file or directory at one moment. */
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
   * Grows with every change of the inode's content or attributes; the etag is made of id and version. An entry that comes or goes moves
   * its directory's version and times as POSIX does; the sizes of directories follow what is below them without moving either.
   */
  readonly version: number;
  /** CRC-32 (IEEE) of a file's whole content, 0 for a directory. */
  readonly crc32: number;
  readonly createdBy: string;
  /** True from when stored bytes were found not to match their checksum until the content is replaced; reads are CORRUPT meanwhile. */
  readonly damaged: boolean;
}

/** What a root holds; part of the same transaction as every change of the namespace. */
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
 * Thrown by a change when the root's accessVersion is no longer the one that the caller's permission check saw, or when the path that was
 * followed leads elsewhere by now, or when more would be made than was claimed: check again and repeat.
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
  /** The path that was followed to what is changed or made, absolute in its root; undefined when the change is of an inode, wherever it is. */
  readonly at?: string | undefined;
  /** How many inodes it may make, as its caller has claimed them; a change that would make more is stale. Undefined for any number. */
  readonly maxInodes?: number | undefined;
}

/** What a change has put into the owner's trash, since somebody other than the owner replaced or cut it (decision D13). */
export interface KeptItem {
  /** Of the item in the trash. */
  readonly id: string;
  readonly originalPath: string;
  readonly sizeBytes: number;
  readonly inodeCount: number;
}

/** What a change did. */
export interface Change {
  readonly inode: Inode;
  /** The root's usage right after this change. */
  readonly usage: Usage;
  /** How much this change alone added to live + trash + staging bytes; negative when it freed. */
  readonly usedDeltaBytes: number;
  /** How much it alone added to the inodes that are live or in the trash. */
  readonly inodeDelta: number;
  readonly kept?: KeptItem | undefined;
}

/** The answer to a change, with how much it added to the inodes that the root holds, live or in the trash, and what it has kept there. */
export type Counted<T> = T extends { readonly usedDeltaBytes: number }
  ? T & { readonly inodeDelta: number; readonly kept?: KeptItem | undefined }
  : T;

/** Where a finished upload goes. */
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
 * One upload being received. Content arrives in messages of any length; every byte is read once for its checksums. Nothing is visible
 * or counted before commit, and a crash before commit leaves nothing that start-up does not sweep.
 */
export interface UploadSink {
  /** Bytes received so far. */
  readonly receivedBytes: number;
  /** Starts the next message's checksum. */
  beginMessage(): void;
  /** Takes a slice, which the caller must not change afterwards. A promise is returned only when the disk is behind: await it. */
  write(slice: Buffer): Promise<void> | undefined;
  /** CRC-32 (IEEE) of the bytes since beginMessage. */
  endMessage(): number;
  /**
   * Puts all content on stable storage, then into the namespace in one transaction. Resolves when both are durable. After a refusal (a
   * stale access version, a taken name) it may be called again with another target; whoever gives up calls abort.
   */
  commit(target: UploadTarget): Promise<Change>;
  /** Drops everything received. Resolves when no trace is left. */
  abort(): Promise<void>;
}

/** The id of an inode as text, in base 36. */
export function inodeIdText(id: InodeId): string {
  // Above 2^31 a number's own toString(36) takes the slow way of fractions; listings call this a thousand times.
  if (id < 2 ** 31) return id.toString(36);
  const low = id % BASE36_LOW;
  return Math.floor(id / BASE36_LOW).toString(36) + low.toString(36).padStart(5, "0");
}

const BASE36_LOW = 36 ** 5;

/** The etag of an inode's present version. */
export function etagOf(inode: Pick<Inode, "id" | "version">): string {
  return `${inodeIdText(inode.id)}-${inode.version.toString(36)}`;
}
