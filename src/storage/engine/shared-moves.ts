// Moves on the shared engine: none, since every process reaches the rows and chunks of every root.
import { GroveError } from "#base/errors.ts";
import type { RootMoveStorage } from "#storage/contract/root-move.ts";

/** Knows no move, and refuses to begin one with BAD_ARGUMENT. */
export const NO_MOVES: RootMoveStorage = {
  list: () => [],
  beginExport: refuseSoon,
  nextRound: refuseSoon,
  readChunk: refuseSoon,
  freeze: refuseSoon,
  exportTotals: refuse,
  thaw: refuseSoon,
  depart: refuseSoon,
  endExport: refuseSoon,
  beginImport: refuseSoon,
  missingChunks: refuse,
  putChunk: refuseSoon,
  putBuckets: refuseSoon,
  importTotals: refuse,
  keepHead: refuseSoon,
  finishImport: refuseSoon,
  endImport: refuseSoon,
};

function refuse(): never {
  throw new GroveError("BAD_ARGUMENT", "roots of the shared engine do not move between nodes");
}

async function refuseSoon(): Promise<never> {
  return refuse();
}
