// The tables of a data directory, their migrations by version, and the opening of connections.
import { DatabaseSync } from "node:sqlite";
import { GroveError } from "#base/errors.ts";
import { requireKnownSchema } from "#os/state-file.ts";
import { fillHeights } from "./height-upgrade.ts";
import { isBrokenDatabase } from "./sqlite-errors.ts";

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

/**
 * Each migrates the schema of the version before to the next, in one transaction. Never edit a released one.
 */
const MIGRATIONS: readonly (string | ((db: DatabaseSync) => void))[] = [
  `
  CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL) STRICT, WITHOUT ROWID;
  CREATE TABLE counter (name TEXT PRIMARY KEY, value INTEGER NOT NULL) STRICT, WITHOUT ROWID;

  -- One user's root. next_id is the lower half of the next inode's or content list's id, number the upper.
  CREATE TABLE root (
    number INTEGER PRIMARY KEY,
    owner TEXT NOT NULL UNIQUE,
    root_id TEXT NOT NULL UNIQUE,
    directory_id INTEGER NOT NULL UNIQUE,
    access_version INTEGER NOT NULL,
    live_bytes INTEGER NOT NULL,
    trash_bytes INTEGER NOT NULL,
    staging_bytes INTEGER NOT NULL,
    file_count INTEGER NOT NULL,
    next_id INTEGER NOT NULL,
    grant_count INTEGER NOT NULL
  ) STRICT;

  -- parent_id is NULL for a root's directory and for what is detached and waits for its removal.
  -- Of a directory size is the sum below it, tree_inodes and tree_files count everything below it.
  -- content_id is the chunk list of a file above 64 KiB; created_by is NULL when it was the owner.
  CREATE TABLE inode (
    id INTEGER PRIMARY KEY,
    parent_id INTEGER REFERENCES inode(id),
    name TEXT NOT NULL,
    kind INTEGER NOT NULL,
    size INTEGER NOT NULL,
    crc32 INTEGER NOT NULL,
    version INTEGER NOT NULL,
    mtime_ms INTEGER NOT NULL,
    ctime_ms INTEGER NOT NULL,
    flags INTEGER NOT NULL,
    content_id INTEGER,
    created_by TEXT,
    child_count INTEGER NOT NULL,
    tree_inodes INTEGER NOT NULL,
    tree_files INTEGER NOT NULL
  ) STRICT;
  CREATE UNIQUE INDEX inode_by_name ON inode (parent_id, name);

  CREATE TABLE inline_content (
    inode_id INTEGER PRIMARY KEY REFERENCES inode(id),
    data BLOB NOT NULL
  ) STRICT;

  -- One immutable file below chunks/. block_crcs holds one little-endian CRC-32 per block. refs counts file_chunk rows.
  CREATE TABLE chunk (
    id INTEGER PRIMARY KEY,
    name TEXT NOT NULL UNIQUE,
    length INTEGER NOT NULL,
    crc32 INTEGER NOT NULL,
    block_crcs BLOB NOT NULL,
    refs INTEGER NOT NULL
  ) STRICT;
  -- A position without a row is a hole and reads as zeros, and so does what a chunk is short of its span.
  CREATE TABLE file_chunk (
    content_id INTEGER NOT NULL,
    position INTEGER NOT NULL,
    chunk_id INTEGER NOT NULL REFERENCES chunk(id),
    PRIMARY KEY (content_id, position)
  ) STRICT, WITHOUT ROWID;
  CREATE INDEX file_chunk_by_chunk ON file_chunk (chunk_id);

  -- Chunk lists of uploads that are not committed yet; start-up purges them.
  CREATE TABLE staging (content_id INTEGER PRIMARY KEY, root_number INTEGER NOT NULL REFERENCES root(number)) STRICT;
  -- Detached trees and replaced chunk lists, removed in slices.
  CREATE TABLE purging (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    inode_id INTEGER REFERENCES inode(id),
    content_id INTEGER,
    CHECK ((inode_id IS NULL) <> (content_id IS NULL))
  ) STRICT;
  CREATE INDEX purging_by_inode ON purging (inode_id);
  -- Chunks that nothing refers to: first the file is unlinked, then both rows go.
  CREATE TABLE garbage (sequence INTEGER PRIMARY KEY, chunk_id INTEGER NOT NULL UNIQUE REFERENCES chunk(id)) STRICT;
  -- Directories below chunks/ that may hold files without a row after a crash.
  CREATE TABLE open_directory (name TEXT PRIMARY KEY) STRICT, WITHOUT ROWID;

  CREATE TABLE share_grant (
    inode_id INTEGER NOT NULL REFERENCES inode(id),
    username TEXT NOT NULL,
    granted_by TEXT NOT NULL,
    granted_at_ms INTEGER NOT NULL,
    PRIMARY KEY (inode_id, username)
  ) STRICT, WITHOUT ROWID;
  `,
  `
  -- One row is one item of an owner's trash: a file, or a folder with all that is in it. Its inode has no parent; sizes and counts are
  -- the inode's own. The id begins with the time. trashed_by is NULL when it was the owner.
  CREATE TABLE trash (
    root_number INTEGER NOT NULL REFERENCES root(number),
    id TEXT NOT NULL,
    inode_id INTEGER NOT NULL UNIQUE REFERENCES inode(id),
    original_path TEXT NOT NULL,
    trashed_at_ms INTEGER NOT NULL,
    trashed_by TEXT,
    PRIMARY KEY (root_number, id)
  ) STRICT, WITHOUT ROWID;
  CREATE INDEX trash_by_time ON trash (trashed_at_ms);
  CREATE INDEX trash_by_path ON trash (root_number, original_path);
  -- Shares that an item had when it was trashed: they count no more, and are told when it is restored.
  CREATE TABLE trash_grant (
    root_number INTEGER NOT NULL,
    trash_id TEXT NOT NULL,
    inode_id INTEGER NOT NULL REFERENCES inode(id),
    username TEXT NOT NULL,
    PRIMARY KEY (root_number, trash_id, inode_id, username),
    FOREIGN KEY (root_number, trash_id) REFERENCES trash(root_number, id)
  ) STRICT, WITHOUT ROWID;
  CREATE INDEX trash_grant_by_inode ON trash_grant (inode_id);
  `,
  `
  -- A grant knows the path at which it hangs, so that what a user may reach is found without a look at what others have.
  ALTER TABLE share_grant ADD COLUMN owner TEXT NOT NULL DEFAULT '';
  ALTER TABLE share_grant ADD COLUMN path TEXT NOT NULL DEFAULT '';
  CREATE INDEX share_grant_by_user ON share_grant (username, owner, path);
  CREATE INDEX share_grant_by_path ON share_grant (owner, path);
  `,
  `
  -- Chunks whose bytes were found wrong, short or missing; the files that use them have the flag of damage.
  CREATE TABLE damaged_chunk (
    chunk_id INTEGER PRIMARY KEY REFERENCES chunk(id) ON DELETE CASCADE,
    found_at_ms INTEGER NOT NULL,
    problem TEXT NOT NULL
  ) STRICT;
  CREATE INDEX inode_by_content ON inode (content_id) WHERE content_id IS NOT NULL;
  CREATE INDEX damaged_inode ON inode (id) WHERE (flags & 1) <> 0;
  `,
  `
  -- Resumable uploads; a start keeps them. content_id is the list of their chunks, crc32 that of the staged_bytes in it.
  CREATE TABLE upload (
    content_id INTEGER PRIMARY KEY,
    upload_id TEXT NOT NULL UNIQUE,
    root_number INTEGER NOT NULL REFERENCES root(number),
    username TEXT NOT NULL,
    path TEXT NOT NULL,
    size INTEGER NOT NULL,
    replaces INTEGER NOT NULL,
    if_match TEXT,
    mtime_ms INTEGER NOT NULL,
    staged_bytes INTEGER NOT NULL,
    crc32 INTEGER NOT NULL,
    touched_at_ms INTEGER NOT NULL
  ) STRICT;
  CREATE INDEX upload_by_user ON upload (username);
  CREATE INDEX upload_by_touch ON upload (touched_at_ms);
  `,
  `
  -- Copied directories that are not in sight yet; start-up purges them.
  CREATE TABLE copying (inode_id INTEGER PRIMARY KEY REFERENCES inode(id)) STRICT;
  `,
  `
  -- Where a former share hung, so that a page of the trash reads no tree.
  ALTER TABLE trash_grant ADD COLUMN path TEXT NOT NULL DEFAULT '';
  `,
  (db) => {
    // Levels below a directory, 0 for an empty one: a move knows from them how deep its tree would lie.
    db.exec("ALTER TABLE inode ADD COLUMN height INTEGER NOT NULL DEFAULT 0");
    fillHeights(db);
    db.exec("CREATE INDEX inode_by_height ON inode (parent_id, height) WHERE height > 0");
  },
  `
  -- 1 for an exclusion: what a share above would give ends here, for one user. In the trash it waits for the restore.
  ALTER TABLE share_grant ADD COLUMN excluded INTEGER NOT NULL DEFAULT 0;
  ALTER TABLE trash_grant ADD COLUMN excluded INTEGER NOT NULL DEFAULT 0;
  `,
  `
  -- Files and directories below a root's own directory, and in its trash.
  ALTER TABLE root ADD COLUMN live_inodes INTEGER NOT NULL DEFAULT 0;
  ALTER TABLE root ADD COLUMN trash_inodes INTEGER NOT NULL DEFAULT 0;
  UPDATE root SET
    live_inodes = coalesce((SELECT tree_inodes FROM inode WHERE id = directory_id), 0),
    trash_inodes = (SELECT coalesce(sum(1 + tree_inodes), 0) FROM trash JOIN inode ON inode.id = trash.inode_id
      WHERE root_number = root.number);
  `,
];

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
  const db = new DatabaseSync(path, { timeout: BUSY_TIMEOUT_MS, readOnly: true });
  refuseOldSqlite(db);
  db.exec(`
    PRAGMA trusted_schema = OFF;
    PRAGMA cell_size_check = ON;
    PRAGMA mmap_size = 0;
    PRAGMA temp_store = MEMORY;
    PRAGMA cache_size = -${READER_CACHE_KIB};
  `);
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
  requireKnownSchema(path, version, SCHEMA_VERSION);
  if (id !== APPLICATION_ID && (version !== 0 || id !== 0)) {
    throw new GroveError(
      "STORAGE_FAILED",
      `${path} is a database, but not one of Grove's; name another data directory`,
    );
  }
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
