// Decides which errors of SQLite and the filesystem end all writing, and which refuse one change.
import { statfsSync } from "node:fs";
import { dirname } from "node:path";
import { GroveError } from "#base/errors.ts";
import { lacksDescriptors } from "#storage/chunks/lacks-descriptors.ts";

const SQLITE_BUSY = 5;
const SQLITE_LOCKED = 6;
const SQLITE_NOMEM = 7;
const SQLITE_READONLY = 8;
const SQLITE_IOERR = 10;
const SQLITE_CORRUPT = 11;
const SQLITE_FULL = 13;
const SQLITE_CANTOPEN = 14;
const SQLITE_TOOBIG = 18;
const SQLITE_CONSTRAINT = 19;
const SQLITE_NOTADB = 26;
/**
 * Refusals of one statement that leave the database as it was; any other SQLite error means a broken store.
 */
const HARMLESS: ReadonlySet<number> = new Set([
  SQLITE_BUSY,
  SQLITE_LOCKED,
  SQLITE_NOMEM,
  SQLITE_FULL,
  SQLITE_TOOBIG,
  SQLITE_CONSTRAINT,
]);
/** SQLite makes a file of shared memory, and the beginning of a log, before its first read. */
const ROOM_TO_OPEN_BYTES = 1_048_576;
const NO_SPACE: ReadonlySet<string> = new Set(["ENOSPC", "EDQUOT"]);

/** Primary result code of an error of SQLite; undefined for any other error. */
export function sqliteCode(error: unknown): number | undefined {
  if (!(error instanceof Error) || !("errcode" in error)) return undefined;
  return typeof error.errcode === "number" ? error.errcode & 0xff : undefined;
}

/** True for an SQLite error of a broken store: SQLITE_IOERR, CORRUPT, READONLY and their like. */
export function isBrokenDatabase(error: unknown): boolean {
  const code = sqliteCode(error);
  return code !== undefined && !HARMLESS.has(code);
}

/** Text of a broken store's error, for the way between threads; undefined for a harmless error. */
export function packError(error: unknown): string | undefined {
  return isBrokenDatabase(error) ? String(error) : undefined;
}

/** True when SQLite found no space on the disk. */
export function isDatabaseFull(error: unknown): boolean {
  return sqliteCode(error) === SQLITE_FULL;
}

/** True when another process holds a lock on the database for too long. */
export function isDatabaseBusy(error: unknown): boolean {
  const code = sqliteCode(error);
  return code === SQLITE_BUSY || code === SQLITE_LOCKED;
}

/** True when the database's content is damaged, beyond its disk. */
export function isDatabaseDamaged(error: unknown): boolean {
  const code = sqliteCode(error);
  return code === SQLITE_CORRUPT || code === SQLITE_NOTADB;
}

/** True when the filesystem lets this process not write the database or make its files. */
export function isDatabaseUnwritable(error: unknown): boolean {
  const code = sqliteCode(error);
  return code === SQLITE_READONLY || code === SQLITE_CANTOPEN;
}

/**
 * The refusal where a thread, or its connection to a database that others have open, could not begin for want of
 * descriptors: that passes, and says nothing of the database. Undefined otherwise.
 */
export function notBegun(error: unknown): GroveError | undefined {
  const isNoThread = error instanceof Error && "code" in error && error.code === "ERR_WORKER_INIT_FAILED";
  if (!isNoThread && !lacksDescriptors(error) && sqliteCode(error) !== SQLITE_CANTOPEN) return undefined;
  return new GroveError("OVERLOADED", "too many open files", { cause: error });
}

/** The refusal of a change without disk space. */
export function diskFull(cause?: unknown): GroveError {
  return new GroveError("DISK_RESERVE", "the disk is full; nothing was changed", { cause });
}

/** True where a database may lack the room for its first read. */
export function lacksRoomToOpen(directory: string): boolean {
  const { bavail, bsize } = statfsSync(directory);
  return bavail * bsize < ROOM_TO_OPEN_BYTES;
}

/** The error of an operator's command on a data directory: SQLite calls a full disk an I/O error there. */
export function whyNotRead(directory: string, error: unknown): unknown {
  if (sqliteCode(error) !== SQLITE_IOERR || !lacksRoomToOpen(directory)) return error;
  const text = `the disk of ${directory} is full: free 1 MiB there, without which its database cannot be opened`;
  return new GroveError("DISK_RESERVE", text, { cause: error });
}

/** The refusal of a change for which the filesystem has no inode: bytes freed elsewhere on it do not help. */
function inodesUsedUp(cause: unknown): GroveError {
  return new GroveError(
    "DISK_RESERVE",
    "the node's filesystem has no inodes left for another file, whatever room it has; nothing was changed",
    { cause },
  );
}

/** True when a filesystem without free inodes refused a file: the error's code is that of a full disk. */
function lacksInodes(error: object): boolean {
  if (!("path" in error) || typeof error.path !== "string") return false;
  try {
    const { files, ffree } = statfsSync(dirname(error.path));
    return files > 0 && ffree === 0;
  } catch {
    return false;
  }
}

/** The refusal of every change after a failed flush. */
export function storageFailed(reason: string): GroveError {
  return new GroveError("STORAGE_FAILED", `the store takes no more changes until it is restarted: ${reason}`);
}

/**
 * The refusal for a failed open or write of a chunk file that leaves the store sound; undefined otherwise.
 */
export function harmlessFileError(error: unknown): GroveError | undefined {
  if (!(error instanceof Error)) return undefined;
  const code = "code" in error ? String(error.code) : "";
  if (NO_SPACE.has(code)) return lacksInodes(error) ? inodesUsedUp(error) : diskFull(error);
  if (lacksDescriptors(error)) {
    return new GroveError("OVERLOADED", "too many open files", { cause: error });
  }
  return undefined;
}
