// What a rig is: something that tries to show that Grove breaks a promise, as often as it is asked to.
import type { Attack } from "./campaign.ts";

/** One way of attacking a promise. A rig that finds nothing is worth as much as the planted bugs that it does find. */
export interface Rig extends Attack {
  /** The promise, in one sentence. */
  readonly proves: string;
  /** How many attacks a whole run makes, within its minutes. */
  readonly goal: number;
  /** How many the form in `npm test` makes: ten seconds at most on two cores, so that a machine six times slower gets there too. */
  readonly shortGoal: number;
  /** How many it makes against a planted bug that does not say so itself, where the short form is too short to meet it. */
  readonly plantedGoal?: number;
  /** In how many processes a whole run goes on side by side, each with a seed of its own; for a rig whose own work is one thread's. */
  readonly lanes?: number;
  /** What of the machine is missing ("strace is not installed"), or undefined where it can run. */
  readonly lacks?: () => string | undefined;
}

/** A bug as a person in a hurry would write it, put into a copy of the sources to see which rig notices. */
export interface PlantedBug {
  /** In kebab-case, unique: "no-folder-flush". */
  readonly name: string;
  /** What is wrong, in a few words. */
  readonly is: string;
  /** Names of the rigs that must catch it, the first of them in its own run. */
  readonly rigs: readonly [string, ...string[]];
  /** What is changed: `from` occurs exactly once in `file`. */
  readonly edits: readonly { readonly file: string; readonly from: string; readonly to: string }[];
  /** More than the rig makes against planted bugs, where this one needs it. */
  readonly goal?: number;
  /** The part of the rig's attacks that meets the bug, for rigs that are made of parts: they read it by `narrowedTo`. */
  readonly narrow?: string;
}

/** The environment variable by which a rig is narrowed to one of its parts. */
export const NARROW = "GROVE_PROVE_NARROW";

/** Those of a rig's parts that a run is narrowed to; all of them where it names none of these. */
export function narrowedTo<Part>(parts: readonly Part[], nameOf: (part: Part) => string): readonly Part[] {
  const wanted = process.env[NARROW]?.split(",") ?? [];
  const named = parts.filter((part) => wanted.includes(nameOf(part)));
  return named.length === 0 ? parts : named;
}
