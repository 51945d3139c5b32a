// Tables and functions for roots that come to the shared engine from a node's own disks.
import { CLUSTER_ROOT_NUMBERS_FROM, ROOT_NUMBER_MAX } from "#base/limits.ts";
import { DROPPED } from "#storage/writer/move-arrivals.ts";
import { PLANNED_ONCE, TAKEN, takeRows } from "./commit-schema.ts";
import { FENCED } from "./fenced.ts";
import { SHARED_TABLES, type SharedTable, table } from "./shared-tables.ts";

/** What is known of a moving root's buckets. */
export const MOVE_BUCKET: SharedTable = table(
  "move_bucket",
  "number, kind, a, b",
  "number, kind, a, b, changes, sent, checksum text, row_count",
);

/** Tables of which an arriving root has rows; `arrived_chunk` tells chunks by the names that the source has. */
export const ARRIVAL_TABLES: readonly SharedTable[] = [
  ...SHARED_TABLES.filter(({ name }) => name !== "staging" && name !== "copying"),
  MOVE_BUCKET,
  table("arrived_chunk", "number, name", "number, name text, chunk_id"),
];

/**
 * Commits a batch, whose rows come as packed-rows.ts sends them. With a holder the root is whole, and is served
 * from then on.
 */
export const COMMIT_ARRIVAL = `
  CREATE FUNCTION commit_arrived_rows(
    p_move TEXT, p_epoch BIGINT, p_batch BIGINT, p_steps TEXT[], p_counts INTEGER[], p_numbers BIGINT[],
    p_texts TEXT[], p_bytes BYTEA[], p_holder TEXT, p_first_epoch BIGINT
  ) RETURNS VOID LANGUAGE plpgsql ${PLANNED_ONCE} AS $body$
  DECLARE
    held arrival%ROWTYPE;
    ${TAKEN}
  BEGIN
    SELECT * INTO held FROM arrival WHERE move_id = p_move AND epoch = p_epoch AND state = 'arriving' FOR UPDATE;
    IF NOT FOUND THEN
      RAISE EXCEPTION 'another process has the arriving root' USING ERRCODE = '${FENCED}';
    END IF;
    IF held.last_batch <> p_batch - 1 THEN
      RAISE EXCEPTION 'another batch came between' USING ERRCODE = '40001';
    END IF;
    UPDATE arrival SET last_batch = p_batch WHERE move_id = p_move;
    ${takeRows(ARRIVAL_TABLES)}
    IF p_holder IS NOT NULL THEN
      UPDATE arrival SET state = 'arrived' WHERE move_id = p_move;
      INSERT INTO holding (root_number, instance, epoch, last_batch, last_group, prior_epoch, prior_group)
        VALUES (held.number, p_holder, p_first_epoch, 0, '', 0, '');
    END IF;
  END $body$;`;

/** Rows that go without their root, those with chunks aside. */
const DROPS = DROPPED.map(
  ([name, column]) => `
    DELETE FROM ${name} WHERE ${column} IN
      (SELECT ${column} FROM ${name} WHERE ${column} BETWEEN low AND high LIMIT p_limit);
    IF FOUND THEN RETURN TRUE; END IF;`,
).join("");

/**
 * A beginning writes epoch 1, which nobody acts under: who takes an arrival gets the next of these. None comes
 * twice, also where a program of before, which adds one, takes it in between.
 */
export const ARRIVAL_EPOCHS = `CREATE SEQUENCE arrival_epoch START 1048576 INCREMENT 1048576`;

/**
 * Made beside the others wherever they are missing: programs of before do not look at them. An arrival is held
 * as a root is, by an instance under an epoch, and changes batch after batch.
 */
