// Puts together what moves roots to the shared engine and away from it.

import type { ObjectStore } from "#storage/object-store/object-store.ts";
import { ArrivalCommits } from "#storage/shared/arrival-commits.ts";
import { DepartureCommits } from "#storage/shared/departure-commits.ts";
import { MovingRows } from "#storage/shared/moving-rows.ts";
import type { SharedLine } from "#storage/shared/shared-line.ts";
import type { SharedWriter } from "#storage/shared/shared-writer.ts";
import { Arrivals } from "./arrivals.ts";
import { Departures } from "./departures.ts";
import type { EngineRows } from "./engine-rows.ts";
import type { HeldRoots } from "./held-roots.ts";
import { SharedMoves } from "./shared-moves.ts";
import type { SharedStorage } from "./shared-storage.ts";

/** How long the database may take for rows of a moving root: a bucket has at most some tens of megabytes. */
const MOVE_ANSWER_MS = 60_000;

/** What the moves work on. */
export interface OpenMovesDeps {
  readonly lineOf: (answerMs: number) => SharedLine;
  readonly rows: EngineRows;
  readonly store: ObjectStore;
  /** This process as a holder of roots. */
  readonly instance: string;
  readonly writer: SharedWriter;
  readonly roots: HeldRoots;
  readonly events: { readonly storage?: SharedStorage };
}

/** The moves, open. */
export interface OpenedMoves {
  readonly storage: SharedMoves;
  readonly departures: Departures;
  readonly close: () => void;
}

/** Makes them; nothing is asked of the database before a root moves. */
export function openMoves({
  lineOf,
  rows,
  store,
  instance,
  writer,
  roots,
  events,
}: OpenMovesDeps): OpenedMoves {
  let opening: Promise<MovingRows> | undefined;
  const movingRows = (): Promise<MovingRows> => {
    opening ??= rows.idRange().then(
      (first) => new MovingRows(first),
      (error: unknown) => {
        opening = undefined;
        throw error;
      },
    );
    return opening;
  };
  const arrivals = new Arrivals({
    commits: new ArrivalCommits(lineOf(MOVE_ANSWER_MS), instance),
    store,
    instance,
    rows: movingRows,
    serve: async (root) => {
      await writer.know(root.owner);
      roots.add(root);
    },
    sharesChanged: (owners) => events.storage?.sharesChanged(owners),
  });
  const departures = new Departures({
    commits: new DepartureCommits(lineOf(MOVE_ANSWER_MS)),
    store,
    instance,
    roots,
    writer,
    rows: movingRows,
    damaged: async (chunkId, number, problem) => events.storage?.reportDamage(chunkId, number, problem),
  });
  return {
    storage: new SharedMoves(arrivals, departures),
    departures,
    close: () => {
      opening?.then((made) => made.close()).catch(() => undefined);
    },
  };
}
