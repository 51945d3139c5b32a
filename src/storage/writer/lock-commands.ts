// Lock, refresh and unlock in the writer. Who a lock shuts out is decided before a change (fileserver/operations).
import { constantTimeEqual } from "#base/constant-time.ts";
import { GroveError } from "#base/errors.ts";
import type { InodeId } from "#storage/contract/inode.ts";
import type { PropertyOutcome } from "#storage/contract/properties.ts";
import type { InodeRows } from "#storage/metadata/inode-rows.ts";
import type { LockRow, LockRows } from "#storage/metadata/lock-rows.ts";
import { type Ledger, type RootState, usageOf } from "#storage/metadata/unit-of-work.ts";
import { directoriesAbove } from "./in-place.ts";
import type { LockCommand, RefreshLockCommand, UnlockCommand } from "./lock-messages.ts";
import type { ChangePropertiesCommand } from "./write-commands.ts";

/** Locks in one root. */
export const LOCKS_PER_ROOT = 1_000;
/** Locks of one user in somebody else's root. */
export const LOCKS_PER_SHAREE = 100;

/** Commands on locks; run one at a time within a transaction. */
export class LockCommands {
  readonly #ledger: Ledger;
  readonly #inodes: InodeRows;
  readonly #locks: LockRows;

  constructor(ledger: Ledger, inodes: InodeRows, locks: LockRows) {
    this.#ledger = ledger;
    this.#inodes = inodes;
    this.#locks = locks;
  }

  /** Takes a lock. Throws LOCKED where another excludes it, RATE_LIMITED where there are too many. */
  lock(command: LockCommand): undefined {
    const { owner, inodeId, nowMs, username, at = "/" } = command;
    const root = this.#ledger.root(owner, command.accessVersion);
    const above = directoriesAbove({ ledger: this.#ledger, inodes: this.#inodes }, root, command);
    const present = this.#current(root, nowMs);
    const isWithin = this.#locks.within(inodeId);
    const other = present.find((lock) => excludes(lock, command, above, isWithin));
    if (other !== undefined) {
      throw new GroveError("LOCKED", `locked by ${other.username}`, {
        metadata: { locked_by: other.username },
      });
    }
    requireRoomForLock(present, { owner, username });
    const { token, credential, isExclusive, isDeep, note, expiresAtMs } = command;
    const lock = {
      token,
      inodeId,
      username,
      credential,
      isExclusive: isExclusive ? 1 : 0,
      isDeep: isDeep ? 1 : 0,
      note,
      expiresAtMs,
    } as const;
    this.#locks.add(root, lock, at);
    return undefined;
  }

  /** Moves a lock's end. Throws NO_SUCH_LOCK where it has ended. */
  refresh({ owner, token, expiresAtMs, nowMs }: RefreshLockCommand): undefined {
    const root = this.#ledger.root(owner);
    if (!this.#current(root, nowMs).some((lock) => constantTimeEqual(lock.token, token))) throw noSuchLock();
    this.#locks.refresh(token, expiresAtMs);
    return undefined;
  }

  /** Ends a lock. Throws NO_SUCH_LOCK where there is none. */
  unlock({ owner, token }: UnlockCommand): undefined {
    if (!this.#locks.drop(this.#ledger.root(owner), token)) throw noSuchLock();
    return undefined;
  }

  /** Changes what a program keeps with an inode. Throws NO_SUCH_PATH, BAD_ARGUMENT. */
  changeProperties(command: ChangePropertiesCommand): Omit<PropertyOutcome, "inodeDelta"> {
    const root = this.#ledger.root(command.owner, command.accessVersion);
    directoriesAbove({ ledger: this.#ledger, inodes: this.#inodes }, root, command);
    const usedDeltaBytes = this.#inodes.properties.change(root, command.inodeId, command.edits);
    return { usage: usageOf(root), usedDeltaBytes };
  }

  /** Locks that still hold; the others go. */
  #current(root: RootState, nowMs: number): LockRow[] {
    return this.#locks.ofRoot(root).filter((lock) => {
      if (lock.expiresAtMs > nowMs) return true;
      this.#locks.drop(root, lock.token);
      return false;
    });
  }
}

function excludes(
  lock: LockRow,
  wanted: LockCommand,
  above: ReadonlySet<InodeId>,
  isWithin: (inodeId: InodeId) => boolean,
): boolean {
  if (lock.isExclusive === 0 && !wanted.isExclusive) return false;
  const reachesIt = lock.inodeId === wanted.inodeId || (lock.isDeep === 1 && above.has(lock.inodeId));
  return reachesIt || (wanted.isDeep && isWithin(lock.inodeId));
}

/** Throws RATE_LIMITED where a root, or a user in somebody else's root, has as many locks as may be. */
export function requireRoomForLock(
  present: readonly { readonly username: string }[],
  { owner, username }: { readonly owner: string; readonly username: string },
): void {
  const own = present.filter((lock) => lock.username === username).length;
  if (present.length < LOCKS_PER_ROOT && (username === owner || own < LOCKS_PER_SHAREE)) return;
  throw new GroveError("RATE_LIMITED", "there are too many locks here; end some that are not needed", {
    metadata: { limit: String(username === owner ? LOCKS_PER_ROOT : LOCKS_PER_SHAREE) },
  });
}

function noSuchLock(): GroveError {
  return new GroveError("NO_SUCH_LOCK", "there is no such lock; it may have ended");
}
