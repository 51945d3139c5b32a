// Asks PostgreSQL for the rows of an arriving root that a command can touch, in one statement.
import type pg from "pg";
import { ROOT_STRIDE } from "#storage/contract/inode.ts";
import type { MoveBucket, MoveBucketKey } from "#storage/contract/root-move.ts";
import { idsOf, MOVE_BUCKET_BITS, type MoveRow, rowOf } from "#storage/metadata/move-rows.ts";
import type { JsonRow } from "./table-rows.ts";

/** Rows, chunks under the names that the source has. */
export interface ArrivalThere {
  readonly rows: readonly JsonRow[];
  /** Names of those chunks in the object store, by the source's. */
  readonly names: ReadonlyMap<string, string>;
  /** Numbers of what waits for a purge in the buckets: each is made anew with its bucket. */
  readonly purging: readonly number[];
  /** The last batch that was committed. */
  readonly batch: number;
}

/**
 * `$1` is the root's number; then ranges of ids, of small contents and of positions, names of entries in pairs
 * of lists, and chunks by the source's names. A table's rows come in one value, which is read several times as fast.
 */
const FETCH = `
  WITH ids AS (SELECT * FROM unnest($2::bigint[], $3::bigint[]) AS q (low, high)),
  small AS (SELECT * FROM unnest($4::bigint[], $5::bigint[]) AS q (low, high)),
  lists AS (SELECT * FROM unnest($6::bigint[], $7::bigint[], $8::bigint[]) AS q (content, low, high)),
  named AS (
    SELECT i.* FROM unnest($9::bigint[], $10::text[]) AS q (parent, name)
      JOIN inode i ON i.parent_id = q.parent AND i.name = q.name
    WHERE NOT EXISTS (SELECT 1 FROM ids WHERE i.id BETWEEN low AND high)
  ),
  positions AS (
    SELECT f.* FROM lists JOIN file_chunk f ON f.content_id = content AND f.position BETWEEN low AND high
  ),
  chunks AS (
    SELECT c.id, a.name, c.length, c.crc32, c.block_crcs, c.refs, c.name AS own
    FROM arrived_chunk a JOIN chunk c ON c.id = a.chunk_id
    WHERE a.number = $1 AND (a.name = ANY ($11) OR a.chunk_id IN (SELECT chunk_id FROM positions))
  ),
  buckets AS (
    SELECT 0 AS kind, ((low - ($1::bigint << 32)) >> ${MOVE_BUCKET_BITS[0]}) AS a, 0 AS b FROM ids
    UNION SELECT 0, ((id - ($1::bigint << 32)) >> ${MOVE_BUCKET_BITS[0]}), 0 FROM named
    UNION SELECT 2, ((low - ($1::bigint << 32)) >> ${MOVE_BUCKET_BITS[2]}), 0 FROM small
    UNION SELECT 1, content - ($1::bigint << 32), low >> ${MOVE_BUCKET_BITS[1]} FROM lists
    UNION SELECT 3, 0, 0
  )
  SELECT "table", json_agg(row) AS rows FROM (
  SELECT 'batch' AS "table", json_build_object('batch', last_batch) AS row FROM arrival WHERE number = $1
  UNION ALL SELECT 'inode', row_to_json(i) FROM ids JOIN inode i ON i.id BETWEEN low AND high
  UNION ALL SELECT 'inode', row_to_json(named) FROM named
  UNION ALL SELECT 'share_grant', row_to_json(g) FROM ids JOIN share_grant g ON g.inode_id BETWEEN low AND high
  UNION ALL SELECT 'property', row_to_json(p) FROM ids JOIN property p ON p.inode_id BETWEEN low AND high
  UNION ALL SELECT 'upload', row_to_json(u) FROM ids JOIN upload u ON u.content_id BETWEEN low AND high
  UNION ALL SELECT 'trash', row_to_json(t) FROM trash t
    WHERE t.root_number = $1 AND EXISTS (SELECT 1 FROM ids WHERE t.inode_id BETWEEN low AND high)
  UNION ALL SELECT 'trash_grant', row_to_json(t) FROM trash_grant t
    WHERE t.root_number = $1 AND EXISTS (SELECT 1 FROM ids WHERE t.inode_id BETWEEN low AND high)
  UNION ALL SELECT 'lock', row_to_json(l) FROM lock l
    WHERE l.root_number = $1 AND EXISTS (SELECT 1 FROM ids WHERE l.inode_id BETWEEN low AND high)
  UNION ALL SELECT 'link', row_to_json(l) FROM link l
    WHERE l.root_number = $1 AND EXISTS (SELECT 1 FROM ids WHERE l.inode_id BETWEEN low AND high)
  UNION ALL SELECT 'purging', json_build_object('id', p.id) FROM purging p
    WHERE (coalesce(p.inode_id, p.content_id) >> 32) = $1
      AND EXISTS (SELECT 1 FROM ids WHERE coalesce(p.inode_id, p.content_id) BETWEEN low AND high)
  UNION ALL SELECT 'inline_content', row_to_json(c) FROM small JOIN inline_content c ON c.inode_id BETWEEN low AND high
  UNION ALL SELECT 'file_chunk', row_to_json(positions) FROM positions
  UNION ALL SELECT 'chunk', row_to_json(chunks) FROM chunks
  UNION ALL SELECT 'damaged_chunk', row_to_json(d) FROM chunks JOIN damaged_chunk d ON d.chunk_id = chunks.id
  UNION ALL SELECT 'move_bucket', row_to_json(m) FROM buckets JOIN move_bucket m
    ON m.number = $1 AND m.kind = buckets.kind AND m.a = buckets.a AND m.b = buckets.b
  ) there GROUP BY "table"`;

