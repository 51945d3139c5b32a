// Locks by the system on files that say nothing: they end with the process that holds them, whatever ends it.
import { closeSync, existsSync, openSync, statSync } from "node:fs";
import { DatabaseSync } from "node:sqlite";
import { GroveError } from "#base/errors.ts";

/** How long a lock that is only being looked at is waited for. */
const WAIT_MS = 5_000;
/** OFF is refused by defensive connections and would leave a journal beside the lock. */
const NO_JOURNAL = "PRAGMA journal_mode = MEMORY";

/**
 * Takes a lock that several may hold at once; returns how to let go. Throws what SQLite throws when somebody holds it alone.
 */
export function holdShared(path: string): () => void {
  const db = open(path, WAIT_MS);
  try {
    // A read keeps the lock for as long as its transaction lasts.
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
 * Takes a lock alone; returns how to let go. Throws DATA_IN_USE with the sentence when another process, or this one, holds it in any way.
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

/** Looks whether anybody holds a lock, as often as wanted and without keeping it. */
export class LockProbe {
  readonly #path: string;
  #db: DatabaseSync | undefined;
  #inode: number | undefined;

  constructor(path: string) {
    this.#path = path;
  }

  /** True also when it cannot be found out. */
  isHeld(): boolean {
    try {
      const file = statSync(this.#path, { throwIfNoEntry: false });
      // Somebody may have tidied up: what counts is the file that the next one to come opens.
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
  // SQLite would make the file readable for others. Never open it otherwise: the system drops a process's locks on a file
  // with any descriptor that it closes.
  if (!existsSync(path)) closeSync(openSync(path, "a", 0o600));
  return new DatabaseSync(path, { timeout });
}
