// The refusal of an e-mail address that comes with another person than before: what the user is told, and what the operator (D21).
import { GroveError } from "#base/errors.ts";
import type { Logger } from "#base/log.ts";
import type { LogSampler } from "#base/log-sampler.ts";
import { rejected } from "./claims.ts";

/** Who came, and who is to hear of it. */
export interface Comer {
  readonly username: string;
  /** Of the person that came. */
  readonly issuer: string;
  /** Address of an administrator, whom the user may ask; undefined where none is known. */
  readonly ask: string | undefined;
  readonly log: Logger;
  /** Keeps one who tries again and again from filling the log. */
  readonly sampler: LogSampler;
}

/** Makes the refusal for the user, and a log line for the operator that names the command. What the address belongs to is told to neither. */
export function anotherPerson({ username, issuer, ask, log, sampler }: Comer): GroveError {
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
