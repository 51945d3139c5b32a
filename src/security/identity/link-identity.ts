// The identity of a visitor by a link: a principal of its own, with the link's rights and no other.
import { type LinkRight, makeVerifiedIdentity, type VerifiedIdentity } from "#base/verified-identity.ts";

/** Usernames of visitors begin so; no e-mail address has it. */
export const LINK_PRINCIPAL = "link:";

/** Makes the identity, once the link's token was found right. */
export function linkIdentity(link: LinkRight): VerifiedIdentity {
  return makeVerifiedIdentity({ username: LINK_PRINCIPAL + link.id, issuer: "", subject: "", link });
}
