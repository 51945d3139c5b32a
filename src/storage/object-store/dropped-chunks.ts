// Removes the objects of dropped chunks once the window of recovery has passed, in batches.
import type { Clock } from "#base/clock.ts";
import { GroveError, isGroveError } from "#base/errors.ts";
import type { Logger } from "#base/log.ts";
import { chunkKey } from "./chunk-blocks.ts";
import { DELETED_AT_ONCE } from "./s3-client.ts";
import type { StoreMarker } from "./store-marker.ts";
import type { StoreRequests } from "./store-requests.ts";

/** Default time for which dropped chunks stay, so that a database restored to a moment finds them: 7 days. */
export const RECOVERY_WINDOW_MS: number = 7 * 86_400_000;
/** Shortest time that may be set: an hour. */
export const RECOVERY_WINDOW_MIN_MS = 3_600_000;

/** A chunk without a file, whose object is still there. */
export interface DroppedChunk {
  readonly id: number;
  readonly name: string;
}

/** Rows of dropped chunks; the engine keeps them. */
export interface DroppedChunks {
  /** Chunks that were dropped before a time, by the database's clock, after an id, in the order of ids. */
  due(select: { beforeMs: number; afterId: number; limit: number }): Promise<readonly DroppedChunk[]>;
  /** Removes the rows of chunks whose objects are gone. */
  gone(ids: readonly number[]): Promise<void>;
}

/** Dependencies of everything that removes objects. */
export interface RemovalDeps {
  readonly requests: StoreRequests;
  readonly prefix: string;
  readonly marker: StoreMarker;
  /** The incarnation of this database. */
  readonly incarnation: string;
  /** Wall time. It is compared with times of the database, which the engine's clock port follows. */
  readonly clock: Pick<Clock, "wallMs">;
  readonly logger: Logger;
  /** From RECOVERY_WINDOW_MIN_MS. */
  readonly recoveryWindowMs: number;
}

/** What one pass removed and what the store kept. */
export interface RemovalCounts {
  readonly removed: number;
  readonly kept: number;
}

/** Throws BAD_ARGUMENT for a window that is too short. */
export function checkRecoveryWindow(windowMs: number): void {
  if (windowMs >= RECOVERY_WINDOW_MIN_MS) return;
  throw new GroveError("BAD_ARGUMENT", "dropped chunks must stay for an hour at the least");
}

/** Batches that fail one after the other before a pass ends: the store is down, and not one of their names odd. */
const FAILED_IN_A_ROW_MAX = 3;

/**
 * Removes all due chunks. Ends when the signal aborts; the next pass finds the rest. Throws BAD_ARGUMENT for
 * a database that must not remove anything, and at its end the first error of a batch that stays.
 */
export async function removeDropped(
  deps: RemovalDeps & { dropped: DroppedChunks },
  signal: AbortSignal,
): Promise<RemovalCounts> {
  const { dropped, clock, recoveryWindowMs } = deps;
  checkRecoveryWindow(recoveryWindowMs);
  const beforeMs = clock.wallMs() - recoveryWindowMs;
  const counts = { removed: 0, kept: 0 };
  const failures: unknown[] = [];
  let failedInARow = 0;
  for (let afterId = 0; !signal.aborted && failedInARow < FAILED_IN_A_ROW_MAX; ) {
    const chunks = await dropped.due({ beforeMs, afterId, limit: DELETED_AT_ONCE });
    const last = chunks.at(-1);
    if (last === undefined) break;
    afterId = last.id;
    failedInARow++;
    try {
      const kept = await removeNames(
        deps,
        chunks.map(({ name }) => name),
      );
      const gone = chunks.filter(({ name }) => !kept.has(name));
      if (gone.length > 0) await dropped.gone(gone.map(({ id }) => id));
      counts.removed += gone.length;
      counts.kept += kept.size;
      failedInARow = 0;
    } catch (error) {
      if (isGroveError(error, "BAD_ARGUMENT")) throw error;
      failures.push(error);
    }
  }
  if (failures.length > 0) throw failures[0];
  return counts;
}

/** Removes the objects of at most DELETED_AT_ONCE names. Returns the names that the store did not confirm. */
export async function removeNames(deps: RemovalDeps, names: readonly string[]): Promise<ReadonlySet<string>> {
  const { requests, prefix, marker, incarnation, logger } = deps;
  if (names.length === 0) return new Set();
  // Before each batch: a restored database may have taken over meanwhile.
  await marker.require(incarnation);
  const nameOf = new Map(names.map((name) => [chunkKey(prefix, name), name]));
  const unconfirmed = await requests.deleteMany([...nameOf.keys()]);
  const kept = new Set<string>();
  for (const [key, code] of unconfirmed) {
    kept.add(nameOf.get(key) ?? key);
    logger.warn("store.removal_refused", { key, code });
  }
  return kept;
}
