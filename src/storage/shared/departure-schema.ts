// Tables, triggers and functions for roots that leave the shared engine for a node's own disks.
import { MOVE_BUCKET_BITS } from "#storage/metadata/move-rows.ts";
import { DEPARTED } from "#storage/metadata/moved-roots.ts";
import { DROPPED } from "#storage/writer/move-arrivals.ts";
import { FENCED } from "./fenced.ts";

const [ID_BITS, POSITION_BITS, INLINE_BITS] = MOVE_BUCKET_BITS;

/** Notes that buckets have changed, given a query of `number, kind, a, b`. */
const noted = (buckets: string): string =>
  `INSERT INTO move_bucket (number, kind, a, b, changes, sent, checksum, row_count)
     SELECT DISTINCT q.*, 1, 0, '', 0 FROM (${buckets}) AS q (number, kind, a, b) ORDER BY 1, 2, 3, 4
     ON CONFLICT (number, kind, a, b) DO UPDATE SET changes = move_bucket.changes + 1`;

/** The same of rows that a statement has changed, in a trigger: only of roots that are on their way. */
const changed = (rows: string, id: string, buckets: string): string =>
  noted(`SELECT d.number, ${buckets} FROM ${rows} JOIN departure d ON d.number = ${id} >> 32
     WHERE d.state IN ('copying', 'frozen')`).replaceAll("'", "''");

const within = (id: string): string => `${id} - (d.number << 32)`;
const LISTED = `1, ${within("f.content_id")}, f.position >> ${POSITION_BITS}`;

/** What changed rows of a table say of buckets; %1$I is the column with the id. */
const NOTES: Readonly<Record<string, string>> = {
  ids: changed("changed_rows r", "r.%1$I", `0, (${within("r.%1$I")}) >> ${ID_BITS}, 0`),
  inline: changed("changed_rows r", "r.%1$I", `2, (${within("r.%1$I")}) >> ${INLINE_BITS}, 0`),
  positions: changed("changed_rows f", "f.%1$I", LISTED),
  // A list counts from the moment when it is an upload's no more; damage belongs to all lists of its chunk.
  lists: changed("changed_rows r JOIN file_chunk f ON f.%1$I = r.%1$I", "f.content_id", LISTED),
};

const NOTED_TABLES: readonly (readonly [table: string, column: string, note: string])[] = [
  ["inode", "id", "ids"],
  ["share_grant", "inode_id", "ids"],
  ["trash", "inode_id", "ids"],
  ["trash_grant", "inode_id", "ids"],
  ["lock", "inode_id", "ids"],
  ["link", "inode_id", "ids"],
  ["property", "inode_id", "ids"],
  ["upload", "content_id", "ids"],
  ["purging", "inode_id", "ids"],
  ["purging", "content_id", "ids"],
  ["copying", "inode_id", "ids"],
  ["inline_content", "inode_id", "inline"],
  ["file_chunk", "content_id", "positions"],
  ["staging", "content_id", "lists"],
  ["damaged_chunk", "chunk_id", "lists"],
];

const EVENTS = [
  ["INSERT", "NEW"],
  ["UPDATE", "OLD"],
  ["UPDATE", "NEW"],
  ["DELETE", "OLD"],
] as const;

/** For the rest of a transaction: says that none of the roots in an array is on its way. */
export const noneDeparts = (roots: string): string =>
  `PERFORM set_config('grove.departing', CASE WHEN EXISTS (SELECT 1 FROM departure d
      WHERE d.number = ANY (${roots}) AND d.state IN ('copying', 'frozen')) THEN 'some' ELSE 'none' END, TRUE);`;

/**
 * For each statement, not each row, and not behind `noneDeparts`: they took a quarter of a commit's time. `holding` is
 * locked first, as commits do, so that none of them waits the other way round.
 */
export const NOTE_DEPARTURES: string = `LOCK TABLE holding IN SHARE ROW EXCLUSIVE MODE;${NOTED_TABLES.flatMap(
  ([table, column, note]) =>
    EVENTS.map(
      ([event, rows]) => `
  CREATE OR REPLACE TRIGGER note_${column}_${event}_${rows} AFTER ${event} ON ${table}
    REFERENCING ${rows} TABLE AS changed_rows FOR EACH STATEMENT
    WHEN (current_setting('grove.departing', TRUE) IS DISTINCT FROM 'none') EXECUTE FUNCTION note_departures('${note}', '${column}');`,
    ),
).join("")}`;

