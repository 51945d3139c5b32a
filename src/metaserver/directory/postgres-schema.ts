// The tables of the metadata store in PostgreSQL, in a schema of their own, and their migrations.
import type { ClientBase } from "pg";
import { GroveError } from "#base/errors.ts";
import { commandToPutBack, copyTables } from "#metaserver/sql/postgres-copy.ts";
import type { SchemaUpgrade } from "#os/schema-copy.ts";
import { requireKnownSchema } from "#os/state-file.ts";

/**
 * Each entry takes the schema one version further. Entries are never changed,
 * only added. The tables equal SQLite's, column by column.
 */
const MIGRATIONS: readonly string[] = [
  `
  CREATE TABLE settings (key TEXT PRIMARY KEY, value TEXT NOT NULL);
  -- Whoever changes something that others decide by holds this row.
  INSERT INTO settings (key, value) VALUES ('mutex', '');
  CREATE TABLE nodes (
    fs_id TEXT PRIMARY KEY,
    name TEXT NOT NULL,
    address TEXT NOT NULL,
    software_version TEXT NOT NULL,
    instance_id TEXT NOT NULL,
    data_id TEXT NOT NULL,
    holder_key TEXT,
    first_key TEXT,
    epoch BIGINT NOT NULL,
    disk_total BIGINT NOT NULL,
    disk_free BIGINT NOT NULL,
    disk_reserve BIGINT NOT NULL,
    draining BIGINT NOT NULL,
    roots_version TEXT,
    last_seen_ms BIGINT NOT NULL,
    roots_refused BIGINT NOT NULL DEFAULT 0
  );
  CREATE TABLE roots (
    owner TEXT PRIMARY KEY,
    root_id TEXT NOT NULL UNIQUE,
    fs_id TEXT NOT NULL,
    held BIGINT NOT NULL,
    version BIGINT NOT NULL,
    assigned_ms BIGINT NOT NULL
  );
  CREATE INDEX roots_by_node ON roots (fs_id);
  CREATE TABLE grants (
    owner TEXT NOT NULL,
    "user" TEXT NOT NULL,
    path TEXT NOT NULL,
    version BIGINT NOT NULL,
    granted BIGINT NOT NULL,
    PRIMARY KEY (owner, "user", path)
  );
  CREATE INDEX grants_by_user ON grants ("user", granted);
  CREATE TABLE subjects (username TEXT PRIMARY KEY, issuer TEXT NOT NULL, subject TEXT NOT NULL);
  `,
  `
  CREATE TABLE ssh_nodes (
    id TEXT PRIMARY KEY,
    host TEXT NOT NULL,
    port BIGINT NOT NULL,
    "user" TEXT NOT NULL,
    host_key TEXT NOT NULL,
    repository TEXT NOT NULL,
    services TEXT NOT NULL
  );
  `,
  `
  -- Pages of registrations that have not come whole yet.
  CREATE TABLE staged_pages (
    fs_id TEXT NOT NULL,
    instance_id TEXT NOT NULL,
    registration BIGINT NOT NULL,
    page BIGINT NOT NULL,
    roots TEXT NOT NULL,
    begun_ms BIGINT NOT NULL,
    PRIMARY KEY (fs_id, instance_id, page)
  );
  -- Nodes that may hold roots which are not here.
  CREATE TABLE unlisted_nodes (fs_id TEXT PRIMARY KEY, given_up BIGINT NOT NULL);
  -- Each heartbeat counts its node's roots, of which there may be many thousands.
  CREATE INDEX roots_held_by_node ON roots (fs_id, held);
  DROP INDEX roots_by_node;
  `,
  `
  -- What an operator has said of an address counts by its version, whatever a node or an older copy of the store says.
  ALTER TABLE subjects ADD COLUMN version BIGINT NOT NULL DEFAULT 0;
  CREATE INDEX subjects_by_version ON subjects (version, username);
  `,
];

/** The schema version that this program writes. */
const SCHEMA_VERSION: number = MIGRATIONS.length;

/** A number of Grove's own, "GrvM" in ASCII, so that only one of two processes makes the tables. */
const ADVISORY_LOCK = 0x47_72_76_4d;

