// Locks as a storage engine keeps them (RFC 4918, section 6; D28).
import type { ChangeContext, InodeId } from "./inode.ts";

/** A lock that somebody holds. */
export interface HeldLock {
  /** An URI, "urn:uuid:…". */
  readonly token: string;
  readonly inodeId: InodeId;
  /** Username of the holder. */
  readonly username: string;
  /** The credential that took it; empty for a session of the person's own. */
  readonly credential: string;
  readonly isExclusive: boolean;
  /** True where it holds for everything below as well. */
  readonly isDeep: boolean;
  /** What the program that took it says about its person; XML. */
  readonly note: string;
  readonly expiresAtMs: number;
}

/** Locks of roots. Reads come from the same snapshot as those of Storage. */
export interface LockStorage {
  /** Locks of a root that still hold; costs nothing for a root without any. */
  ofRoot(owner: string): readonly HeldLock[];
  /** Names from a directory to what lies below it, none for itself; undefined for what lies elsewhere. */
  namesBelow(inodeId: InodeId, above: InodeId): readonly string[] | undefined;
  /**
   * Takes a lock; changes at, above and below it that were checked before it are stale. Throws LOCKED where another
   * excludes it, RATE_LIMITED where the root or the user has too many.
   */
  take(change: ChangeContext & Omit<HeldLock, "username">): Promise<void>;
  /** Moves the end of a lock. Throws NO_SUCH_LOCK where it has ended. */
  refresh(owner: string, token: string, expiresAtMs: number): Promise<void>;
  /** Ends a lock. Throws NO_SUCH_LOCK where there is none. */
  end(owner: string, token: string): Promise<void>;
}

/** A lock that was taken: the lock version of its root since then, and its path. */
export interface TakenLock {
  readonly version: number;
  readonly path: string;
}
