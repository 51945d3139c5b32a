// The tables of a data directory, their migrations by version, and the opening of connections.
import { accessSync, constants, statSync } from "node:fs";
import { dirname } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { pathToFileURL } from "node:url";
import { GroveError } from "#base/errors.ts";
import { shellWord } from "#base/shell-word.ts";
import { copyInWords } from "#os/schema-copy.ts";
import { requireKnownSchema } from "#os/state-file.ts";
import { MIGRATIONS } from "./schema-steps.ts";
import { isBrokenDatabase, isDatabaseUnwritable } from "./sqlite-errors.ts";

/** Directories that the storage writer keeps in memory between transactions. */
export const STORAGE_CACHED_DIRECTORIES = 16_384;

/** File of the database inside the data directory. */
export const DATABASE_FILE = "inodes.db";
/** Application id of Grove's databases ("Grov"). */
const APPLICATION_ID = 0x47726f76;
const OLDEST_SQLITE = [3, 51, 3] as const;
/** Pages of 4 KiB in memory: 24 MiB for the writer, 12 MiB for a reader. */
const WRITER_CACHE_KIB = 24_576;
const READER_CACHE_KIB = 12_288;
/** How long a connection waits for another connection's lock. */
export const BUSY_TIMEOUT_MS = 5_000;

/** `kind` of an inode row. */
export const KIND_FILE = 0;
/** `kind` of an inode row. */
export const KIND_DIRECTORY = 1;
/** Bit of `flags`: stored bytes did not match their checksum. */
export const FLAG_DAMAGED = 1;
/** Bit of `flags`: rows of share_grant name this inode, grants or exclusions. */
export const FLAG_HAS_GRANTS = 2;

/** Key in `meta`: the version of the last rename of a user that this data directory has carried out. */
export const RENAMED_UP_TO = "user_renames_version";

/** Schema that this program writes; older ones are migrated, newer ones refused. */
export const SCHEMA_VERSION: number = MIGRATIONS.length;

/**
 * Opens the one connection that writes. Throws STORAGE_FAILED when SQLite is too old for a safe WAL.
 */
export function openWriter(path: string): DatabaseSync {
  const db = new DatabaseSync(path, { timeout: BUSY_TIMEOUT_MS, enableForeignKeyConstraints: true });
  refuseOldSqlite(db);
  // The writer makes checkpoints between its transactions, never inside a commit.
  db.exec(`
    PRAGMA journal_mode = WAL;
    PRAGMA synchronous = FULL;
    PRAGMA foreign_keys = ON;
    PRAGMA trusted_schema = OFF;
    PRAGMA cell_size_check = ON;
    PRAGMA mmap_size = 0;
    PRAGMA temp_store = MEMORY;
    PRAGMA wal_autocheckpoint = 0;
    PRAGMA cache_size = -${WRITER_CACHE_KIB};
  `);
  return db;
}

/**
 * Brings the whole log into the database and closes the only connection. A plain close would hide a failed
 * flush. After such a failure the connection stays open, since closing would repeat the flush.
 */
export function closeWriter(db: DatabaseSync): void {
  try {
    db.exec("PRAGMA wal_checkpoint(TRUNCATE)");
  } catch (error) {
    if (!isBrokenDatabase(error)) db.close();
    throw error;
  }
  db.close();
}

/** Opens a connection that can only read. */
export function openReader(path: string): DatabaseSync {
  return readerOf(new DatabaseSync(path, { timeout: BUSY_TIMEOUT_MS, readOnly: true }));
}

/**
 * The same for tools, also on a filesystem that has turned read-only: without a log beside it SQLite would
 * have to make one there. Throws STORAGE_FAILED with advice where a log cannot be read.
 */
export function openReaderAnywhere(path: string): DatabaseSync {
  let db: DatabaseSync | undefined;
  try {
    db = openReader(path);
    schemaVersionOf(db);
    return db;
  } catch (error) {
    db?.close();
    if (!isDatabaseUnwritable(error) || !isOnReadOnlyDisk(path)) throw error;
  }
  if ((statSync(`${path}-wal`, { throwIfNoEntry: false })?.size ?? 0) > 0) {
    throw new GroveError(
      "STORAGE_FAILED",
      `${path} lies on a disk that is read-only, with changes in its log that cannot be read there: copy the folder to another disk ('cp -a'), and name the copy`,
    );
  }
  return openImmutable(path);
}

