// Plans which addresses are rebound to another identity provider's persons: pure rules (D21).
import { GroveError } from "#base/errors.ts";
import { SUBJECT_MAX_LENGTH } from "#base/limits.ts";
import { bareIssuer } from "#base/verified-identity.ts";
import type { Rebinding, SubjectRecord } from "#metaserver/directory/subject.ts";

/** How persons of one provider are matched with those of the other. */
export type RemapBy =
  /** Confirmed pairs: the subject at the new provider, by the subject at the old one. */
  | { readonly by: "pairs"; readonly subjects: ReadonlyMap<string, string> }
  /** The same address in a domain of the new provider: the first person from there with it. */
  | { readonly by: "email"; readonly domains: ReadonlySet<string> };

/** A user who stays with the old person, and why. */
export interface LeftUser {
  readonly username: string;
  readonly why: string;
}

/** The effect of a change of provider. */
export interface RemapPlan {
  readonly matched: readonly Rebinding[];
  readonly left: readonly LeftUser[];
}

/** The facts behind the plan. */
export interface RemapRequest {
  readonly toIssuer: string;
  readonly how: RemapBy;
  /** Administrators' addresses: rebound only one by one, by an operator who knows the account. */
  readonly administrators: ReadonlySet<string>;
  /** Locked users. */
  readonly disabled: ReadonlySet<string>;
}

/** Makes the plan for the users of the old provider. */
export function planRemap(users: readonly SubjectRecord[], request: RemapRequest): RemapPlan {
  const matched: Rebinding[] = [];
  const left: LeftUser[] = [];
  const issuer = bareIssuer(request.toIssuer);
  for (const { username, issuer: before, subject: known } of users) {
    const found = newSubject(username, known, request);
    if ("why" in found) left.push({ username, why: found.why });
    else
      matched.push({
        username,
        from: { issuer: before, subject: known },
        to: { issuer, subject: found.subject },
      });
  }
  return { matched, left };
}

function newSubject(
  username: string,
  known: string,
  { how, administrators, disabled }: RemapRequest,
): { readonly subject: string } | { readonly why: string } {
  if (administrators.has(username)) return { why: `an administrator: grove user rebind ${username}` };
  if (disabled.has(username)) return { why: "disabled" };
  if (how.by === "email") {
    const domain = username.slice(username.lastIndexOf("@") + 1);
    // For any other domain the provider could claim any address.
    return how.domains.has(domain) ? { subject: "" } : { why: `${domain} is not declared the provider's` };
  }
  const subject = how.subjects.get(known);
  return subject === undefined ? { why: "no pair has its subject" } : { subject };
}

/** Parses pairs of subjects, one in a line: old, comma, new. Throws BAD_ARGUMENT naming the line. */
export function parsePairs(text: string): Map<string, string> {
  const pairs = new Map<string, string>();
  const taken = new Set<string>();
  for (const [at, line] of text.split(/\r?\n/).entries()) {
    if (line.trim() === "" || line.startsWith("#")) continue;
    const [from = "", to = "", ...more] = line.split(",").map((part) => part.trim());
    const problem =
      more.length > 0 || !isSubject(from) || !isSubject(to)
        ? "is not OLD_SUBJECT,NEW_SUBJECT"
        : pairs.has(from)
          ? "has an old subject that an earlier line has"
          : taken.has(to)
            ? "has a new subject that an earlier line has: two users would be one person"
            : undefined;
    if (problem !== undefined) throw new GroveError("BAD_ARGUMENT", `line ${at + 1} ${problem}`);
    pairs.set(from, to);
    taken.add(to);
  }
  return pairs;
}

/** A subject as a provider writes it: any text of at most 255 characters that fits in a line. */
export function isSubject(text: string): boolean {
  return (
    text !== "" &&
    text.length <= SUBJECT_MAX_LENGTH &&
    text.isWellFormed() &&
    !/[\p{Cc}\p{Zl}\p{Zp}]/u.test(text)
  );
}

/** Parses a list of domains with commas, lower-cased. Throws BAD_ARGUMENT for an invalid one. */
export function parseDomains(text: string): Set<string> {
  const domains = text.split(",").map((part) => part.trim().toLowerCase());
  const wrong = domains.find((domain) => !/^[^\s@.,]+(?:\.[^\s@.,]+)+$/.test(domain));
  if (wrong !== undefined)
    throw new GroveError("BAD_ARGUMENT", `${JSON.stringify(wrong)} is not a domain such as example.com`);
  return new Set(domains);
}
