// A job of the walk: what an operator has to do on an ordinary day, and what people are told meanwhile.
import type { Site } from "./site.ts";

/** A job, or a part of one that takes up what an earlier one has begun. */
export interface Job {
  /** What can be observed. */
  readonly title: string;
  /** Why it cannot be done on this machine; false where it can. */
  readonly skip?: string | false;
  readonly run: (site: Site) => Promise<void>;
}