/** Undefined table, undefined schema: a database without Grove's tables. */
const NOT_MADE: ReadonlySet<unknown> = new Set(["42P01", "3F000"]);
/** Undefined function, feature not supported: servers with PostgreSQL's protocol and no advisory locks. */
const NO_LOCKS: ReadonlySet<unknown> = new Set(["42883", "0A000"]);

/**
 * Makes the tables, or copies and migrates them in one transaction; returns that upgrade. Throws BAD_ARGUMENT
 * for those of a newer version and where they cannot be copied, and what pg throws.
 */
export async function migrate(client: ClientBase): Promise<SchemaUpgrade | undefined> {
  if ((await versionOf(client)) === SCHEMA_VERSION) return undefined;
  return await inTransaction(client, async () => {
    await lock(client);
    // Another process may have been faster.
    const version = await versionOf(client, { inTransaction: true });
    if (version === SCHEMA_VERSION) return undefined;
    if (version === 0) {
      // Where it exists, the user may have no right but to use it.
      const { rows } = await client.query("SELECT nspname FROM pg_namespace WHERE nspname = 'grove'");
      if (rows.length === 0) await client.query("CREATE SCHEMA grove");
      const current = await client.query("SELECT current_schema() AS name");
      if ((current.rows[0] as { name: string | null } | undefined)?.name !== "grove") {
        throw Object.assign(new Error("the schema may not be used"), { code: "42501" });
      }
      await client.query("CREATE TABLE IF NOT EXISTS schema_version (version BIGINT PRIMARY KEY)");
    }
    const copy = version === 0 ? undefined : await copyTables(client, version);
    for (let next = version; next < SCHEMA_VERSION; next++) {
      await client.query(MIGRATIONS[next] ?? "");
      await client.query("INSERT INTO schema_version (version) VALUES ($1)", [next + 1]);
    }
    return copy === undefined ? undefined : { from: version, to: SCHEMA_VERSION, copy };
  });
}

/** Throws BAD_ARGUMENT unless the tables have this program's version. */
export async function requireTables(client: ClientBase): Promise<undefined> {
  const version = await versionOf(client);
  if (version === SCHEMA_VERSION) return undefined;
  throw new GroveError(
    "BAD_ARGUMENT",
    version === 0
      ? "the database has no metadata store yet: the metaserver makes it when it first starts"
      : `the metadata store has schema ${version}: this Grove's metaserver brings it to ${SCHEMA_VERSION}`,
  );
}

async function versionOf(
  client: ClientBase,
  options: { readonly inTransaction?: boolean } = {},
): Promise<number> {
  const isInside = options.inTransaction === true;
  if (isInside) await client.query("SAVEPOINT look");
  let version = 0;
  try {
    const { rows } = await client.query("SELECT MAX(version) AS version FROM schema_version");
    version = Number((rows[0] as { version: bigint | null } | undefined)?.version ?? 0);
  } catch (error) {
    if (!NOT_MADE.has((error as { code?: unknown }).code)) throw error;
    if (isInside) await client.query("ROLLBACK TO SAVEPOINT look");
  }
  requireKnownSchema(
    "the metadata store",
    version,
    SCHEMA_VERSION,
    `start the newer Grove, or put the copy from before the upgrade into its place: ${commandToPutBack(SCHEMA_VERSION)}`,
  );
  return version;
}

async function lock(client: ClientBase): Promise<void> {
  await client.query("SAVEPOINT lock");
  try {
    await client.query("SELECT pg_advisory_xact_lock($1)", [ADVISORY_LOCK]);
  } catch (error) {
    if (!NO_LOCKS.has((error as { code?: unknown }).code)) throw error;
    // There one of two processes that make a table fails, and then checks again.
    await client.query("ROLLBACK TO SAVEPOINT lock");
  }
}

async function inTransaction<T>(client: ClientBase, change: () => Promise<T>): Promise<T> {
  await client.query("BEGIN");
  try {
    const result = await change();
    await client.query("COMMIT");
    return result;
  } catch (error) {
    await client.query("ROLLBACK").catch(() => undefined);
    throw error;
  }
}
