// Links as a storage engine keeps them: what lets people without an account read, or drop files.
import type { ChangeContext, InodeId } from "./inode.ts";

/** What a visitor may do by a link. */
export type LinkKind = "drop" | "read";

/** Limits of a link; 0 is none. */
export interface LinkLimits {
  /** Unix milliseconds. */
  readonly endsMs: number;
  readonly maxDownloads: number;
  readonly maxBytes: number;
  readonly maxFiles: number;
}

/** A link. */
export interface StoredLink extends LinkLimits {
  readonly id: string;
  readonly owner: string;
  readonly inodeId: InodeId;
  /** SHA-256 of the token in hex. */
  readonly tokenHash: string;
  readonly kind: LinkKind;
  /** Argon2id text; empty for none. */
  readonly password: string;
  /** Hex; signs what shows that a visitor knew the password. */
  readonly passKey: string;
  readonly createdMs: number;
  readonly downloads: number;
  readonly bytes: number;
  readonly files: number;
}

/** A new link. */
export type NewLink = Omit<StoredLink, "bytes" | "createdMs" | "downloads" | "files" | "owner">;

/** Links of roots. Reads come from the same snapshot as those of Storage. */
export interface LinkStorage {
  /** The link with an id, of a root that is here; undefined for none. */
  byId(id: string): StoredLink | undefined;
  /** Links of a root, the oldest first. */
  ofRoot(owner: string): readonly StoredLink[];
  /** True where a root with that id is here. */
  hasRoot(rootId: string): boolean;
  /** Throws RATE_LIMITED where the root has too many, NO_SUCH_PATH for an inode that has gone. */
  create(change: ChangeContext & NewLink): Promise<void>;
  /** Throws NO_SUCH_PATH where the root has none with that id. */
  revoke(owner: string, id: string): Promise<void>;
  /**
   * Counts a download, durably. A part counts once within an hour for each visitor and file, and so do repeats of one
   * request. Throws NOT_SHARED where the link has gone, has ended or is used up.
   */
  countDownload(order: DownloadCount): Promise<void>;
  /** Counts a file that is about to be dropped, durably. Throws NOT_SHARED as countDownload does. */
  claimDrop(order: DropClaim): Promise<void>;
  /** Takes back what a drop that failed has counted. */
  returnDrop(order: DropClaim): Promise<void>;
}

/** A download by a link. */
export interface DownloadCount {
  readonly owner: string;
  readonly id: string;
  readonly inodeId: InodeId;
  readonly visitor: string;
  /** True where the whole file is asked for, which always counts. */
  readonly isWhole: boolean;
  /** Of one request, whose repeats count once within an hour; empty where each call is one. */
  readonly requestKey: string;
}

/** A file to be dropped by a link. */
export interface DropClaim {
  readonly owner: string;
  readonly id: string;
  readonly bytes: number;
}

/** The refusal of whatever a link does not open, or no longer. One text for all, which tells nothing of the owner. */
export const LINK_ENDED_TEXT = "there is no such link, or it has ended";
