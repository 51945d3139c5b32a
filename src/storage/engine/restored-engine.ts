// What a database needs that was restored to an earlier moment, beside a bucket that went on.
import type pg from "pg";
import type { ChunkFacts } from "#storage/chunks/chunk-check.ts";
import { FLAG_DAMAGED } from "#storage/metadata/schema.ts";
import type { ObjectStore } from "#storage/object-store/object-store.ts";
import { chunkProblem } from "./store-scrub.ts";

/** Above every epoch that a lease can have got since: the metadata store keeps a root where the highest was. */
const EPOCHS_AHEAD = 1_048_576;
/** Names that become blocks in one statement. */
const NAMES_AT_ONCE = 1_000;
const MARKS_AT_ONCE = 256;

/**
 * Ends every process that the database knows, and lets the next leases begin above all that were given out
 * after the moment. A process that still runs loses its lease with it.
 */
export async function beginAnew(client: pg.ClientBase): Promise<void> {
  await client.query(
    `WITH ended AS (UPDATE instance SET is_ended = TRUE WHERE NOT is_ended)
     UPDATE holding SET epoch = epoch + ${EPOCHS_AHEAD}, prior_epoch = epoch, prior_group = last_group, last_group = '',
       taken_at = clock_timestamp()`,
  );
  // A copy may be for another cluster: the next server that registers says whose it is.
  const made = await client.query(`SELECT to_regclass('engine_cluster') IS NOT NULL AS "isMade"`);
  if ((made.rows[0] as { isMade: boolean }).isMade) await client.query("DELETE FROM engine_cluster");
  // Objects of after the moment stay for the window of recovery: the database may be restored to a later one.
  await client.query(
    "UPDATE chunk_block SET is_swept_once = TRUE, closed_at = clock_timestamp() WHERE NOT is_swept_once",
  );
}

/** Gives objects without a row to the last sweeps, after the window of recovery: their blocks have ended. */
export async function leaveToSweeps(client: pg.ClientBase, names: readonly string[]): Promise<void> {
  for (let at = 0; at < names.length; at += NAMES_AT_ONCE) {
    await client.query(
      `INSERT INTO chunk_block (id, root_id, epoch, since_ms, closed_at, is_swept_once)
       SELECT DISTINCT left(name, -2), '', 0, (extract(epoch FROM clock_timestamp()) * 1000)::bigint, clock_timestamp(), TRUE
       FROM unnest($1::text[]) AS stray (name) ON CONFLICT (id) DO NOTHING`,
      [names.slice(at, at + NAMES_AT_ONCE)],
    );
  }
}

/** Takes the marks of damage off chunks whose objects are whole again, and off files without another one. How many. */
export async function clearMarks(
  client: pg.ClientBase,
  store: Pick<ObjectStore, "marker" | "prefix" | "requests">,
): Promise<{ chunks: number; files: number }> {
  const cleared = { chunks: 0, files: 0 };
  for (let afterId = 0, isEnd = false; !isEnd; ) {
    const { rows } = await client.query(
      `SELECT c.id, c.name, c.length, c.crc32, c.block_crcs AS "blockCrcs" FROM damaged_chunk d
         JOIN chunk c ON c.id = d.chunk_id WHERE c.refs > 0 AND c.id > $1 ORDER BY c.id LIMIT ${MARKS_AT_ONCE}`,
      [afterId],
    );
    const marked = rows as (ChunkFacts & { readonly id: number; readonly name: string })[];
    isEnd = marked.length < MARKS_AT_ONCE;
    afterId = marked.at(-1)?.id ?? afterId;
    const whole: number[] = [];
    for (const chunk of marked) if ((await chunkProblem(store, chunk)) === undefined) whole.push(chunk.id);
    // Before the marks of chunks: by these the next run finds what this one leaves.
    const files = await client.query(
      `UPDATE inode SET flags = flags & ~${FLAG_DAMAGED} WHERE (flags & ${FLAG_DAMAGED}) <> 0
         AND content_id IN (SELECT content_id FROM file_chunk WHERE chunk_id = ANY ($1))
         AND NOT EXISTS (SELECT 1 FROM file_chunk f JOIN damaged_chunk d ON d.chunk_id = f.chunk_id
           WHERE f.content_id = inode.content_id AND d.chunk_id <> ALL ($1))`,
      [whole],
    );
    await client.query("DELETE FROM damaged_chunk WHERE chunk_id = ANY ($1)", [whole]);
    cleared.chunks += whole.length;
    cleared.files += files.rowCount ?? 0;
  }
  return cleared;
}
