// Commands about locks, of the main thread to the writer's.
import type { InodeId } from "#storage/contract/inode.ts";
import type { ChangeFields } from "#storage/metadata/change-messages.ts";

/** Locks an inode. Refused with LOCKED where another lock excludes it. */
export interface LockCommand extends ChangeFields {
  readonly op: "lock";
  readonly inodeId: InodeId;
  readonly token: string;
  readonly username: string;
  readonly credential: string;
  readonly isExclusive: boolean;
  readonly isDeep: boolean;
  readonly note: string;
  readonly expiresAtMs: number;
}

/** Moves the end of a lock. */
export interface RefreshLockCommand {
  readonly op: "refreshLock";
  readonly owner: string;
  readonly token: string;
  readonly expiresAtMs: number;
  readonly nowMs: number;
}

/** Ends a lock. */
export interface UnlockCommand {
  readonly op: "unlock";
  readonly owner: string;
  readonly token: string;
}

/** Commands about locks. */
export type LockMessage = LockCommand | RefreshLockCommand | UnlockCommand;
