// The flag -loops: how many event loops serve the connections of a FileServer (D26).
import { availableParallelism } from "node:os";
import { InvalidArgumentError } from "commander";
import { GroveError } from "#base/errors.ts";
import type { EngineSettings } from "#storage/engine/engine-settings.ts";

/** More loops would divide budgets of memory into parts too small for one large message. */
export const LOOPS_MAX = 4;
/** Below this number of cores further threads take from the database's and the disk's. */
const CORES_MIN = 4;

/** The machine, as far as it decides how many loops there may be. */
export interface LoopsMachine {
  readonly cores: number;
  readonly platform: string;
}

const thisMachine = (): LoopsMachine => ({ cores: availableParallelism(), platform: process.platform });

/** One loop below four cores or off Linux, else one for each two cores, at most LOOPS_MAX. */
export function usualLoops({ cores, platform }: LoopsMachine = thisMachine()): number {
  if (platform !== "linux" || cores < CORES_MIN) return 1;
  return Math.min(LOOPS_MAX, Math.floor(cores / 2));
}

/**
 * The loops of a node: those asked for, or as many as are usual. Chunks of the shared engine pass through one
 * thread. Throws BAD_ARGUMENT for more.
 */
export function loopsFor(engine: EngineSettings | undefined, asked: number | undefined): number {
  if (engine === undefined) return asked ?? usualLoops();
  if (asked === undefined || asked === 1) return 1;
  throw new GroveError(
    "BAD_ARGUMENT",
    "with -engine a node has one loop: leave -loops out, and start more nodes on the same engine",
  );
}

/** Reads the flag. Throws InvalidArgumentError. */
export function parseLoops(text: string, { platform }: LoopsMachine = thisMachine()): number {
  const loops = Number(text);
  if (!/^[1-9]\d*$/.test(text) || loops > LOOPS_MAX) {
    throw new InvalidArgumentError(`write a number from 1 to ${LOOPS_MAX}.`);
  }
  if (loops > 1 && platform !== "linux") {
    throw new InvalidArgumentError(
      "only Linux divides the connections of one port among threads: leave it at 1.",
    );
  }
  return loops;
}
