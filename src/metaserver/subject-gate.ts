// Lets a person pass whom the e-mail address belongs to, by one book for all MetaServers of a cluster (D21).
import { LRUCache } from "lru-cache";
import { atMost } from "#base/at-most.ts";
import type { Clock } from "#base/clock.ts";
import { ADMITTED_SUBJECT_TTL_MS, ADMITTED_SUBJECTS_KEPT } from "#base/limits.ts";
import type { Directory } from "#directory/directory.ts";
import { rejected } from "#identity/claims.ts";
import { toSubject } from "./registration-message.ts";

/** Who comes with which address. */
export interface Newcomer {
  readonly username: string;
  readonly issuer: string;
  readonly subject: string;
}

/** The gate of one MetaServer. */
export class SubjectGate {
  readonly #directory: Directory;
  /** The person behind an address, as the store said lately. */
  readonly #admitted: LRUCache<string, string>;

  constructor(deps: { readonly directory: Directory; readonly clock: Clock }) {
    this.#directory = deps.directory;
    this.#admitted = new LRUCache({
      ...atMost(ADMITTED_SUBJECTS_KEPT),
      ttl: ADMITTED_SUBJECT_TTL_MS,
      perf: { now: () => deps.clock.steadyMs() },
    });
  }

  /** Throws TOKEN_REJECTED when the address belongs to somebody else, and what the store throws. Mock tokens name nobody and pass. */
  async admit({ username, issuer, subject }: Newcomer): Promise<void> {
    const person = toSubject(issuer, subject);
    if (person === undefined) return;
    const key = `${person.issuer} ${person.subject}`;
    if (this.#admitted.get(username) === key) return;
    if (!(await this.#directory.admitSubject(username, person))) {
      throw rejected("sub", "is another person's than the one this e-mail address belonged to before");
    }
    this.#admitted.set(username, key);
  }
}
