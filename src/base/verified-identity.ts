// The branded identity that the rooms `identity` and `sessions` make, the only one that `policy` takes.

declare const verified: unique symbol;

/** Bounds of the credential by which somebody comes in; it only takes away from what the person may. */
export interface CallerLimit {
  readonly access: "read" | "write";
  /** Id (Attr.id) of the one folder of the person's own root below which it holds; undefined for all. */
  readonly folderId: string | undefined;
  /** Whether its sign-in is recent enough to share, asked at each decision. Absent: never. */
  readonly mayShare?: () => boolean;
}

/** What somebody may do who comes by a link instead of an account. */
export interface LinkRight {
  readonly id: string;
  readonly kind: "drop" | "read";
  /** Whose root it is in. */
  readonly owner: string;
  /** The file or folder (Attr.id) that it opens. */
  readonly inodeId: string;
  /** Tells the visitors of one link apart; drawn by their door. */
  readonly visitor: string;
}

/**
 * A caller's identity, proven by an ID token or its session. Never built from a request's fields (spec 5.4).
 */
export interface VerifiedIdentity {
  /** Lower-cased verified e-mail address (decision D21). */
  readonly username: string;
  /** Issuer and subject behind the address; empty for mock tokens and tokeninfo answers without them. */
  readonly issuer: string;
  readonly subject: string;
  /** Set for who comes through a door by an app password; undefined for a sign-in. */
  readonly limit?: CallerLimit | undefined;
  /** Set for who comes by a link, who has no account; the username is then "link:" and its id. */
  readonly link?: LinkRight | undefined;
  readonly [verified]: true;
}

/** Makes a verified identity. The room plan lets only `identity` and `sessions` import this file's maker. */
export function makeVerifiedIdentity(facts: {
  username: string;
  issuer: string;
  subject: string;
  limit?: CallerLimit;
  link?: LinkRight;
}): VerifiedIdentity {
  return Object.freeze({ ...facts }) as VerifiedIdentity;
}

/** An issuer without its scheme, since some providers name themselves both with and without it. */
export function bareIssuer(issuer: string): string {
  return issuer.replace(/^https:\/\//, "");
}

type Person = Pick<VerifiedIdentity, "issuer" | "subject">;

/** True for one person at the identity provider: an address alone may have been another's before. */
export function isSamePerson(one: Person, other: Person): boolean {
  return one.subject === other.subject && bareIssuer(one.issuer) === bareIssuer(other.issuer);
}
