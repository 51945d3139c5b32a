// Reads buckets of a root that leaves the shared engine from PostgreSQL, with the counts of their changes.
import type pg from "pg";
import { ROOT_STRIDE } from "#storage/contract/inode.ts";
import type { MoveBucketKey } from "#storage/contract/root-move.ts";
import { idsOf, MOVE_BUCKET_BITS } from "#storage/metadata/move-rows.ts";
import type { JsonRow } from "./table-rows.ts";

/** Buckets that one round looks at. */
const BUCKETS_AT_ONCE = 512;
/** Buckets that are counted as left. */
const LEFT_COUNTED = 100_000;
/** Buckets of the first question of a round; each further one asks for twice as many. */
const FIRST_BUCKETS = 4;
const BUCKETS_MAX = 64;

/** A bucket to be sent, as often as it had changed when it was read. */
export interface ChangedBucket extends MoveBucketKey {
  readonly changes: number;
}

/**
 * Names of chunks as nodes with disks have them, with the chunk's number inside; the rest is from its random
 * name in the store.
 */
export const DISK_NAME = "left(c.name, 16) || lpad(to_hex(c.id), 16, '0')";

/** The chunk's number in such a name. */
export function chunkIdOf(diskName: string): bigint {
  return BigInt(`0x${diskName.slice(16)}`);
}

const CHANGED = `
  SELECT kind, a, b, changes FROM move_bucket
  WHERE number = $1 AND changes > sent AND (kind, a, b) > ($2, $3, $4) ORDER BY kind, a, b LIMIT ${BUCKETS_AT_ONCE}`;

const LEFT = `
  SELECT (SELECT count(*) FROM (SELECT 1 FROM move_bucket WHERE number = $1 AND changes > sent LIMIT ${LEFT_COUNTED}) q)
    AS changed, (SELECT ids - marked FROM departure WHERE number = $1) AS unmarked`;

/** `$1` is the root's number; then ranges of ids, of small contents, and of positions. */
const ROWS = `
  WITH ids AS (SELECT * FROM unnest($2::bigint[], $3::bigint[]) AS q (low, high)),
  small AS (SELECT * FROM unnest($4::bigint[], $5::bigint[]) AS q (low, high)),
  lists AS (SELECT * FROM unnest($6::bigint[], $7::bigint[], $8::bigint[]) AS q (content, low, high)),
  positions AS (
    SELECT f.* FROM lists JOIN file_chunk f ON f.content_id = content AND f.position BETWEEN low AND high
    WHERE NOT EXISTS (SELECT 1 FROM staging s WHERE s.content_id = f.content_id)
  ),
  chunks AS (
    SELECT c.id, ${DISK_NAME} AS name, c.length, c.crc32, c.block_crcs, c.refs
    FROM chunk c WHERE c.id IN (SELECT chunk_id FROM positions)
  )
  SELECT 'inode' AS "table", row_to_json(i) AS row FROM ids JOIN inode i ON i.id BETWEEN low AND high
  UNION ALL SELECT 'share_grant', row_to_json(g) FROM ids JOIN share_grant g ON g.inode_id BETWEEN low AND high
  UNION ALL SELECT 'property', row_to_json(p) FROM ids JOIN property p ON p.inode_id BETWEEN low AND high
  UNION ALL SELECT 'upload', row_to_json(u) FROM ids JOIN upload u ON u.content_id BETWEEN low AND high
  UNION ALL SELECT 'copying', row_to_json(c) FROM ids JOIN copying c ON c.inode_id BETWEEN low AND high
  UNION ALL SELECT 'trash', row_to_json(t) FROM trash t
    WHERE t.root_number = $1 AND EXISTS (SELECT 1 FROM ids WHERE t.inode_id BETWEEN low AND high)
  UNION ALL SELECT 'trash_grant', row_to_json(t) FROM trash_grant t
    WHERE t.root_number = $1 AND EXISTS (SELECT 1 FROM ids WHERE t.inode_id BETWEEN low AND high)
  UNION ALL SELECT 'lock', row_to_json(l) FROM lock l
    WHERE l.root_number = $1 AND EXISTS (SELECT 1 FROM ids WHERE l.inode_id BETWEEN low AND high)
  UNION ALL SELECT 'link', row_to_json(l) FROM link l
    WHERE l.root_number = $1 AND EXISTS (SELECT 1 FROM ids WHERE l.inode_id BETWEEN low AND high)
  UNION ALL SELECT 'purging', row_to_json(p) FROM purging p
    WHERE (coalesce(p.inode_id, p.content_id) >> 32) = $1
      AND EXISTS (SELECT 1 FROM ids WHERE coalesce(p.inode_id, p.content_id) BETWEEN low AND high)
  UNION ALL SELECT 'inline_content', row_to_json(c) FROM small JOIN inline_content c ON c.inode_id BETWEEN low AND high
  UNION ALL SELECT 'file_chunk', row_to_json(positions) FROM positions
  UNION ALL SELECT 'chunk', row_to_json(chunks) FROM chunks
  UNION ALL SELECT 'damaged_chunk', row_to_json(d) FROM chunks JOIN damaged_chunk d ON d.chunk_id = chunks.id`;

