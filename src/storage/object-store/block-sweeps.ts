// Removes objects that have a name of an ended block and no row: remains of crashes and of late requests.
import { type ChunkBlocks, namesOf } from "./chunk-blocks.ts";
import { checkRecoveryWindow, type RemovalCounts, type RemovalDeps, removeNames } from "./dropped-chunks.ts";

/** Time after the end of a block until its first sweep: requests of a holder that was cut off have ended. */
export const FIRST_SWEEP_AFTER_MS = 3_600_000;

const BLOCKS_AT_ONCE = 64;

/**
 * Sweeps blocks that ended an hour ago, and again those that ended before the window of recovery, whose rows
 * then go. Nothing is listed: what has no row is removed by its name. A block is kept when the store did not
 * confirm all of its names.
 */
export async function sweepBlocks(
  deps: RemovalDeps & { blocks: ChunkBlocks },
  signal: AbortSignal,
): Promise<RemovalCounts> {
  const { blocks, clock, recoveryWindowMs } = deps;
  checkRecoveryWindow(recoveryWindowMs);
  const counts = { removed: 0, kept: 0 };
  const turns = [
    { isSweptOnce: false, ageMs: FIRST_SWEEP_AFTER_MS },
    { isSweptOnce: true, ageMs: Math.max(recoveryWindowMs, FIRST_SWEEP_AFTER_MS) },
  ];
  for (const { isSweptOnce, ageMs } of turns) {
    const failed = new Set<string>();
    for (;;) {
      const beforeMs = clock.wallMs() - ageMs;
      const limit = BLOCKS_AT_ONCE + failed.size;
      const ended = await blocks.ended({ beforeMs, isSweptOnce, limit });
      const next = ended.filter(({ id }) => !failed.has(id));
      if (next.length === 0) break;
      for (const { id } of next) {
        if (signal.aborted) return counts;
        const names = namesOf(id);
        const keptByRows = await blocks.kept(names);
        const free = names.filter((name) => !keptByRows.has(name));
        const refused = await removeNames(deps, free);
        counts.removed += free.length - refused.size;
        counts.kept += refused.size;
        if (refused.size > 0) failed.add(id);
        else await (isSweptOnce ? blocks.drop(id) : blocks.sweptOnce(id));
      }
      if (failed.size >= BLOCKS_AT_ONCE) break;
    }
  }
  return counts;
}
