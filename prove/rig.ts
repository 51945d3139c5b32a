// Types of rigs and planted bugs: a rig tries to show that Grove breaks a promise.
import type { Attack } from "./campaign.ts";

/**
 * One way of attacking a promise. A rig that finds nothing is worth as much as the planted bugs that it
 * finds.
 */
export interface Rig extends Attack {
  /** The promise, in one sentence. */
  readonly proves: string;
  /** Attacks of a whole run, within its minutes. */
  readonly goal: number;
  /**
   * Attacks of the form in `npm test`: ten seconds at most on two cores, so that a machine six times slower
   * gets there too.
   */
  readonly shortGoal: number;
  /**
   * Attacks against a planted bug that names no goal of its own, where the short form is too short to meet
   * it.
   */
  readonly plantedGoal?: number;
  /**
   * Processes of a whole run side by side, each with a seed of its own; for a rig whose own work is one
   * thread's.
   */
  readonly lanes?: number;
  /** What the machine lacks ("strace is not installed"), or undefined where the rig can run. */
  readonly lacks?: () => string | undefined;
}

/** A plausible bug, put into a copy of the sources to see which rig notices. */
export interface PlantedBug {
  /** In kebab-case, unique: "no-folder-flush". */
  readonly name: string;
  /** What is wrong, in a few words. */
  readonly is: string;
  /** Names of the rigs that must catch it, the first of them in its own run. */
  readonly rigs: readonly [string, ...string[]];
  /** The changes: `from` occurs exactly once in `file`. */
  readonly edits: readonly { readonly file: string; readonly from: string; readonly to: string }[];
  /** Attacks that this bug needs, if more than the rig makes against planted bugs. */
  readonly goal?: number;
  /**
   * The part of the rig's attacks that meets the bug, for rigs made of parts: they read it by `narrowedTo`.
   */
  readonly narrow?: string;
}

/** Environment variable that narrows a rig to some of its parts. */
export const NARROW = "GROVE_PROVE_NARROW";

/** Returns the parts that a run is narrowed to; all of them where it names none of these. */
export function narrowedTo<Part>(parts: readonly Part[], nameOf: (part: Part) => string): readonly Part[] {
  const wanted = process.env[NARROW]?.split(",") ?? [];
  const named = parts.filter((part) => wanted.includes(nameOf(part)));
  return named.length === 0 ? parts : named;
}
