// Lock, RefreshLock, Unlock and ListLocks: what people's programs hold while they edit (RFC 4918, section 6).

import { randomUUID } from "node:crypto";
import type { AuditSink } from "#base/audit-act.ts";
import type { Clock } from "#base/clock.ts";
import { constantTimeEqual } from "#base/constant-time.ts";
import { GroveError } from "#base/errors.ts";
import { joinPath } from "#base/names.ts";
import { requireContent } from "#fileserver/doors/xml-rule.ts";
import type { HeldLock, LockStorage } from "#storage/contract/locks.ts";
import { againWhenRowsCome } from "#storage/contract/rows-to-come.ts";
import { requireRoomForLock } from "#storage/writer/lock-commands.ts";
import { type Access, existing, type Reached, retryWhenStale } from "./access.ts";
import type { Caller } from "./caller.ts";
import { contextOf } from "./changes.ts";
import { LOCK_MAX_SECONDS, lockCredential } from "./lock-holder.ts";
import { isOwnLock, type LockRule } from "./lock-rule.ts";
import type { Place } from "./namespace-operations.ts";
import type { OperationMeter } from "./operation-meter.ts";

/** Characters of what a program says about its person. */
export const LOCK_NOTE_MAX_LENGTH = 1_000;

/** A lock as callers see it. */
export interface SeenLock {
  /** Empty for who may not end it as its holder. */
  readonly token: string;
  readonly path: string;
  readonly username: string;
  readonly isExclusive: boolean;
  readonly isDeep: boolean;
  readonly note: string;
  /** From 0. */
  readonly secondsLeft: number;
}

/** What a lock shall be. */
export interface LockRequest extends Place {
  readonly isExclusive: boolean;
  readonly isDeep: boolean;
  readonly note: string;
  /** 0 means LOCK_MAX_SECONDS. */
  readonly seconds: number;
}

/** Dependencies of the operations. */
export interface LockDeps {
  readonly locks: LockStorage;
  readonly rule: Pick<LockRule, "endPowerless" | "held">;
  readonly access: Access;
  readonly meter: OperationMeter;
  readonly clock: Clock;
  readonly audit: AuditSink;
}

/** The operations on locks. Errors are those of D1. */
export class LockOperations {
  readonly #deps: LockDeps;

  constructor(deps: LockDeps) {
    this.#deps = deps;
  }

  /**
   * Locks what exists. Needs write. Throws LOCKED, NO_SUCH_PATH, RATE_LIMITED, BAD_ARGUMENT. NO_SUCH_PATH says that
   * a file made there now could be locked.
   */
  lock(caller: Caller, request: LockRequest): Promise<SeenLock> {
    const { meter, access, locks, rule, clock } = this.#deps;
    return meter.later("write", () =>
      retryWhenStale(async () => {
        if (request.note.length > LOCK_NOTE_MAX_LENGTH) {
          throw new GroveError("BAD_ARGUMENT", `a note has at most ${LOCK_NOTE_MAX_LENGTH} characters`);
        }
        requireContent(request.note, "a lock's note");
        const reached = access.reach(caller.identity, request.root, request.path, "write");
        this.#requireLockable(caller, reached, request.isExclusive);
        const inode = existing(reached);
        const { isExclusive, isDeep, note } = request;
        const token = `urn:uuid:${randomUUID()}`;
        const expiresAtMs = clock.wallMs() + secondsOf(request.seconds) * 1000;
        const credential = lockCredential(caller);
        const wish = { inodeId: inode.id, token, credential, isExclusive, isDeep, note, expiresAtMs };
        await rule.endPowerless(reached.owner);
        await locks.take({ ...contextOf(caller, reached), ...wish });
        const { username } = caller.identity;
        return this.#seen({ ...wish, username }, joinPath(reached.names), token);
      }),
    );
  }

