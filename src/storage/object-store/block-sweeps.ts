// Removes objects that have a name of an ended block and no row: remains of crashes and of late requests.
import { type BlockPlace, type ChunkBlocks, namesOf } from "./chunk-blocks.ts";
import { checkRecoveryWindow, type RemovalCounts, type RemovalDeps, removeNames } from "./dropped-chunks.ts";

/** Time after the end of a block until its first sweep: requests of a holder that was cut off have ended. */
export const FIRST_SWEEP_AFTER_MS = 3_600_000;

const BLOCKS_AT_ONCE = 64;
/** Blocks of which something was refused before a pass goes no further. */
const REFUSED_MAX = 64;

/** Where the next pass goes on after one that ended early, for first and second sweeps; others begin at the oldest. */
export type SweepPlaces = Map<boolean, BlockPlace>;

/**
 * Sweeps blocks that ended an hour ago, and again those that ended before the window of recovery, whose rows
 * then go. Nothing is listed: what has no row is removed by its name. A block is kept when the store did not
 * confirm all of its names. With the same `places`, what is always refused keeps no later block from its turn.
 */
export async function sweepBlocks(
  deps: RemovalDeps & { blocks: ChunkBlocks; places: SweepPlaces },
  signal: AbortSignal,
): Promise<RemovalCounts> {
  const { blocks, clock, places, recoveryWindowMs } = deps;
  checkRecoveryWindow(recoveryWindowMs);
  const counts = { removed: 0, kept: 0 };
  const turns = [
    { isSweptOnce: false, ageMs: FIRST_SWEEP_AFTER_MS },
    { isSweptOnce: true, ageMs: Math.max(recoveryWindowMs, FIRST_SWEEP_AFTER_MS) },
  ];
  for (const { isSweptOnce, ageMs } of turns) {
    let after = places.get(isSweptOnce);
    let refusedBlocks = 0;
    for (;;) {
      const beforeMs = clock.wallMs() - ageMs;
      const ended = await blocks.ended({ beforeMs, isSweptOnce, after, limit: BLOCKS_AT_ONCE });
      if (ended.length === 0) places.delete(isSweptOnce);
      if (ended.length === 0 || refusedBlocks >= REFUSED_MAX) break;
      for (const { id, endedMs } of ended) {
        if (signal.aborted) return counts;
        // Before its names: the next pass goes on behind a block with which this one fails.
        after = { endedMs, id };
        places.set(isSweptOnce, after);
        const names = namesOf(id);
        const keptByRows = await blocks.kept(names);
        const free = names.filter((name) => !keptByRows.has(name));
        const refused = await removeNames(deps, free);
        counts.removed += free.length - refused.size;
        counts.kept += refused.size;
        if (refused.size > 0) refusedBlocks++;
        else await (isSweptOnce ? blocks.drop(id) : blocks.sweptOnce(id));
      }
    }
  }
  return counts;
}
