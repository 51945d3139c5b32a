// System locks on empty files, released when their process ends for any reason.
import { closeSync, constants, existsSync, fchownSync, fstatSync, openSync, statSync } from "node:fs";
import { dirname } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { setTimeout as sleep } from "node:timers/promises";
import { GroveError, isGroveError } from "#base/errors.ts";
import { giveToFolderOwner } from "./folder-owner.ts";

/** Longest wait for a lock that a probe holds. */
const WAIT_MS = 5_000;
/** Longest wait for another's short change, and the time between two looks. */
const CHANGE_WAIT_MS = 10_000;
const CHANGE_LOOK_MS = 20;
/** Defensive connections refuse OFF, which would also leave a journal beside the lock. */
const NO_JOURNAL = "PRAGMA journal_mode = MEMORY";

/**
 * Makes a lock file where there is none. It is its folder's owner's, also where root makes it or has made it: a
 * service that cannot open it would take the lock for held for ever. Not while this process holds the lock.
 */
export function makeLockFile(path: string): void {
  const { O_CREAT, O_NOFOLLOW, O_RDWR } = constants;
  const descriptor = openSync(path, O_RDWR | O_CREAT | O_NOFOLLOW, 0o600);
  try {
    if (process.getuid?.() !== 0) return;
    const { uid, nlink, size } = fstatSync(descriptor);
    const folder = statSync(dirname(path));
    // Another link, or content, would be something else of root's.
    if (uid === 0 && nlink === 1 && size === 0) fchownSync(descriptor, folder.uid, folder.gid);
  } finally {
    closeSync(descriptor);
  }
}

/**
 * Takes a shared lock; returns the function that releases it. Throws SQLite's error if it is held
 * exclusively.
 */
export function holdShared(path: string): () => void {
  const db = open(path, WAIT_MS);
  try {
    // A read keeps the lock until its transaction ends.
    db.exec(`${NO_JOURNAL}; BEGIN`);
    db.prepare("SELECT count(*) FROM sqlite_schema").get();
  } catch (error) {
    db.close();
    throw error;
  }
  return () => {
    if (db.isOpen) db.close();
  };
}

/**
 * Takes an exclusive lock; returns the function that releases it. Throws DATA_IN_USE with the sentence when
 * another process, or this one, holds it in any way.
 */
export function holdAlone(path: string, sentence: string): () => void {
  const db = open(path, 0);
  try {
    db.exec(`${NO_JOURNAL}; PRAGMA locking_mode = EXCLUSIVE; BEGIN EXCLUSIVE`);
  } catch (cause) {
    db.close();
    throw new GroveError("DATA_IN_USE", sentence, { cause });
  }
  return () => {
    if (db.isOpen) db.close();
  };
}

/**
 * Runs a short change under an exclusive lock, for which it waits up to waitMs. The lock file belongs to its
 * folder's owner, also where root makes it. Throws DATA_IN_USE with the sentence when another change, of this
 * process or another, holds the lock longer.
 */
export async function changeAlone<T>(
  path: string,
  sentence: string,
  change: () => Promise<T>,
  waitMs: number = CHANGE_WAIT_MS,
): Promise<T> {
  for (let left = Math.ceil(waitMs / CHANGE_LOOK_MS); ; left--) {
    let release: () => void;
    try {
      release = holdAlone(path, sentence);
    } catch (error) {
      if (left <= 0 || !isGroveError(error, "DATA_IN_USE")) throw error;
      await sleep(CHANGE_LOOK_MS);
      continue;
    }
    try {
      await giveToFolderOwner(dirname(path), [path]);
      return await change();
    } finally {
      release();
    }
  }
}

/** Checks repeatedly whether a lock is held, without keeping it. */
export class LockProbe {
  readonly #path: string;
  #db: DatabaseSync | undefined;
  #inode: number | undefined;

  constructor(path: string) {
    this.#path = path;
  }

  /** True also when the check fails. */
  isHeld(): boolean {
    try {
      const file = statSync(this.#path, { throwIfNoEntry: false });
      // The file may have been removed and made anew: only the file that the next process opens counts.
      if (file?.ino !== this.#inode) this.close();
      if (file === undefined) return false;
      if (this.#db === undefined) {
        this.#db = open(this.#path, 0);
        this.#db.exec(NO_JOURNAL);
        this.#inode = file.ino;
      }
      this.#db.exec("BEGIN EXCLUSIVE");
      this.#db.exec("ROLLBACK");
      return false;
    } catch {
      return true;
    }
  }

  close(): void {
    this.#db?.close();
    this.#db = undefined;
    this.#inode = undefined;
  }
}

function open(path: string, timeout: number): DatabaseSync {
  // SQLite would make the file readable for others. Open it nowhere else: the system drops a process's locks
  // on a file with any descriptor that the process closes.
  if (!existsSync(path)) makeLockFile(path);
  return new DatabaseSync(path, { timeout });
}
