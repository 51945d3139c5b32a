// The shared engine's tables and functions in PostgreSQL, in a schema of their own for each cluster.
import type { ClientBase } from "pg";
import { requireKnownSchema } from "#os/state-file.ts";
import { FLAG_DAMAGED } from "#storage/metadata/schema.ts";
import { ARRIVAL_EPOCHS, COMMIT_ARRIVAL, MAKE_ARRIVALS } from "./arrival-schema.ts";
import { COMMIT_ROWS } from "./commit-schema.ts";
import { BEGIN_DEPARTURE, MAKE_DEPARTURES, NOTE_DEPARTURES } from "./departure-schema.ts";
import { MAKE_RENAMES } from "./rename-schema.ts";
import { SHARED_TABLES, type SharedTable } from "./shared-tables.ts";

/** The schema version that this program writes. */
const SCHEMA_VERSION = 1;
/** A number of Grove's own, "GrvI" in ASCII, so that only one of two processes makes the tables. */
const ADVISORY_LOCK = 0x47_72_76_49;

/** Later than the others: made beside them where they are without. */
const LATER = new Set(["link"]);
const TABLES = SHARED_TABLES.filter(({ name }) => !LATER.has(name))
  .map(createTable)
  .join("\n");
const LATER_TABLES = SHARED_TABLES.filter(({ name }) => LATER.has(name))
  .map(createTable)
  .join("\n");

/**
 * A holder commits under its epoch and the number of its next batch. `last_group` tells afterwards whether a
 * commit without an answer is in the table, `prior_group` the same after a take-over.
 */
