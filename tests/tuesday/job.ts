// A job of an operator's ordinary day, with the messages that users and operators get.
import type { Site } from "./site.ts";

/** A job, or the continuation of an earlier one. */
export interface Job {
  /** The observable result. */
  readonly title: string;
  /** Why it cannot be done on this machine; false where it can. */
  readonly skip?: string | false;
  readonly run: (site: Site) => Promise<void>;
}
