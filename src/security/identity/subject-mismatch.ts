// The refusal of an e-mail address that comes with another subject than before, and the operator's log line
// (D21).
import { GroveError } from "#base/errors.ts";
import type { Logger } from "#base/log.ts";
import type { LogSampler } from "#base/log-sampler.ts";
import { rejected } from "./claims.ts";

/** The sign-in, and the recipients of its refusal. */
export interface SubjectMismatch {
  readonly username: string;
  /** Issuer of the new subject. */
  readonly issuer: string;
  /** Address of an administrator for the user to ask; undefined where none is known. */
  readonly ask: string | undefined;
  readonly log: Logger;
  /** Keeps repeated attempts from filling the log. */
  readonly sampler: LogSampler;
}

/**
 * Makes the refusal for the user, and a log line for the operator that names the command. Neither contains
 * the address's issuer and subject on record.
 */
export function subjectMismatch({ username, issuer, ask, log, sampler }: SubjectMismatch): GroveError {
  const sampled = sampler.take(`address_of_another ${username}`);
  if (sampled !== undefined) {
    const todo = `the same person, with a new account: grove user rebind ${username}; the identity provider was changed: grove user remap`;
    log.warn("address_of_another", { user: username, issuer, todo, ...sampled });
  }
  const { code, message, metadata } = rejected(
    "sub",
    "is another person's than the one this e-mail address belonged to before",
  );
  return new GroveError(code, message, { metadata: { ...metadata, ...(ask === undefined ? {} : { ask }) } });
}