const MARKS = [
  `SELECT held.number, 0, a, 0 FROM generate_series(held.marked >> ${ID_BITS}, (next - 1) >> ${ID_BITS}) AS a`,
  `SELECT held.number, 1, content_id - low, position >> ${POSITION_BITS} FROM file_chunk
     WHERE content_id BETWEEN low + held.marked AND low + next - 1`,
  `SELECT held.number, 2, (inode_id - low) >> ${INLINE_BITS}, 0 FROM inline_content
     WHERE inode_id BETWEEN low + held.marked AND low + next - 1`,
];

/** Rows that go with a root that has left, those with chunks aside. */
const DROPS = [...DROPPED, ["staging", "content_id"], ["copying", "inode_id"]]
  .map(
    ([name, column]) => `
      DELETE FROM ${name} WHERE ${column} IN
        (SELECT ${column} FROM ${name} WHERE ${column} BETWEEN low AND high LIMIT p_limit);
      IF FOUND THEN RETURN TRUE; END IF;`,
  )
  .join("");

/**
 * Begins a departure. True once it has begun, also before; false when the root is under another move; NULL while rows
 * of a move that is over are left, of which each call removes some: who ended that move may not have come to it.
 */
export const BEGIN_DEPARTURE = `
  CREATE FUNCTION begin_departure(p_move TEXT, p_number BIGINT, p_epoch BIGINT, p_limit BIGINT)
  RETURNS BOOLEAN LANGUAGE plpgsql AS $body$
  BEGIN
    PERFORM 1 FROM holding h WHERE h.root_number = p_number AND h.epoch = p_epoch FOR UPDATE;
    IF NOT FOUND THEN
      RAISE EXCEPTION 'another process holds the root' USING ERRCODE = '${FENCED}';
    END IF;
    IF EXISTS (SELECT 1 FROM departure d WHERE d.number = p_number AND d.state = 'ended') THEN
      DELETE FROM move_bucket WHERE (number, kind, a, b) IN
        (SELECT number, kind, a, b FROM move_bucket WHERE number = p_number LIMIT p_limit);
      IF FOUND THEN RETURN NULL; END IF;
      DELETE FROM departure d WHERE d.number = p_number AND d.state = 'ended';
    END IF;
    RETURN begin_departure(p_move, p_number, p_epoch);
  END $body$;`;

/**
 * Made beside the others wherever they are missing. Whoever changes a root locks its `holding` first, so that
 * notes of changes and what is done with them follow one another.
 */
