// Messages between a door and its pages: files, folders, the trash, quota and shares.
import { z } from "zod";

/** A file or folder in a list. */
export interface FileEntry {
  readonly name: string;
  readonly kind: "file" | "folder";
  /** Bytes; of a folder those below it. */
  readonly size: number;
  /** Unix milliseconds. */
  readonly changed_ms: number;
  readonly etag: string;
  /** People with whom it is shared. */
  readonly shared: readonly string[];
  /** True for a file whose stored bytes were found wrong. */
  readonly damaged?: true;
  /** True where the person may not delete it. */
  readonly kept?: true;
}

/** One page of a folder. */
export interface FileList {
  readonly entries: readonly FileEntry[];
  /** Token of the next page; empty on the last. */
  readonly next: string;
}

/** A place by itself. */
export interface FileFacts extends FileEntry {
  readonly path: string;
  readonly owner: string;
  readonly may_write: boolean;
  readonly may_delete: boolean;
}

/** Who is signed in. */
export interface SignedIn {
  readonly username: string;
  /** Until when the sign-in is recent enough to share, unix milliseconds. */
  readonly recent_until_ms: number;
  readonly webdav_url: string;
}

/** How full a root is. */
export interface QuotaFacts {
  readonly quota_bytes: number;
  readonly used_bytes: number;
  readonly live_bytes: number;
  readonly trash_bytes: number;
  readonly uploads_bytes: number;
  readonly inodes: number;
  readonly inode_limit: number;
}

/** What somebody shares with the person. */
export interface SharedPlace {
  readonly owner: string;
  readonly path: string;
}

/** An item of the trash. */
export interface TrashEntry {
  readonly id: string;
  readonly path: string;
  readonly kind: "file" | "folder";
  readonly size: number;
  readonly trashed_ms: number;
  readonly ends_ms: number;
  readonly by: string;
}

/** One page of the trash. */
export interface TrashList {
  readonly items: readonly TrashEntry[];
  readonly next: string;
}

/** A refusal. */
export interface FileProblem {
  /** A code of the product, such as QUOTA_EXCEEDED. */
  readonly error: string;
  /** For people. */
  readonly message: string;
}

const root = z.string().max(320);
const path = z.string().min(1).max(4_096);

/** What names a place. */
export const placeRequest = z.strictObject({ root, path });
/** A rename, a move or a copy within a root; `rename` finds a free name. */
export const moveRequest = z.strictObject({
  root,
  path,
  target: path,
  conflict: z.enum(["fail", "rename", "replace"]),
});
/** Brings an item of the trash back. */
export const restoreRequest = z.strictObject({
  root,
  id: z.string().min(1).max(64),
  conflict: z.enum(["fail", "rename"]),
});
/** Deletes items of the trash for good; without ids all of them. */
export const purgeRequest = z.strictObject({
  root,
  ids: z.array(z.string().min(1).max(64)).max(1_000),
  all: z.boolean(),
});
/** Shares a place with somebody, or ends that. */
export const shareRequest = z.strictObject({ root, path, user: z.string().min(3).max(320) });