/** Opens a database that no process changes: without a log or a lock beside it. */
export function openImmutable(path: string): DatabaseSync {
  const url = pathToFileURL(path);
  url.searchParams.set("immutable", "1");
  return readerOf(new DatabaseSync(url, { readOnly: true }));
}

/** True for a file on a filesystem that takes no changes. */
export function isOnReadOnlyDisk(path: string): boolean {
  try {
    accessSync(dirname(path), constants.W_OK);
    return false;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === "EROFS";
  }
}

function readerOf(db: DatabaseSync): DatabaseSync {
  try {
    refuseOldSqlite(db);
    db.exec(`
      PRAGMA trusted_schema = OFF;
      PRAGMA cell_size_check = ON;
      PRAGMA mmap_size = 0;
      PRAGMA temp_store = MEMORY;
      PRAGMA cache_size = -${READER_CACHE_KIB};
    `);
  } catch (error) {
    if (db.isOpen) db.close();
    throw error;
  }
  return db;
}

function refuseOldSqlite(db: DatabaseSync): void {
  const { version } = db.prepare("SELECT sqlite_version() AS version").get() as { version: string };
  if (isOldSqlite(version)) {
    db.close();
    throw new GroveError(
      "STORAGE_FAILED",
      `this Node brings SQLite ${version}, which can damage a database in WAL mode; use a Node with SQLite ${OLDEST_SQLITE.join(".")} or newer`,
    );
  }
}

/** True for versions before 3.51.3. */
export function isOldSqlite(version: string): boolean {
  const parts = version.split(".").map(Number);
  for (const [index, oldest] of OLDEST_SQLITE.entries()) {
    const part = parts[index] ?? 0;
    if (part !== oldest) return part < oldest;
  }
  return false;
}

/** The schema version that a database holds; 0 for an empty one. */
export function schemaVersionOf(db: DatabaseSync): number {
  return (db.prepare("PRAGMA user_version").get() as { user_version: number }).user_version;
}

/**
 * Throws BAD_ARGUMENT when a newer program made the database, STORAGE_FAILED when it is not Grove's.
 */
export function refuseForeignSchema(db: DatabaseSync, path: string): void {
  const version = schemaVersionOf(db);
  const { application_id: id } = db.prepare("PRAGMA application_id").get() as { application_id: number };
  requireKnownSchema(path, version, SCHEMA_VERSION, wayBackOf(path));
  if (id !== APPLICATION_ID && (version !== 0 || id !== 0)) {
    throw new GroveError(
      "STORAGE_FAILED",
      `${path} is a database, but not one of Grove's; name another data directory`,
    );
  }
}

/** Only the newer Grove knows its way back; a copy loses what came since, and chunks that went since. */
function wayBackOf(path: string): string {
  const command = `grove downgrade -data ${shellWord(dirname(path))} -schema ${SCHEMA_VERSION}`;
  return (
    `start the newer Grove, or run its '${command}', which keeps what has changed since the upgrade` +
    copyInWords(path, SCHEMA_VERSION)
  );
}

/** Migrates the schema in one transaction; an empty database gets the identity of its data directory. */
export function migrate(db: DatabaseSync, dataId: string): void {
  const from = schemaVersionOf(db);
  if (from === SCHEMA_VERSION) return;
  db.exec("BEGIN IMMEDIATE");
  try {
    for (const migration of MIGRATIONS.slice(from)) {
      if (typeof migration === "string") db.exec(migration);
      else migration(db);
    }
    if (from === 0) db.prepare("INSERT INTO meta (key, value) VALUES ('data_id', ?)").run(dataId);
    db.exec(`PRAGMA application_id = ${APPLICATION_ID}`);
    db.exec(`PRAGMA user_version = ${SCHEMA_VERSION}`);
    db.exec("COMMIT");
  } catch (error) {
    if (db.isTransaction) db.exec("ROLLBACK");
    throw error;
  }
}
