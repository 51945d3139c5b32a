// Admits the person to whom an e-mail address belongs, by one store for all MetaServers of a cluster (D21).
import { LRUCache } from "lru-cache";
import { atMost } from "#base/at-most.ts";
import type { Clock } from "#base/clock.ts";
import { GroveError } from "#base/errors.ts";
import type { Logger } from "#base/log.ts";
import { LogSampler } from "#base/log-sampler.ts";
import type { Directory } from "#metaserver/directory/directory.ts";
import type { KnownElsewhere } from "#metaserver/directory/subject.ts";
import type { VerifiedToken } from "#security/identity/claims.ts";
import { subjectMismatch } from "#security/identity/subject-mismatch.ts";
import { toSubject } from "./registration-message.ts";
import type { UserStateGate } from "./user-state-gate.ts";

/** Users whose person a MetaServer keeps in memory. */
const ADMITTED_SUBJECTS_KEPT = 20_000;
/** How long it keeps them. */
const ADMITTED_SUBJECT_TTL_MS: number = 5 * 60_000;

/** A person with an address. */
export interface Newcomer {
  readonly username: string;
  readonly issuer: string;
  readonly subject: string;
}

/** Dependencies of a gate. */
export interface SubjectGateDeps {
  readonly directory: Directory;
  readonly clock: Clock;
  /** The administrator whom people may ask; undefined when none is named. */
  readonly adminEmail?: string | undefined;
  readonly log: Logger;
}

/** The gate of one MetaServer. */
export class SubjectGate {
  readonly #directory: Directory;
  /** The person behind an address, by the store's last answer. */
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

  /**
   * Throws TOKEN_REJECTED when the address belongs to another person, or the person is known under another
   * address; and the store's errors. Mock tokens that name no person pass.
   */
  async admit({ username, issuer, subject }: Newcomer): Promise<void> {
    const person = toSubject(issuer, subject);
    if (person === undefined) return;
    const key = `${person.issuer} ${person.subject}`;
    if (this.#admitted.get(username) === key) return;
    const admitted = await this.#directory.admitSubject(username, person);
    if (typeof admitted === "object") throw await this.#changed(username, issuer, admitted);
    if (!admitted) {
      throw subjectMismatch({ username, issuer, ask: this.#ask, log: this.#log, sampler: this.#sampler });
    }
    this.#admitted.set(username, key);
  }

  /** Only the person themselves hears of both addresses: the token has proven who they are. */
  async #changed(
    username: string,
    issuer: string,
    { knownAs, isFormer }: KnownElsewhere,
  ): Promise<GroveError> {
    const refusal = (claim: string, message: string): GroveError =>
      new GroveError("TOKEN_REJECTED", message, {
        metadata: { claim, ...(this.#ask === undefined ? {} : { ask: this.#ask }) },
      });
    if (isFormer) return refusal("iat", `your address was changed to ${knownAs}; sign in with that`);
    const isAdministrator = knownAs === this.#ask;
    // The right of an administrator goes by the address, which would be free for somebody else.
    if (isAdministrator) await this.#directory.refuseAddress(knownAs, username);
    const sampled = this.#sampler.take(`address_changed ${username}`);
    const todo = isAdministrator
      ? "the administrator's address was changed: set SVC_ADMIN_EMAIL first"
      : `the same person: grove user rename ${knownAs} ${username} -confirm; otherwise -refuse`;
    if (sampled !== undefined)
      this.#log.warn("address_changed", { user: username, known_as: knownAs, issuer, todo, ...sampled });
    return refusal(
      "email",
      `you are known here as ${knownAs}, and your sign-in now says ${username}: an operator of the cluster must confirm ` +
        "that change first (grove user rename); your files stay as they are until then",
    );
  }

  /** Takes the version of the last rebinding: a newer one drops the kept persons. */
  heard(version: bigint): void {
    if (version === this.#version) return;
    this.#version = version;
    this.#admitted.clear();
  }
}

/** The gates that a person passes. */
export interface PersonEntryDeps {
  readonly userStates: Pick<UserStateGate, "requireEntry">;
  readonly subjects: Pick<SubjectGate, "admit">;
  readonly groups: { heard(verified: VerifiedToken): Promise<void> };
}

/**
 * Admits the person, and hears what the token says of groups: each call by a token does, so that no older token
 * speaks afterwards. Throws why the person may not enter.
 */
export async function admitPerson(
  verified: VerifiedToken,
  { userStates, subjects, groups }: PersonEntryDeps,
): Promise<void> {
  const { identity, issuedAtWallMs } = verified;
  userStates.requireEntry(identity, issuedAtWallMs);
  await subjects.admit(identity);
  await groups.heard(verified);
}
