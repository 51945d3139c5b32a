// Lets a person pass whom the e-mail address belongs to, by one book for all MetaServers of a cluster (D21).
import { LRUCache } from "lru-cache";
import { atMost } from "#base/at-most.ts";
import type { Clock } from "#base/clock.ts";
import type { Logger } from "#base/log.ts";
import { LogSampler } from "#base/log-sampler.ts";
import type { Directory } from "#metaserver/directory/directory.ts";
import { anotherPerson } from "#security/identity/another-person.ts";
import { toSubject } from "./registration-message.ts";

/** Users whose person a MetaServer need not look up again for a while. */
const ADMITTED_SUBJECTS_KEPT = 20_000;
/** How long it need not. */
const ADMITTED_SUBJECT_TTL_MS: number = 5 * 60_000;

/** Who comes with which address. */
export interface Newcomer {
  readonly username: string;
  readonly issuer: string;
  readonly subject: string;
}

/** What a gate is made from. */
export interface SubjectGateDeps {
  readonly directory: Directory;
  readonly clock: Clock;
  /** Whom people may ask; undefined where nobody is named. */
  readonly adminEmail?: string | undefined;
  readonly log: Logger;
}

/** The gate of one MetaServer. */
export class SubjectGate {
  readonly #directory: Directory;
  /** The person behind an address, as the store said lately. */
  readonly #admitted: LRUCache<string, string>;
  readonly #ask: string | undefined;
  readonly #log: Logger;
  readonly #sampler: LogSampler;
  #version = 0n;

  constructor(deps: SubjectGateDeps) {
    this.#directory = deps.directory;
    this.#ask = deps.adminEmail;
    this.#log = deps.log;
    this.#sampler = new LogSampler(deps.clock);
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
      throw anotherPerson({ username, issuer, ask: this.#ask, log: this.#log, sampler: this.#sampler });
    }
    this.#admitted.set(username, key);
  }

  /** Told which of an operator's words on addresses is the last: what was known before a newer one is asked for again. */
  heard(version: bigint): void {
    if (version === this.#version) return;
    this.#version = version;
    this.#admitted.clear();
  }
}
