// Who a lock shuts out: every change but those of its holder who shows its token (RFC 4918, section 7).
import { GroveError, isGroveError } from "#base/errors.ts";
import { joinPath } from "#base/names.ts";
import type { InodeId } from "#storage/contract/inode.ts";
import type { HeldLock, LockStorage } from "#storage/contract/locks.ts";
import type { Access, Reached } from "./access.ts";
import type { Caller } from "./caller.ts";
import { holderOf, LOCK_MAX_SECONDS, type LockTaker, lockCredential } from "./lock-holder.ts";

/** What a change touches: content of an inode, entries of a directory, or an inode with all below it. */
export type Touched = "content" | "entries" | "tree";

/** The caller with the tokens that the call shows. */
export type TokenBearer = Pick<Caller, "credential" | "identity" | "lockTokens">;

/** True for a user's credential that was revoked, or one that has shown nothing since a wall time that counts. */
export type HasEnded = (credential: string, username: string, shownMs: number) => boolean;

/** Who changes what, and the locks of its root. */
interface Judged {
  readonly caller: TokenBearer;
  readonly reached: Reached;
  readonly locks: readonly HeldLock[];
}

/** Judges changes by the locks of their root. */
export class LockRule {
  readonly #locks: LockStorage;
  readonly #access: Pick<Access, "mayRead" | "mayStillHold">;
  readonly #hasEnded: HasEnded;

  constructor(locks: LockStorage, access: Pick<Access, "mayRead" | "mayStillHold">, hasEnded: HasEnded) {
    this.#locks = locks;
    this.#access = access;
    this.#hasEnded = hasEnded;
  }

  /** Locks of a root that count: one ends with the right of its holder, and of the credential, to write there. */
  held(owner: string): HeldLock[] {
    return this.#locks.ofRoot(owner).filter((lock) => {
      const { credential, holder } = holderOf(lock);
      // It was shown when the lock was taken or refreshed, which is no earlier than this.
      const shownMs = lock.expiresAtMs - LOCK_MAX_SECONDS * 1000;
      if (credential !== "" && this.#hasEnded(credential, lock.username, shownMs)) return false;
      return this.#access.mayStillHold(owner, lock.inodeId, holder);
    });
  }

  /** Ends locks whose holders may no longer write there, so that they shut nobody out, also once they may again. */
  async endPowerless(owner: string): Promise<void> {
    const held = new Set(this.held(owner).map(({ token }) => token));
    for (const { token } of this.#locks.ofRoot(owner).filter((lock) => !held.has(lock.token))) {
      await this.#locks.end(owner, token).catch((error: unknown) => {
        if (!isGroveError(error, "NO_SUCH_LOCK")) throw error;
      });
    }
  }

  /**
   * Throws LOCKED, with who holds it, where a lock shuts the caller out. Storage refuses the change as stale if a lock
   * comes after this check.
   */
  require(caller: TokenBearer, reached: Reached, touched: Touched): void {
    const { root, chain } = reached.resolution;
    if (root.lockCount === 0) return;
    const locks = this.held(reached.owner);
    const ids = chain.map(({ id }) => id);
    const isMissing = reached.resolution.missing.length > 0;
    // What is missing will be an entry of the deepest directory that exists.
    if (touched === "entries" && !isMissing) ids.pop();
    const names = reached.names.slice(0, ids.length - 1);
    const judged = { caller, reached, locks };
    this.#requireAt(judged, ids, names);
    if (touched !== "tree" || isMissing) return;
    for (const { inodeId } of locks) {
      const below = this.#locks.namesBelow(inodeId, reached.last.id);
      if (below === undefined || below.length === 0) continue;
      this.#requireAt(judged, [...ids, inodeId], [...names, ...below]);
    }
  }

  /** Of the locks that cover the last of these inodes, with these names, the caller must hold one. */
  #requireAt({ caller, reached, locks }: Judged, ids: readonly InodeId[], names: readonly string[]): void {
    const last = ids.at(-1);
    const covering = locks.filter(
      ({ inodeId, isDeep }) => inodeId === last || (isDeep && ids.includes(inodeId)),
    );
    const [first] = covering;
    if (first === undefined || covering.some((lock) => isHeldBy(lock, caller))) return;
    const depth = ids.indexOf(first.inodeId);
    const locked = depth === ids.length - 1 ? names : names.slice(0, depth);
    // A part that the caller was taken out of stays hidden.
    const isShown = reached.isOwner || this.#access.mayRead(caller.identity, reached.owner, locked);
    throw new GroveError("LOCKED", `locked by ${first.username}`, {
      metadata: { locked_by: first.username, ...(isShown ? { locked_path: joinPath(locked) } : {}) },
    });
  }
}

/** True for a call of the lock's person by the credential that took it, with its token. */
export function isHeldBy(lock: HeldLock, caller: TokenBearer): boolean {
  return isOwnLock(lock, caller) && caller.lockTokens.includes(lock.token);
}

/** True for a lock that the caller's person took by the caller's credential. */
export function isOwnLock({ username, credential }: HeldLock, caller: LockTaker): boolean {
  return username === caller.identity.username && credential === lockCredential(caller);
}