const MAKE = `
  CREATE TABLE schema_version (version BIGINT PRIMARY KEY);
  INSERT INTO schema_version (version) VALUES (${SCHEMA_VERSION});

  ${TABLES}
  ALTER TABLE inode ADD CONSTRAINT inode_by_name UNIQUE (parent_id, name) DEFERRABLE;
  ALTER TABLE root ADD CONSTRAINT root_by_owner UNIQUE (owner);
  ALTER TABLE root ADD CONSTRAINT root_by_id UNIQUE (root_id);
  CREATE INDEX file_chunk_by_chunk ON file_chunk (chunk_id);
  CREATE INDEX inode_by_content ON inode (content_id) WHERE content_id IS NOT NULL;
  CREATE INDEX lock_by_root ON lock (root_number);
  CREATE INDEX upload_by_root ON upload (root_number);
  CREATE INDEX staging_by_root ON staging (root_number);
  CREATE INDEX share_grant_by_path ON share_grant (owner, path);
  CREATE INDEX trash_by_time ON trash (root_number, trashed_at_ms);
  CREATE INDEX copying_by_root ON copying ((inode_id >> 32));
  CREATE INDEX purging_by_root ON purging ((coalesce(inode_id, content_id) >> 32));
  CREATE INDEX garbage_by_chunk ON garbage (chunk_id);
  CREATE INDEX inode_by_height ON inode (parent_id, height) WHERE height > 0;
  CREATE SEQUENCE root_number;
  -- Each cache of a process gives out chunk numbers from a range of its own, so wide that none ends.
  CREATE SEQUENCE id_range MINVALUE 0;

  -- A process, while its number rises; an ended one never comes back under its name.
  CREATE TABLE instance (
    id TEXT COLLATE "C" PRIMARY KEY,
    address TEXT NOT NULL,
    beat BIGINT NOT NULL,
    is_ended BOOLEAN NOT NULL,
    -- How long others watch an unchanged number before they take its roots.
    lease_ms BIGINT NOT NULL
  ) WITH (fillfactor = 50);

  CREATE TABLE holding (
    root_number BIGINT PRIMARY KEY,
    instance TEXT COLLATE "C" NOT NULL,
    epoch BIGINT NOT NULL,
    last_batch BIGINT NOT NULL,
    last_group TEXT COLLATE "C" NOT NULL,
    prior_epoch BIGINT NOT NULL,
    prior_group TEXT COLLATE "C" NOT NULL,
    taken_at TIMESTAMPTZ NOT NULL DEFAULT clock_timestamp()
  ) WITH (fillfactor = 50);
  CREATE INDEX holding_by_instance ON holding (instance, root_number);

  -- Names for chunks in the object store, durable before the first of them is used.
  CREATE TABLE chunk_block (
    id TEXT COLLATE "C" PRIMARY KEY,
    root_id TEXT COLLATE "C" NOT NULL,
    epoch BIGINT NOT NULL,
    since_ms BIGINT NOT NULL,
    closed_at TIMESTAMPTZ,
    is_swept_once BOOLEAN NOT NULL DEFAULT FALSE
  );
  CREATE INDEX chunk_block_by_root ON chunk_block (root_id, epoch);
  CREATE UNIQUE INDEX chunk_by_name ON chunk (name);
  -- Since when the chunk has no file.
  ALTER TABLE garbage ADD COLUMN dropped_at TIMESTAMPTZ NOT NULL DEFAULT clock_timestamp();
  CREATE INDEX garbage_by_time ON garbage (dropped_at);

  -- Quotas are by name of the user: they may be there before the root is. NULL is the default.
  CREATE TABLE quota (username TEXT COLLATE "C" PRIMARY KEY, bytes NUMERIC(20), inodes BIGINT);

  -- Of this database: a copy of it has the same, and the object store tells which of both may remove chunks.
  CREATE TABLE identity (incarnation TEXT NOT NULL);
  INSERT INTO identity (incarnation) VALUES (gen_random_uuid()::text);

  -- Makes a root, held by who asks; asked again with the same id it finds the one that is there.
  CREATE FUNCTION make_root(p_owner TEXT, p_root_id TEXT, p_instance TEXT, p_now_ms BIGINT)
  RETURNS BIGINT LANGUAGE plpgsql AS $body$
  DECLARE
    found_number BIGINT;
    directory BIGINT;
  BEGIN
    SELECT number INTO found_number FROM root WHERE owner = p_owner AND root_id = p_root_id;
    IF found_number IS NOT NULL THEN
      RETURN found_number;
    END IF;
    found_number := nextval('root_number');
    directory := found_number * 4294967296 + 1;
    INSERT INTO root (number, owner, root_id, directory_id, access_version, live_bytes, trash_bytes, staging_bytes,
      file_count, next_id, grant_count, live_inodes, trash_inodes, lock_version, lock_count, property_bytes)
      VALUES (found_number, p_owner, p_root_id, directory, 1, 0, 0, 0, 0, 2, 0, 0, 0, 0, 0, 0);
    INSERT INTO inode (id, name, kind, size, crc32, version, mtime_ms, ctime_ms, flags, child_count, tree_inodes,
      tree_files, height)
      VALUES (directory, '', 1, 0, 0, 1, p_now_ms, p_now_ms, 0, 0, 0, 0, 0);
    INSERT INTO holding (root_number, instance, epoch, last_batch, last_group, prior_epoch, prior_group)
      VALUES (found_number, p_instance, 1, 0, '', 0, '');
    RETURN found_number;
  END $body$;

  -- Unfinished uploads and copies of the process before are purged.
  CREATE FUNCTION take_roots(p_by TEXT, p_from TEXT, p_beat BIGINT, p_roots BIGINT[])
  RETURNS TABLE (root_number BIGINT, epoch BIGINT, last_batch BIGINT) LANGUAGE plpgsql AS $body$
  DECLARE
    taken BIGINT[];
    first_id BIGINT;
  BEGIN
    -- Both rows are locked in one order, also when two processes take from each other.
    PERFORM 1 FROM instance i WHERE i.id IN (p_by, p_from) ORDER BY i.id FOR UPDATE;
    IF NOT EXISTS (SELECT 1 FROM instance i WHERE i.id = p_by AND NOT i.is_ended) THEN
      RETURN;
    END IF;
    UPDATE instance i SET is_ended = TRUE WHERE i.id = p_from AND (i.is_ended OR i.beat = p_beat);
    IF NOT FOUND THEN
      RETURN;
    END IF;
    SELECT array_agg(h.root_number) INTO taken FROM (
      SELECT held.root_number FROM holding held
      WHERE held.root_number = ANY (p_roots) AND held.instance = p_from ORDER BY held.root_number FOR UPDATE
    ) h;
    IF taken IS NULL THEN
      RETURN;
    END IF;
    UPDATE holding h SET instance = p_by, epoch = h.epoch + 1, prior_epoch = h.epoch, prior_group = h.last_group,
      last_group = '', taken_at = clock_timestamp() WHERE h.root_number = ANY (taken);
    first_id := nextval('id_range') * 4294967296;
    INSERT INTO purging (id, inode_id, content_id)
      SELECT first_id + row_number() OVER (), left_over.inode_id, left_over.content_id FROM (
        SELECT NULL::bigint AS inode_id, s.content_id FROM staging s WHERE s.root_number = ANY (taken)
        UNION ALL SELECT c.inode_id, NULL FROM copying c WHERE (c.inode_id >> 32) = ANY (taken)
      ) left_over;
    DELETE FROM staging s WHERE s.root_number = ANY (taken);
    DELETE FROM copying c WHERE (c.inode_id >> 32) = ANY (taken);
    RETURN QUERY SELECT h.root_number, h.epoch, h.last_batch FROM holding h WHERE h.root_number = ANY (taken)
      ORDER BY h.root_number;
  END $body$;

  -- Waits for the call whose answer was lost, and takes its number away if it has not committed. The write
  -- makes the caller wait for the standby, and with it for what it has read.
  CREATE FUNCTION resolve_group(p_group TEXT, p_roots BIGINT[], p_epochs BIGINT[])
  RETURNS TABLE (root_number BIGINT, outcome TEXT, last_batch BIGINT) LANGUAGE plpgsql AS $body$
  DECLARE
    held holding%ROWTYPE;
    held_epoch BIGINT;
  BEGIN
    FOR held IN SELECT h.* FROM holding h WHERE h.root_number = ANY (p_roots) ORDER BY h.root_number FOR UPDATE
    LOOP
      held_epoch := p_epochs[array_position(p_roots, held.root_number)];
      root_number := held.root_number;
      IF held.epoch = held_epoch THEN
        outcome := CASE WHEN held.last_group = p_group THEN 'committed' ELSE 'absent' END;
        last_batch := held.last_batch + 1;
        UPDATE holding h SET last_batch = h.last_batch + 1,
          last_group = CASE WHEN h.last_group = p_group THEN p_group ELSE '' END
          WHERE h.root_number = held.root_number;
      ELSE
        outcome := CASE
          WHEN held.prior_epoch <> held_epoch THEN 'unknown'
          WHEN held.prior_group = p_group THEN 'committed' ELSE 'fenced' END;
        last_batch := held.last_batch;
        UPDATE holding h SET instance = h.instance WHERE h.root_number = held.root_number;
      END IF;
      RETURN NEXT;
    END LOOP;
  END $body$;
`;