/** One version of the database, for one round. */
export class DepartureReads {
  readonly #client: pg.ClientBase;
  readonly #number: number;

  constructor(client: pg.ClientBase, number: number) {
    this.#client = client;
    this.#number = number;
  }

  /** Keys of changed buckets from behind the last one on, so that what changes all the time keeps nothing else waiting. */
  async changed(after: MoveBucketKey | undefined): Promise<readonly ChangedBucket[]> {
    const ask = async ({ kind, a, b }: { kind: number; a: number; b: number }): Promise<ChangedBucket[]> =>
      (await this.#client.query(CHANGED, [this.#number, kind, a, b])).rows as ChangedBucket[];
    const behind = after === undefined ? [] : await ask(after);
    return behind.length > 0 ? behind : ask({ kind: -1, a: 0, b: 0 });
  }

  /** Buckets to be sent, and ids that are not marked yet. */
  async left(): Promise<{ readonly changed: number; readonly unmarked: number }> {
    const { rows } = await this.#client.query(LEFT, [this.#number]);
    return rows[0] as { changed: number; unmarked: number };
  }

  /** Rows of buckets, some at a time. */
  async *rows(
    keys: readonly ChangedBucket[],
  ): AsyncGenerator<{ readonly keys: readonly ChangedBucket[]; readonly rows: readonly JsonRow[] }> {
    let count = FIRST_BUCKETS;
    for (let at = 0; at < keys.length; at += count, count = Math.min(BUCKETS_MAX, 2 * count)) {
      const some = keys.slice(at, at + count);
      yield { keys: some, rows: await this.#rowsOf(some) };
    }
  }

  async #rowsOf(keys: readonly MoveBucketKey[]): Promise<readonly JsonRow[]> {
    const number = this.#number;
    const ranges = (kind: 0 | 2): (readonly [number, number])[] =>
      keys.filter((key) => key.kind === kind).map((key) => idsOf(number, key));
    const [ids, small] = [ranges(0), ranges(2)];
    const lists = keys.filter(({ kind }) => kind === 1);
    const span = 2 ** MOVE_BUCKET_BITS[1];
    const { rows } = await this.#client.query(ROWS, [
      number,
      ids.map(([low]) => low),
      ids.map(([, high]) => high),
      small.map(([low]) => low),
      small.map(([, high]) => high),
      lists.map(({ a }) => number * ROOT_STRIDE + a),
      lists.map(({ b }) => b * span),
      lists.map(({ b }) => (b + 1) * span - 1),
    ]);
    return rows as JsonRow[];
  }
}
