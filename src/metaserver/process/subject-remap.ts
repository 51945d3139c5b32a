// Whose addresses go over to another identity provider's persons, and whose do not and why: pure rules (D21).
import { GroveError } from "#base/errors.ts";
import { SUBJECT_MAX_LENGTH } from "#base/limits.ts";
import { bareIssuer } from "#base/verified-identity.ts";
import type { Rebinding, SubjectRecord } from "#metaserver/directory/subject.ts";

/** How the persons of the one provider are told to be those of the other. */
export type RemapBy =
  /** Confirmed pairs: the subject at the new provider, by the subject at the old one. */
  | { readonly by: "pairs"; readonly subjects: ReadonlyMap<string, string> }
  /** The same address, in a domain that is the new provider's own: whoever comes first from there with it. */
  | { readonly by: "email"; readonly domains: ReadonlySet<string> };

/** A user who stays as before, and why. */
export interface LeftUser {
  readonly username: string;
  readonly why: string;
}

/** What a change of the provider comes to. */
export interface RemapPlan {
  readonly matched: readonly Rebinding[];
  readonly left: readonly LeftUser[];
}

/** What the plan is made from. */
export interface RemapRequest {
  readonly toIssuer: string;
  readonly how: RemapBy;
  /** Administrators' addresses: they go over one by one only, by a person who knows which account is theirs. */
  readonly administrators: ReadonlySet<string>;
  /** Users who are locked out. */
  readonly disabled: ReadonlySet<string>;
}

/** Makes the plan for the users of the provider before. */
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
    // Of any other domain the provider would say what it likes.
    return how.domains.has(domain) ? { subject: "" } : { why: `${domain} is not declared the provider's` };
  }
  const subject = how.subjects.get(known);
  return subject === undefined ? { why: "no pair has its subject" } : { subject };
}

/** Reads pairs of subjects, one in a line: the old one, a comma, the new one. Throws BAD_ARGUMENT naming the line. */
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

/** Domains of a list with commas, lower-cased. Throws BAD_ARGUMENT for what is none. */
export function parseDomains(text: string): Set<string> {
  const domains = text.split(",").map((part) => part.trim().toLowerCase());
  const wrong = domains.find((domain) => !/^[^\s@.,]+(?:\.[^\s@.,]+)+$/.test(domain));
  if (wrong !== undefined)
    throw new GroveError("BAD_ARGUMENT", `${JSON.stringify(wrong)} is not a domain such as example.com`);
  return new Set(domains);
}