  /** Moves the end of a lock that the caller's credential took. Throws NO_SUCH_LOCK where it has ended. */
  refresh(
    caller: Caller,
    request: Place & { readonly token: string; readonly seconds: number },
  ): Promise<SeenLock> {
    const { meter, locks, clock } = this.#deps;
    return meter.later("write", async () => {
      const { reached, lock, path } = await againWhenRowsCome(() => this.#find(caller, request));
      if (!isOwnLock(lock, caller)) throw noSuchLock();
      const expiresAtMs = clock.wallMs() + secondsOf(request.seconds) * 1000;
      await locks.refresh(reached.owner, lock.token, expiresAtMs);
      return this.#seen({ ...lock, expiresAtMs }, path, lock.token);
    });
  }

  /**
   * Ends the caller's own lock; a sign-in ends those of all its person's credentials. The root's owner may break anybody's: by its token, or without one all on this inode.
   */
  unlock(
    caller: Caller,
    request: Place & { readonly token: string; readonly breaks: boolean },
  ): Promise<{ ended: number }> {
    const { meter, access, locks, audit } = this.#deps;
    return meter.later("write", async () => {
      if (!request.breaks) {
        const { reached, lock } = await againWhenRowsCome(() => this.#find(caller, request));
        if (!mayEnd(lock, caller)) throw noSuchLock();
        await locks.end(reached.owner, lock.token);
        return { ended: 1 };
      }
      const { reached, broken } = await againWhenRowsCome(() => {
        const at = access.reach(caller.identity, request.root, request.path, "share");
        const chosen = this.#covering(at).filter(
          ({ token }) => request.token === "" || constantTimeEqual(token, request.token),
        );
        return { reached: at, broken: chosen };
      });
      for (const { token, username } of broken) {
        await locks.end(reached.owner, token);
        audit({
          act: "lock.break",
          actor: caller.identity.username,
          subject: `${reached.owner}:${joinPath(reached.names)}`,
          detail: { holder: username },
        });
      }
      return { ended: broken.length };
    });
  }

  /** Locks that hold at a place, or there and below as far as the caller may look. Needs read. */
  list(caller: Caller, request: Place & { readonly below: boolean }): SeenLock[] | Promise<SeenLock[]> {
    return this.#deps.meter.run("read", () => {
      const reached = this.#deps.access.reach(caller.identity, request.root, request.path, "read");
      existing(reached);
      const here = this.#covering(reached).map((lock) => ({ lock, path: pathOf(reached, lock) }));
      const below = request.below ? this.#below(caller, reached) : [];
      return [...here, ...below].map(({ lock, path }) =>
        this.#seen(lock, path, mayEnd(lock, caller) ? lock.token : ""),
      );
    });
  }

  /** Throws what would refuse the lock once its missing file was made, so that none is made for nothing. */
  #requireLockable({ identity }: Caller, reached: Reached, isExclusive: boolean): void {
    const { root, chain, missing } = reached.resolution;
    if (missing.length !== 1 || root.lockCount === 0) return;
    const held = this.#deps.rule.held(reached.owner);
    const ids = chain.map(({ id }) => id);
    const other = held.find(
      (lock) => lock.isDeep && ids.includes(lock.inodeId) && (isExclusive || lock.isExclusive),
    );
    if (other !== undefined) {
      throw new GroveError("LOCKED", `locked by ${other.username}`, {
        metadata: { locked_by: other.username, locked_path: pathOf(reached, other) },
      });
    }
    requireRoomForLock(held, { owner: reached.owner, username: identity.username });
  }

  #below(caller: Caller, reached: Reached): { lock: HeldLock; path: string }[] {
    const { locks, access, rule } = this.#deps;
    return rule.held(reached.owner).flatMap((lock) => {
      const below = locks.namesBelow(lock.inodeId, reached.last.id) ?? [];
      if (below.length === 0) return [];
      const names = [...reached.names, ...below];
      // A part that the caller was taken out of stays hidden.
      const isShown = reached.isOwner || access.mayRead(caller.identity, reached.owner, names);
      return isShown ? [{ lock, path: joinPath(names) }] : [];
    });
  }

  #find(
    caller: Caller,
    request: Place & { readonly token: string },
  ): { reached: Reached; lock: HeldLock; path: string } {
    const reached = this.#deps.access.reach(caller.identity, request.root, request.path, "write");
    existing(reached);
    const lock = this.#covering(reached).find(({ token }) => constantTimeEqual(token, request.token));
    if (lock === undefined) throw noSuchLock();
    return { reached, lock, path: pathOf(reached, lock) };
  }

  #covering(reached: Reached): HeldLock[] {
    const ids = reached.resolution.chain.map(({ id }) => id);
    const all = this.#deps.rule.held(reached.owner);
    return all.filter(
      ({ inodeId, isDeep }) => inodeId === reached.last.id || (isDeep && ids.includes(inodeId)),
    );
  }

  #seen(lock: HeldLock, path: string, token: string): SeenLock {
    const { username, isExclusive, isDeep, note, expiresAtMs } = lock;
    const secondsLeft = Math.max(0, Math.ceil((expiresAtMs - this.#deps.clock.wallMs()) / 1000));
    return { token, path, username, isExclusive, isDeep, note, secondsLeft };
  }
}

/** True for the credential that took a lock, and for a sign-in of its person. */
function mayEnd(lock: HeldLock, caller: Caller): boolean {
  const { limit, username } = caller.identity;
  return isOwnLock(lock, caller) || (limit === undefined && lock.username === username);
}

function pathOf(reached: Reached, lock: HeldLock): string {
  const depth = reached.resolution.chain.findIndex(({ id }) => id === lock.inodeId);
  return joinPath(reached.names.slice(0, depth));
}

function secondsOf(seconds: number): number {
  return seconds === 0 ? LOCK_MAX_SECONDS : Math.min(seconds, LOCK_MAX_SECONDS);
}

function noSuchLock(): GroveError {
  return new GroveError("NO_SUCH_LOCK", "there is no such lock of yours; it may have ended");
}
