// Who asks in a run of the authorization rig, and what a request about it is.
import type { SeededRandom } from "#prove/seeded-random.ts";
import type { SignedIn } from "#prove/served-node.ts";
import type { Groups } from "./groups.ts";
import type { Bounds, Entry, Oracle } from "./oracle.ts";

/** A visitor by a link, and what the link was made for. */
export interface Guest {
  readonly owner: string;
  readonly entry: Entry;
  readonly isDrop: boolean;
  readonly linkId: string;
  readonly calls: SignedIn["calls"];
  readonly as: { readonly metadata: Readonly<Record<string, string>> };
  /** Set when the link was ended, by hand or with its group. */
  isOver: boolean;
}

/** A request with its expected answer. */
export interface Check {
  readonly what: string;
  ask(): Promise<string>;
  /** The oracle's answer at this moment. */
  wanted(): string;
}

/** A user at a door, by an app password with its bounds. */
export interface Visitor extends SignedIn {
  readonly bounds: Bounds;
}

/** The users of a run, and what requests may be about. */
export interface Cast {
  readonly users: readonly SignedIn[];
  readonly visitors: readonly Visitor[];
  /** Visitors by links. */
  readonly guests: readonly Guest[];
  readonly oracle: Oracle;
  readonly groups: Groups;
  readonly random: SeededRandom;
  /** Every path that ever existed, in any root. */
  readonly places: readonly string[];
  /** Tokens that are no longer valid or never were, each with the refusal that it must get. */
  readonly badTokens: readonly (readonly [token: string | undefined, refusal: string])[];
}
