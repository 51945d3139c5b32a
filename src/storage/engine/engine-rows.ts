// Rows of the object store's side in PostgreSQL: blocks of names, chunks without a file, quotas.
import { GroveError } from "#base/errors.ts";
import { ARRIVING } from "#storage/metadata/moved-roots.ts";
import type { ListedChunk, ListedChunks } from "#storage/object-store/bucket-list.ts";
import type { ChunkBlock, ChunkBlocks, EndedBlock, EndedSelect } from "#storage/object-store/chunk-blocks.ts";
import type { DroppedChunk, DroppedChunks } from "#storage/object-store/dropped-chunks.ts";
import type { SharedLine } from "#storage/shared/shared-line.ts";
import { refusalOrOutage } from "#storage/shared/writer-refusals.ts";

/** A user's own quota and inode limit; undefined where the default holds. */
export interface StoredQuota {
  readonly username: string;
  readonly bytes: bigint | undefined;
  readonly inodes: number | undefined;
}

/** Blocks with the time at which each ended, while it is not closed: with the epoch under which it is used. */
const BLOCKS_WITH_END = `
  SELECT b.*, coalesce(closed_at, CASE WHEN coalesce(h.epoch, a.epoch) IS DISTINCT FROM b.epoch
    THEN coalesce(h.taken_at, a.taken_at, to_timestamp(b.since_ms / 1000.0)) END) AS ended_at
  FROM chunk_block b LEFT JOIN root r ON r.root_id = b.root_id LEFT JOIN holding h ON h.root_number = r.number
    LEFT JOIN arrival a ON '${ARRIVING}' || a.move_id = b.root_id AND a.state = 'arriving'`;

/** See the ports. Each statement stands for itself. */
export class EngineRows implements ChunkBlocks, DroppedChunks, ListedChunks {
  readonly #line: SharedLine;

  constructor(line: SharedLine) {
    this.#line = line;
  }