/** Reads what buckets can touch: their rows, and what has the names that theirs will have. Throws what pg throws. */
export function fetchBuckets(
  client: pg.ClientBase,
  number: number,
  buckets: readonly MoveBucket[],
): Promise<ArrivalThere> {
  return fetchKeys(
    client,
    number,
    buckets,
    buckets.flatMap(({ lines }) => lines.map(rowOf)),
  );
}

/** Reads the rows of buckets alone. Throws what pg throws. */
export async function fetchKeys(
  client: pg.ClientBase,
  number: number,
  buckets: readonly MoveBucketKey[],
  coming: readonly MoveRow[] = [],
): Promise<ArrivalThere> {
  const ranges = (kind: 0 | 2): (readonly [number, number])[] =>
    buckets.filter((bucket) => bucket.kind === kind).map((bucket) => idsOf(number, bucket));
  const [ids, small] = [ranges(0), ranges(2)];
  const lists = buckets.filter(({ kind }) => kind === 1);
  const span = 2 ** MOVE_BUCKET_BITS[1];
  const entries = coming.filter(([letter, , parent]) => letter === "i" && parent !== null);
  const { rows } = await client.query(FETCH, [
    number,
    ids.map(([low]) => low),
    ids.map(([, high]) => high),
    small.map(([low]) => low),
    small.map(([, high]) => high),
    lists.map(({ a }) => number * ROOT_STRIDE + a),
    lists.map(({ b }) => b * span),
    lists.map(({ b }) => (b + 1) * span - 1),
    entries.map(([, , parent]) => Number(parent) + number * ROOT_STRIDE),
    entries.map(([, , , name]) => String(name)),
    coming.filter(([letter]) => letter === "c").map(([, , , name]) => String(name)),
  ]);
  const tables = rows as { table: string; rows: JsonRow["row"][] }[];
  return thereOf(tables.flatMap(({ table, rows: all }) => all.map((row) => ({ table, row }))));
}

/** Reads the grants of an arriving root. */
export async function fetchGrants(client: pg.ClientBase, number: number): Promise<ArrivalThere> {
  const { rows } = await client.query(
    `SELECT 'batch' AS "table", json_build_object('batch', last_batch) AS row FROM arrival WHERE number = $1
     UNION ALL SELECT 'share_grant', row_to_json(g) FROM share_grant g
       WHERE g.inode_id BETWEEN $1::bigint << 32 AND ($1::bigint << 32) + 4294967295`,
    [number],
  );
  return thereOf(rows as JsonRow[]);
}

function thereOf(rows: readonly JsonRow[]): ArrivalThere {
  const names = new Map<string, string>();
  const purging: number[] = [];
  let batch = 0;
  const kept = rows.filter(({ table, row }) => {
    if (table === "batch") batch = Number(row["batch"]);
    else if (table === "purging") purging.push(Number(row["id"]));
    else {
      if (table === "chunk") names.set(String(row["name"]), String(row["own"]));
      return true;
    }
    return false;
  });
  return { rows: kept, names, purging, batch };
}