export const MAKE_DEPARTURES = `
  CREATE TABLE IF NOT EXISTS departure (
    move_id TEXT COLLATE "C" PRIMARY KEY,
    number BIGINT NOT NULL UNIQUE,
    owner TEXT COLLATE "C" NOT NULL,
    -- copying, frozen, departed; removing or ended while its rows go.
    state TEXT NOT NULL,
    address TEXT NOT NULL,
    -- Ids within the root that were there when it began, and those of them whose buckets are marked.
    ids BIGINT NOT NULL,
    marked BIGINT NOT NULL
  );

  -- Its own search path: an operator's session may have another one.
  CREATE OR REPLACE FUNCTION note_departures() RETURNS TRIGGER LANGUAGE plpgsql SET search_path FROM CURRENT AS $body$
  BEGIN
    IF NOT EXISTS (SELECT 1 FROM departure WHERE state IN ('copying', 'frozen')) THEN
      RETURN NULL;
    END IF;
    CASE TG_ARGV[0]
    ${Object.entries(NOTES)
      .map(([name, text]) => `WHEN '${name}' THEN EXECUTE format('${text}', TG_ARGV[1]);`)
      .join("\n    ")}
    END CASE;
    RETURN NULL;
  END $body$;

  -- The departure of a root that is held under this epoch; nothing of the root changes until the end of the call.
  CREATE OR REPLACE FUNCTION lock_departure(p_move TEXT, p_epoch BIGINT)
  RETURNS departure LANGUAGE plpgsql AS $body$
  DECLARE
    held departure%ROWTYPE;
  BEGIN
    PERFORM 1 FROM holding h WHERE h.epoch = p_epoch
      AND h.root_number = (SELECT d.number FROM departure d WHERE d.move_id = p_move) FOR UPDATE;
    IF NOT FOUND THEN
      RAISE EXCEPTION 'another process holds the root' USING ERRCODE = '${FENCED}';
    END IF;
    SELECT * INTO held FROM departure d WHERE d.move_id = p_move FOR UPDATE;
    RETURN held;
  END $body$;

  -- False when the root is under another move.
  CREATE OR REPLACE FUNCTION begin_departure(p_move TEXT, p_number BIGINT, p_epoch BIGINT)
  RETURNS BOOLEAN LANGUAGE plpgsql AS $body$
  BEGIN
    PERFORM 1 FROM holding h WHERE h.root_number = p_number AND h.epoch = p_epoch FOR UPDATE;
    IF NOT FOUND THEN
      RAISE EXCEPTION 'another process holds the root' USING ERRCODE = '${FENCED}';
    END IF;
    IF EXISTS (SELECT 1 FROM departure d WHERE d.number = p_number) THEN
      RETURN EXISTS (SELECT 1 FROM departure d WHERE d.number = p_number AND d.move_id = p_move);
    END IF;
    IF EXISTS (SELECT 1 FROM arrival a WHERE a.number = p_number) THEN
      RETURN FALSE;
    END IF;
    INSERT INTO departure (move_id, number, owner, state, address, ids, marked)
      SELECT p_move, number, owner, 'copying', '', next_id, 0 FROM root WHERE number = p_number;
    RETURN TRUE;
  END $body$;

  -- Marks a part of what was there at the beginning.
  CREATE OR REPLACE FUNCTION mark_departure(p_move TEXT, p_epoch BIGINT, p_limit BIGINT)
  RETURNS VOID LANGUAGE plpgsql AS $body$
  DECLARE
    held departure%ROWTYPE := lock_departure(p_move, p_epoch);
    low BIGINT := held.number << 32;
    next BIGINT := least(held.ids, held.marked + p_limit);
  BEGIN
    IF next <= held.marked THEN
      RETURN;
    END IF;
    ${MARKS.map((buckets) => `${noted(buckets)};`).join("\n    ")}
    UPDATE departure SET marked = next WHERE move_id = p_move;
  END $body$;

  -- Keeps what has arrived at the other side. A bucket that has changed since keeps the count of its changes.
  CREATE OR REPLACE FUNCTION receive_departure(p_move TEXT, p_epoch BIGINT, p_rows JSON)
  RETURNS VOID LANGUAGE plpgsql AS $body$
  BEGIN
    PERFORM lock_departure(p_move, p_epoch);
    INSERT INTO move_bucket SELECT * FROM json_populate_recordset(NULL::move_bucket, p_rows)
    ON CONFLICT (number, kind, a, b) DO UPDATE SET sent = excluded.sent, checksum = excluded.checksum,
      row_count = excluded.row_count, changes = greatest(move_bucket.changes, excluded.changes);
  END $body$;

  CREATE OR REPLACE FUNCTION set_departure(p_move TEXT, p_epoch BIGINT, p_state TEXT)
  RETURNS VOID LANGUAGE plpgsql AS $body$
  BEGIN
    PERFORM lock_departure(p_move, p_epoch);
    UPDATE departure SET state = p_state WHERE move_id = p_move AND state IN ('copying', 'frozen');
  END $body$;

  -- The root has its home elsewhere: its lease ends with the same statement that says so.
  CREATE OR REPLACE FUNCTION depart_root(p_move TEXT, p_address TEXT)
  RETURNS VOID LANGUAGE plpgsql AS $body$
  DECLARE
    gone BIGINT;
  BEGIN
    PERFORM 1 FROM holding h
      WHERE h.root_number = (SELECT d.number FROM departure d WHERE d.move_id = p_move) FOR UPDATE;
    UPDATE departure d SET state = 'departed', address = p_address
      WHERE d.move_id = p_move AND d.state = 'frozen' RETURNING d.number INTO gone;
    IF gone IS NULL THEN
      RETURN;
    END IF;
    UPDATE root SET owner = '${DEPARTED}' || p_move WHERE number = gone;
    UPDATE holding SET instance = '', epoch = epoch + 1, prior_epoch = epoch, prior_group = last_group, last_group = '',
      taken_at = clock_timestamp() WHERE root_number = gone;
  END $body$;

  -- Gives a frozen root to another process, which ends its move: its rows and chunks stay where they are.
  CREATE OR REPLACE FUNCTION hand_over(p_move TEXT, p_by TEXT)
  RETURNS TABLE (root_number BIGINT, epoch BIGINT, last_batch BIGINT) LANGUAGE plpgsql AS $body$
  DECLARE
    given BIGINT;
    first_id BIGINT;
  BEGIN
    PERFORM 1 FROM instance i WHERE i.id = p_by AND NOT i.is_ended FOR SHARE;
    IF NOT FOUND THEN
      RETURN;
    END IF;
    PERFORM 1 FROM holding h
      WHERE h.root_number = (SELECT d.number FROM departure d WHERE d.move_id = p_move) FOR UPDATE;
    DELETE FROM departure d WHERE d.move_id = p_move AND d.state = 'frozen' RETURNING d.number INTO given;
    IF given IS NULL THEN
      RETURN;
    END IF;
    DELETE FROM move_bucket m WHERE m.number = given;
    UPDATE holding h SET instance = p_by, epoch = h.epoch + 1, prior_epoch = h.epoch, prior_group = h.last_group,
      last_group = '', taken_at = clock_timestamp() WHERE h.root_number = given;
    -- Unfinished uploads and copies of the process before are purged.
    first_id := nextval('id_range') * 4294967296;
    INSERT INTO purging (id, inode_id, content_id)
      SELECT first_id + row_number() OVER (), left_over.inode_id, left_over.content_id FROM (
        SELECT NULL::bigint AS inode_id, s.content_id FROM staging s WHERE s.root_number = given
        UNION ALL SELECT c.inode_id, NULL FROM copying c WHERE (c.inode_id >> 32) = given
      ) left_over;
    DELETE FROM staging s WHERE s.root_number = given;
    DELETE FROM copying c WHERE (c.inode_id >> 32) = given;
    RETURN QUERY SELECT h.root_number, h.epoch, h.last_batch FROM holding h WHERE h.root_number = given;
  END $body$;

  -- Removes a part of a root that has left, or forgets a part of a move that is undone; true while more is left.
  CREATE OR REPLACE FUNCTION drop_departure(p_move TEXT, p_limit BIGINT)
  RETURNS BOOLEAN LANGUAGE plpgsql AS $body$
  DECLARE
    held departure%ROWTYPE;
    low BIGINT;
    high BIGINT;
    first_id BIGINT;
  BEGIN
    PERFORM 1 FROM holding h
      WHERE h.root_number = (SELECT d.number FROM departure d WHERE d.move_id = p_move) FOR UPDATE;
    UPDATE departure d SET state = CASE WHEN d.state IN ('departed', 'removing') THEN 'removing' ELSE 'ended' END
      WHERE d.move_id = p_move RETURNING * INTO held;
    IF NOT FOUND THEN
      RETURN FALSE;
    END IF;
    low := held.number << 32;
    high := low + 4294967295;
    IF held.state = 'removing' THEN
      IF EXISTS (SELECT 1 FROM file_chunk WHERE content_id BETWEEN low AND high) THEN
        first_id := nextval('id_range') * 4294967296;
        WITH listed AS (
          DELETE FROM file_chunk WHERE (content_id, position) IN
            (SELECT content_id, position FROM file_chunk WHERE content_id BETWEEN low AND high LIMIT p_limit)
          RETURNING chunk_id
        ), freed AS (
          SELECT chunk_id, count(*) AS lists FROM listed GROUP BY chunk_id
        ), dropped AS (
          UPDATE chunk SET refs = refs - lists FROM freed WHERE chunk.id = chunk_id RETURNING chunk.id, refs
        )
        INSERT INTO garbage (sequence, chunk_id)
          SELECT first_id + row_number() OVER (), id FROM dropped WHERE refs = 0;
        RETURN TRUE;
      END IF;
      ${DROPS}
      DELETE FROM root WHERE number = held.number;
      DELETE FROM holding WHERE root_number = held.number;
    END IF;
    DELETE FROM move_bucket WHERE (number, kind, a, b) IN
      (SELECT number, kind, a, b FROM move_bucket WHERE number = held.number LIMIT p_limit);
    IF FOUND THEN RETURN TRUE; END IF;
    DELETE FROM departure WHERE move_id = p_move;
    RETURN FALSE;
  END $body$;
`;