/** Links, and the way to damaged files. */
const MAKE_LINKS = `
  ${LATER_TABLES}
  CREATE INDEX link_by_root ON link (root_number, inode_id);
  CREATE INDEX inode_damaged ON inode (id) WHERE (flags & ${FLAG_DAMAGED}) <> 0;
`;

/** The one cluster whose servers use these tables. */
const MAKE_CLUSTER = `
  CREATE TABLE engine_cluster (
    is_only BOOLEAN PRIMARY KEY DEFAULT TRUE CHECK (is_only),
    id TEXT COLLATE "C" NOT NULL
  );
`;

/** What passes that remove objects know of the database's clock. */
const MAKE_REMOVAL_CLOCK = `
  CREATE TABLE removal_clock (
    is_only BOOLEAN PRIMARY KEY DEFAULT TRUE CHECK (is_only),
    known JSONB NOT NULL
  );
`;

/** Forms of functions that came later, each beside the one before: name, and number of parameters. */
const LATER_FUNCTIONS = [
  ["commit_rows", 9, `${NOTE_DEPARTURES} ${COMMIT_ROWS}`],
  ["commit_arrived_rows", 10, COMMIT_ARRIVAL],
  ["begin_departure", 4, BEGIN_DEPARTURE],
] as const;

/**
 * Makes the tables unless they are there. Throws BAD_ARGUMENT for those of a newer version, and what pg
 * throws.
 */
export async function makeSharedTables(client: ClientBase, schema: string): Promise<void> {
  const name = quoted(schema);
  await client.query("BEGIN");
  try {
    await client.query("SELECT pg_advisory_xact_lock($1)", [ADVISORY_LOCK]);
    const { rows } = await client.query("SELECT 1 FROM pg_tables WHERE schemaname = $1 AND tablename = $2", [
      schema,
      "schema_version",
    ]);
    if (rows.length === 0) {
      await client.query(`CREATE SCHEMA IF NOT EXISTS ${name}; SET LOCAL search_path TO ${name}; ${MAKE}`);
    }
    const found = await client.query(`SELECT max(version) AS version FROM ${name}.schema_version`);
    const { version } = found.rows[0] as { version: string | number };
    requireKnownSchema("the shared engine", Number(version), SCHEMA_VERSION);
    const add = async (relation: string, statements: string): Promise<void> => {
      const known = "SELECT 1 FROM pg_class WHERE relname = $2 AND relnamespace = $1::regnamespace";
      if ((await client.query(known, [name, relation])).rows.length > 0) return;
      await client.query(`SET LOCAL search_path TO ${name}; ${statements}`);
    };
    // Moves carry links.
    await add("link", `${MAKE_LINKS} ${MAKE_ARRIVALS} ${MAKE_DEPARTURES}`);
    await add("renamed_user", MAKE_RENAMES);
    await add("arrival_epoch", ARRIVAL_EPOCHS);
    await add("engine_cluster", MAKE_CLUSTER);
    await add("removal_clock", MAKE_REMOVAL_CLOCK);
    for (const [called, parameters, statement] of LATER_FUNCTIONS) {
      const known =
        "SELECT 1 FROM pg_proc WHERE proname = $2 AND pronargs = $3 AND pronamespace = $1::regnamespace";
      if ((await client.query(known, [name, called, parameters])).rows.length > 0) continue;
      await client.query(`SET LOCAL search_path TO ${name}; ${statement}`);
    }
    await client.query("COMMIT");
  } catch (error) {
    await client.query("ROLLBACK").catch(() => undefined);
    throw error;
  }
}

/** A name as SQL takes it. */
export function quoted(name: string): string {
  return `"${name.replaceAll('"', '""')}"`;
}

function createTable({ name, key, columns }: SharedTable): string {
  const lines = columns.map((column) => {
    const collation = column.type === "TEXT" ? ' COLLATE "C"' : "";
    return `${column.name} ${column.type}${collation}${column.isNullable ? "" : " NOT NULL"}`;
  });
  return `CREATE TABLE ${name} (${lines.join(", ")}, PRIMARY KEY (${key.join(", ")}));`;
}
