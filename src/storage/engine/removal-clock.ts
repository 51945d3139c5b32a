// The time that removals go by: the database's clock, of which no jump makes anything old.
import type { ClientBase } from "pg";

/** Passes follow one another within this time; what the clock has gained beyond is a jump, or a standstill of all. */
const BETWEEN_PASSES_MS = 7_200_000;

interface Known {
  /** The database's clock at the last pass. */
  readonly seenMs: number;
  /** Time that has surely passed until then, from an arbitrary beginning. */
  readonly passedMs: number;
  /** Jumps that something may still be younger by. */
  readonly jumps: readonly { readonly atMs: number; readonly byMs: number }[];
}

/**
 * The database's clock without its jumps of the last window, for the one process that removes. What was dropped
 * before a jump is as old as the window once that has passed since.
 */
export async function removalNowMs(client: ClientBase, windowMs: number): Promise<number> {
  const { rows } = await client.query(
    `SELECT (extract(epoch FROM clock_timestamp()) * 1000)::float8 AS "nowMs",
       (SELECT known FROM removal_clock) AS known`,
  );
  const { nowMs, known } = rows[0] as { nowMs: number; known: Known | null };
  const { seenMs, passedMs, jumps } = known ?? { seenMs: nowMs, passedMs: 0, jumps: [] };
  const gainedMs = nowMs - seenMs;
  const atMs = passedMs + Math.min(Math.max(0, gainedMs), BETWEEN_PASSES_MS);
  const jumped = gainedMs > BETWEEN_PASSES_MS ? [{ atMs, byMs: gainedMs - BETWEEN_PASSES_MS }] : [];
  const left = [...jumps, ...jumped].filter((jump) => atMs - jump.atMs <= windowMs);
  const next: Known = { seenMs: nowMs, passedMs: atMs, jumps: left };
  await client.query(
    "INSERT INTO removal_clock (known) VALUES ($1) ON CONFLICT (is_only) DO UPDATE SET known = excluded.known",
    [JSON.stringify(next)],
  );
  return nowMs - left.reduce((all, { byMs }) => all + byMs, 0);
}