export const MAKE_ARRIVALS = `
  CREATE TABLE IF NOT EXISTS arrival (
    move_id TEXT COLLATE "C" PRIMARY KEY,
    number BIGINT NOT NULL UNIQUE,
    owner TEXT COLLATE "C" NOT NULL,
    state TEXT NOT NULL,
    -- What the source has said of the frozen root, as JSON.
    head TEXT NOT NULL,
    instance TEXT COLLATE "C" NOT NULL,
    epoch BIGINT NOT NULL,
    last_batch BIGINT NOT NULL,
    taken_at TIMESTAMPTZ NOT NULL DEFAULT clock_timestamp()
  );
  CREATE TABLE IF NOT EXISTS move_bucket (
    number BIGINT, kind BIGINT, a BIGINT, b BIGINT, changes BIGINT NOT NULL, sent BIGINT NOT NULL,
    checksum TEXT NOT NULL, row_count BIGINT NOT NULL, PRIMARY KEY (number, kind, a, b)
  );
  CREATE TABLE IF NOT EXISTS arrived_chunk (
    number BIGINT, name TEXT COLLATE "C", chunk_id BIGINT NOT NULL, PRIMARY KEY (number, name)
  );
  CREATE INDEX IF NOT EXISTS arrived_chunk_by_chunk ON arrived_chunk (chunk_id);

  -- Makes room under the first number that is free; those that the engine gives out itself lie below them.
  CREATE OR REPLACE FUNCTION begin_arrival(p_move TEXT, p_owner TEXT, p_instance TEXT, p_numbers BIGINT[])
  RETURNS BOOLEAN LANGUAGE plpgsql AS $body$
  DECLARE
    one BIGINT;
  BEGIN
    LOCK TABLE arrival IN SHARE ROW EXCLUSIVE MODE;
    FOREACH one IN ARRAY p_numbers LOOP
      CONTINUE WHEN one NOT BETWEEN ${CLUSTER_ROOT_NUMBERS_FROM} AND ${ROOT_NUMBER_MAX}
        OR EXISTS (SELECT 1 FROM root WHERE number = one)
        OR EXISTS (SELECT 1 FROM arrival WHERE number = one)
        OR EXISTS (SELECT 1 FROM inode WHERE id BETWEEN one << 32 AND (one << 32) + 4294967295)
        OR EXISTS (SELECT 1 FROM file_chunk WHERE content_id BETWEEN one << 32 AND (one << 32) + 4294967295);
      INSERT INTO arrival (move_id, number, owner, state, head, instance, epoch, last_batch)
        VALUES (p_move, one, p_owner, 'arriving', '', p_instance, 1, 0);
      RETURN TRUE;
    END LOOP;
    RETURN FALSE;
  END $body$;

  -- Removes a part of what has come, or forgets a part of what is over; true while more is left.
  CREATE OR REPLACE FUNCTION drop_arrival(p_move TEXT, p_epoch BIGINT, p_limit BIGINT)
  RETURNS BOOLEAN LANGUAGE plpgsql AS $body$
  DECLARE
    held arrival%ROWTYPE;
    low BIGINT;
    high BIGINT;
    first_id BIGINT;
  BEGIN
    SELECT * INTO held FROM arrival WHERE move_id = p_move AND epoch = p_epoch FOR UPDATE;
    IF NOT FOUND THEN
      RETURN FALSE;
    END IF;
    low := held.number << 32;
    high := low + 4294967295;
    IF held.state = 'arriving' THEN
      DELETE FROM file_chunk WHERE (content_id, position) IN
        (SELECT content_id, position FROM file_chunk WHERE content_id BETWEEN low AND high LIMIT p_limit);
      IF FOUND THEN RETURN TRUE; END IF;
    END IF;
    IF EXISTS (SELECT 1 FROM arrived_chunk WHERE number = held.number) THEN
      first_id := nextval('id_range') * 4294967296;
      WITH forgotten AS (
        DELETE FROM arrived_chunk WHERE number = held.number AND name IN
          (SELECT name FROM arrived_chunk WHERE number = held.number LIMIT p_limit) RETURNING chunk_id
      ), dropped AS (
        UPDATE chunk SET refs = 0 FROM forgotten
        WHERE held.state = 'arriving' AND chunk.id = chunk_id AND refs > 0 RETURNING chunk.id
      )
      INSERT INTO garbage (sequence, chunk_id) SELECT first_id + row_number() OVER (), id FROM dropped;
      RETURN TRUE;
    END IF;
    IF held.state = 'arriving' THEN
      ${DROPS}
    END IF;
    DELETE FROM move_bucket WHERE (number, kind, a, b) IN
      (SELECT number, kind, a, b FROM move_bucket WHERE number = held.number LIMIT p_limit);
    IF FOUND THEN RETURN TRUE; END IF;
    DELETE FROM arrival WHERE move_id = p_move;
    RETURN FALSE;
  END $body$;
`;
