// What a database needs that was restored to an earlier moment, beside a bucket that went on.
import type pg from "pg";

/** Above every epoch that a lease can have got since: the metadata store keeps a root where the highest was. */
const EPOCHS_AHEAD = 1_048_576;
/** Names that become blocks in one statement. */
const NAMES_AT_ONCE = 1_000;

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
