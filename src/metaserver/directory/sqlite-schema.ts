// The tables of the metadata store in SQLite, and their migrations.
import type { DatabaseSync } from "node:sqlite";
import { GroveError } from "#base/errors.ts";
import { copyBeforeUpgrade, copyInWords, type SchemaUpgrade } from "#os/schema-copy.ts";
import { requireKnownSchema } from "#os/state-file.ts";

/** Marks the file as Grove's: "GrvM" in ASCII. */
const APPLICATION_ID = 0x47_72_76_4d;

/** Each entry takes the schema one version further. Entries are only added. */
const MIGRATIONS: readonly string[] = [
  `
  CREATE TABLE settings (key TEXT PRIMARY KEY, value TEXT NOT NULL) STRICT, WITHOUT ROWID;
  CREATE TABLE nodes (
    fs_id TEXT PRIMARY KEY,
    name TEXT NOT NULL,
    address TEXT NOT NULL,
    software_version TEXT NOT NULL,
    instance_id TEXT NOT NULL,
    data_id TEXT NOT NULL,
    -- Public key that holds the lease, and the one that the id first registered with; null in mock mode.
    holder_key TEXT,
    first_key TEXT,
    epoch INTEGER NOT NULL,
    disk_total INTEGER NOT NULL,
    disk_free INTEGER NOT NULL,
    disk_reserve INTEGER NOT NULL,
    draining INTEGER NOT NULL,
    roots_version TEXT,
    last_seen_ms INTEGER NOT NULL
  ) STRICT, WITHOUT ROWID;
  CREATE TABLE roots (
    owner TEXT PRIMARY KEY,
    root_id TEXT NOT NULL UNIQUE,
    fs_id TEXT NOT NULL,
    -- 1 once the node has said that it holds the root, or has come to fetch it.
    held INTEGER NOT NULL,
    version INTEGER NOT NULL,
    assigned_ms INTEGER NOT NULL
  ) STRICT, WITHOUT ROWID;
  CREATE INDEX roots_by_node ON roots (fs_id);
  -- An ended grant stays as a row, so that a late message of an older version cannot bring it back.
  CREATE TABLE grants (
    owner TEXT NOT NULL,
    user TEXT NOT NULL,
    path TEXT NOT NULL,
    version INTEGER NOT NULL,
    granted INTEGER NOT NULL,
    PRIMARY KEY (owner, user, path)
  ) STRICT, WITHOUT ROWID;
  CREATE INDEX grants_by_user ON grants (user, owner, path) WHERE granted = 1;
  `,
  `
  -- The person behind each address (D21).
  CREATE TABLE subjects (
    username TEXT PRIMARY KEY,
    issuer TEXT NOT NULL,
    subject TEXT NOT NULL
  ) STRICT, WITHOUT ROWID;
  -- Roots that the node holds and the store has elsewhere: they are not missing here.
  ALTER TABLE nodes ADD COLUMN roots_refused INTEGER NOT NULL DEFAULT 0;
  `,
  `
  CREATE TABLE ssh_nodes (
    id TEXT PRIMARY KEY,
    host TEXT NOT NULL,
    port INTEGER NOT NULL,
    "user" TEXT NOT NULL,
    host_key TEXT NOT NULL,
    repository TEXT NOT NULL,
    services TEXT NOT NULL
  ) STRICT, WITHOUT ROWID;
  `,
  `
  -- Pages of registrations that have not come whole yet.
  CREATE TABLE staged_pages (
    fs_id TEXT NOT NULL,
    instance_id TEXT NOT NULL,
    registration INTEGER NOT NULL,
    page INTEGER NOT NULL,
    roots TEXT NOT NULL,
    begun_ms INTEGER NOT NULL,
    PRIMARY KEY (fs_id, instance_id, page)
  ) STRICT;
  -- Nodes that may hold roots which are not here.
  CREATE TABLE unlisted_nodes (fs_id TEXT PRIMARY KEY, given_up INTEGER NOT NULL) STRICT, WITHOUT ROWID;
  -- Each heartbeat counts its node's roots, of which there may be many thousands.
  CREATE INDEX roots_held_by_node ON roots (fs_id, held);
  DROP INDEX roots_by_node;
  `,
  `
  -- What an operator has said of an address counts by its version, whatever a node or an older copy of the store says.
  ALTER TABLE subjects ADD COLUMN version INTEGER NOT NULL DEFAULT 0;
  CREATE INDEX subjects_by_version ON subjects (version, username);
  `,
];

/** The schema version that this program writes. */
export const SCHEMA_VERSION: number = MIGRATIONS.length;

/**
 * Refuses a file that a reader cannot use. Throws BAD_ARGUMENT, or STORE_UNAVAILABLE for one that the
 * MetaServer has yet to migrate.
 */
export function requireCurrentSchema(database: DatabaseSync): void {
  const version = pragma(database, "user_version");
  if (version === SCHEMA_VERSION && pragma(database, "application_id") === APPLICATION_ID) return;
  requireKnownSchema("the metadata store", version, SCHEMA_VERSION);
  const isOurs = pragma(database, "application_id") === APPLICATION_ID;
  throw isOurs
    ? new GroveError(
        "STORE_UNAVAILABLE",
        "the metadata store is of an older Grove: start the MetaServer first, which brings it up to date",
      )
    : new GroveError("BAD_ARGUMENT", "this file is not a metadata store of Grove");
}

function pragma(database: DatabaseSync, name: string): number {
  return Number(database.prepare(`PRAGMA ${name}`).get()?.[name] ?? 0);
}

/**
 * Makes the tables, or copies the file and migrates them; returns that upgrade. Throws BAD_ARGUMENT for a file
 * of a newer version or of another program, STORAGE_FAILED where there is no room for the copy.
 */
export function migrate(database: DatabaseSync, path: string): SchemaUpgrade | undefined {
  const version = pragma(database, "user_version");
  const applicationId = pragma(database, "application_id");
  const isEmpty = database.prepare("SELECT 1 FROM sqlite_schema LIMIT 1").get() === undefined;
  if (applicationId !== APPLICATION_ID && !(isEmpty && applicationId === 0)) {
    throw new GroveError("BAD_ARGUMENT", "this file is not a metadata store of Grove");
  }
  const copy = copyInWords(path, SCHEMA_VERSION);
  requireKnownSchema("the metadata store", version, SCHEMA_VERSION, `start the newer Grove${copy}`);
  const upgrade =
    version === 0 || version === SCHEMA_VERSION
      ? undefined
      : { from: version, to: SCHEMA_VERSION, copy: copyBeforeUpgrade(database, path, version) };
  if (version === SCHEMA_VERSION) return undefined;
  // All steps or none: after some of them the next start would copy anew, and drop the copy from before.
  database.exec("BEGIN IMMEDIATE");
  try {
    for (const migration of MIGRATIONS.slice(version)) database.exec(migration);
    database.exec(
      `PRAGMA user_version = ${SCHEMA_VERSION}; PRAGMA application_id = ${APPLICATION_ID}; COMMIT`,
    );
  } catch (error) {
    if (database.isTransaction) database.exec("ROLLBACK");
    throw error;
  }
  return upgrade;
}
