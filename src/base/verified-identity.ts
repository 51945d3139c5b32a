// The branded identity that the rooms `identity` and `sessions` make, the only one that `policy` takes.

declare const verified: unique symbol;

/**
 * A caller's identity, proven by an ID token or its session. Never built from a request's fields (spec 5.4).
 */
export interface VerifiedIdentity {
  /** Lower-cased verified e-mail address (decision D21). */
  readonly username: string;
  /** Issuer and subject behind the address; empty for mock tokens and tokeninfo answers without them. */
  readonly issuer: string;
  readonly subject: string;
  readonly [verified]: true;
}

/** Makes a verified identity. The room plan lets only `identity` and `sessions` import this file's maker. */
export function makeVerifiedIdentity(facts: {
  username: string;
  issuer: string;
  subject: string;
}): VerifiedIdentity {
  return Object.freeze({ ...facts }) as VerifiedIdentity;
}

/** An issuer without its scheme, since some providers name themselves both with and without it. */
export function bareIssuer(issuer: string): string {
  return issuer.replace(/^https:\/\//, "");
}
