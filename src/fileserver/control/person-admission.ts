// Admits an identity to its own e-mail address, and applies operators' rebinding of addresses (D21).
import type { AuditSink } from "#base/audit-act.ts";
import type { Clock } from "#base/clock.ts";
import { isGroveError } from "#base/errors.ts";
import type { Logger } from "#base/log.ts";
import { LogSampler } from "#base/log-sampler.ts";
import type { VerifiedIdentity } from "#base/verified-identity.ts";
import type { RootUser } from "#fileserver/operations/root-provisioner.ts";
import { subjectMismatch } from "#security/identity/subject-mismatch.ts";
import type { ReboundSubject, SubjectRegistry } from "#security/identity/subject-registry.ts";
import type { SessionTable } from "#security/sessions/session-table.ts";
import type { MetaLink } from "./meta-link.ts";

/** Dependencies of an admission. */
export interface PersonAdmissionDeps {
  readonly subjects: SubjectRegistry;
  /**
   * Asks the cluster whether the address is this person's; a free one becomes theirs. Throws TOKEN_REJECTED.
   */
  readonly confirm: (identity: VerifiedIdentity) => Promise<unknown>;
  readonly sessions: Pick<SessionTable, "endAll">;
  /** The administrator whom a refused user may ask. */
  readonly adminUsername: string | undefined;
  readonly audit: AuditSink;
  readonly clock: Clock;
  readonly log: Logger;
}

/** Asks the cluster where a user's root lives. Throws as `claimRoot` does. */
export async function claimFor(
  link: MetaLink | undefined,
  user: RootUser,
  subjects: SubjectRegistry,
  options?: { readonly isMissing: boolean },
): ReturnType<MetaLink["claimRoot"]> {
  // Calls are taken only after the link is there.
  if (link === undefined) throw new Error("the link to the metaserver is not there yet");
  try {
    return await link.claimRoot(user, options);
  } catch (error) {
    // The cluster knows another person behind the address, whom the new local entry must not block.
    if (isGroveError(error, "TOKEN_REJECTED")) await subjects.forget(user.username);
    throw error;
  }
}

/** The admission of one node. */
export class PersonAdmission {
  readonly #deps: PersonAdmissionDeps;
  readonly #sampler: LogSampler;

  constructor(deps: PersonAdmissionDeps) {
    this.#deps = deps;
    this.#sampler = new LogSampler(deps.clock);
  }

  /** Throws TOKEN_REJECTED when the address is another person's, and the cluster's errors when asked. */
  async admit(identity: VerifiedIdentity): Promise<void> {
    const { subjects, confirm, adminUsername, log } = this.#deps;
    try {
      if (subjects.isAwaited(identity)) await confirm(identity);
      await subjects.admit(identity);
    } catch (error) {
      if (!isGroveError(error, "TOKEN_REJECTED") || error.metadata["claim"] !== "sub") throw error;
      const { username, issuer } = identity;
      throw subjectMismatch({ username, issuer, ask: adminUsername, log, sampler: this.#sampler });
    }
  }

  /** Applies a rebinding: the former persons behind the addresses are signed out. */
  async rebind(words: readonly ReboundSubject[], hasRoot: (username: string) => boolean): Promise<void> {
    const { subjects, sessions, audit, log } = this.#deps;
    const changed = new Set(await subjects.rebind(words, hasRoot));
    for (const { username, issuer } of words) {
      if (!changed.has(username)) continue;
      const ended = sessions.endAll(username);
      audit({
        act: "user.rebind",
        actor: "operator",
        subject: username,
        detail: { issuer, sessions: ended },
      });
      log.info("user_rebound", { user: username, issuer, sessions_ended: ended });
    }
  }
}