  async add({ id, rootId, epoch, sinceMs }: ChunkBlock): Promise<void> {
    const rows = await this.#ask(
      `INSERT INTO chunk_block (id, root_id, epoch, since_ms)
       SELECT $1::text, root_id, epoch, $4::bigint FROM root JOIN holding ON root_number = number
         WHERE root_id = $2::text AND epoch = $3::bigint
       UNION ALL SELECT $1, $2, epoch, $4 FROM arrival
         WHERE '${ARRIVING}' || move_id = $2 AND epoch = $3 AND state = 'arriving'
       RETURNING id`,
      [id, rootId, epoch, Math.trunc(sinceMs)],
    );
    if (rows.length === 0) throw new GroveError("STORE_UNAVAILABLE", "another node serves this root now");
  }

  async drop(id: string): Promise<void> {
    await this.#ask("DELETE FROM chunk_block WHERE id = $1", [id]);
  }

  async close(id: string): Promise<void> {
    await this.#ask("UPDATE chunk_block SET closed_at = clock_timestamp() WHERE id = $1", [id]);
  }

  async ended(select: EndedSelect): Promise<EndedBlock[]> {
    const rows = await this.#ask(
      `SELECT * FROM (
         SELECT id, root_id AS "rootId", epoch, since_ms AS "sinceMs", is_swept_once AS "isSweptOnce",
           (extract(epoch FROM ended_at) * 1000)::float8 AS "endedMs" FROM (${BLOCKS_WITH_END}) known
       ) block WHERE "endedMs" < $1 AND "isSweptOnce" = $2 AND ("endedMs", id) > ($3::float8, $4)
       ORDER BY "endedMs", id LIMIT $5`,
      [
        select.beforeMs,
        select.isSweptOnce,
        select.after?.endedMs ?? -1,
        select.after?.id ?? "",
        select.limit,
      ],
    );
    return rows as unknown as EndedBlock[];
  }

  async kept(names: readonly string[]): Promise<ReadonlySet<string>> {
    const rows = await this.#ask("SELECT name FROM chunk WHERE name = ANY ($1)", [names]);
    return new Set(rows.map(({ name }) => String(name)));
  }

  /** Keeps its end too: a take-over says when the latest epoch ended, and the next one would put the second sweep off. */
  async sweptOnce(id: string): Promise<void> {
    await this.#ask(
      `UPDATE chunk_block SET is_swept_once = TRUE, closed_at = known.ended_at
       FROM (${BLOCKS_WITH_END} WHERE b.id = $1) known WHERE chunk_block.id = known.id`,
      [id],
    );
  }

  async due(select: { beforeMs: number; afterId: number; limit: number }): Promise<DroppedChunk[]> {
    const rows = await this.#ask(
      `SELECT c.id, c.name FROM garbage g JOIN chunk c ON c.id = g.chunk_id
       WHERE g.dropped_at < to_timestamp($1::float8 / 1000) AND c.refs = 0 AND c.id > $2 ORDER BY c.id LIMIT $3`,
      [select.beforeMs, select.afterId, select.limit],
    );
    return rows as unknown as DroppedChunk[];
  }

  /** A dropped chunk never comes back, so that no lease is needed for it. */
  async gone(ids: readonly number[]): Promise<void> {
    await this.#ask(
      `WITH gone AS (DELETE FROM chunk WHERE id = ANY ($1) AND refs = 0 RETURNING id),
       unmarked AS (DELETE FROM damaged_chunk WHERE chunk_id IN (SELECT id FROM gone))
       DELETE FROM garbage WHERE chunk_id IN (SELECT id FROM gone)`,
      [ids],
    );
  }

  async page(afterName: string, limit: number): Promise<ListedChunk[]> {
    const rows = await this.#ask(
      "SELECT name, length FROM chunk WHERE refs > 0 AND name > $1 ORDER BY name LIMIT $2",
      [afterName, limit],
    );
    return rows as unknown as ListedChunk[];
  }

  async explained(names: readonly string[]): Promise<ReadonlySet<string>> {
    const rows = await this.#ask(
      `SELECT name FROM unnest($1::text[]) AS asked (name)
       WHERE EXISTS (SELECT 1 FROM chunk WHERE chunk.name = asked.name)
         OR EXISTS (SELECT 1 FROM chunk_block WHERE id = left(asked.name, -2))`,
      [names],
    );
    return new Set(rows.map(({ name }) => String(name)));
  }

  /** True when files have chunks, which must be in the bucket. */
  async hasChunks(): Promise<boolean> {
    const [row] = await this.#ask('SELECT EXISTS (SELECT 1 FROM chunk WHERE refs > 0) AS "hasChunks"', []);
    return row?.["hasChunks"] === true;
  }

  /** Keeps a cluster where there is none yet; the one that is kept. */
  async keepCluster(id: string): Promise<string> {
    await this.#ask("INSERT INTO engine_cluster (id) VALUES ($1) ON CONFLICT DO NOTHING", [id]);
    const [row] = await this.#ask("SELECT id FROM engine_cluster", []);
    return row === undefined ? id : String(row["id"]);
  }

  /** What tells this database from its copies. */
  async incarnation(): Promise<string> {
    const [row] = await this.#ask("SELECT incarnation FROM identity", []);
    return String(row?.["incarnation"]);
  }

  /** The first of a range of numbers that no other process gives out. */
  async idRange(): Promise<number> {
    const [row] = await this.#ask("SELECT nextval('id_range') * 4294967296 AS first", []);
    return Number(row?.["first"]);
  }

  /** Quotas of users that are not the default. */
  async quotas(usernames: readonly string[]): Promise<StoredQuota[]> {
    const rows = await this.#ask(
      "SELECT username, bytes::text AS bytes, inodes FROM quota WHERE username = ANY ($1)",
      [usernames],
    );
    return rows.map(({ username, bytes, inodes }) => ({
      username: String(username),
      bytes: bytes === null ? undefined : BigInt(bytes as string),
      inodes: inodes === null ? undefined : Number(inodes),
    }));
  }

  /** Keeps a user's quota or inode limit, or both; undefined leaves it, and 0 is the default. */
  async setQuota(username: string, bytes: bigint | undefined, inodes: number | undefined): Promise<void> {
    await this.#ask(
      `INSERT INTO quota (username, bytes, inodes) VALUES ($1, nullif($2::numeric, 0), nullif($3::bigint, 0))
       ON CONFLICT (username) DO UPDATE SET
         bytes = CASE WHEN $2::numeric IS NULL THEN quota.bytes ELSE nullif($2::numeric, 0) END,
         inodes = CASE WHEN $3::bigint IS NULL THEN quota.inodes ELSE nullif($3::bigint, 0) END`,
      [username, bytes?.toString() ?? null, inodes ?? null],
    );
  }

  #ask(text: string, values: readonly unknown[]): Promise<Record<string, unknown>[]> {
    return this.#line
      .run(async (client) => (await client.query(text, [...values])).rows as Record<string, unknown>[])
      .catch((error: unknown) => {
        // A call that needs it is made again; an upload takes any other error for a broken disk.
        throw refusalOrOutage(error);
      });
  }
}
