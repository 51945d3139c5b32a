// The port for randomness, so that simulations can repeat a run.
import { randomBytes } from "node:crypto";

/** Cryptographically secure bytes, except in a simulation. */
export interface Random {
  bytes(count: number): Buffer;
}

/** A predictable number from 0 to just below 1 that spreads waits; not for secrets. */
export const systemFraction: () => number = Math.random;

/** The machine's own source. */
export const systemRandom: Random = { bytes: (count) => randomBytes(count) };
