// Which people of the identity provider are operators: a list of subjects, or a claim of their ID tokens. Nobody, unless one of both is configured.
import type { Clock } from "#base/clock.ts";
import { GroveError } from "#base/errors.ts";
import type { Random } from "#base/random.ts";
import { createAuthorityFetch } from "#os/authority-fetch.ts";
import { readPrivateFile } from "#os/private-file.ts";
import { createCodeFlow } from "#security/identity/code-flow.ts";
import type { CodeFlow } from "#security/identity/code-flow-types.ts";
import { type IdentitySettings } from "#security/identity/settings.ts";
import { createTokenVerifier, type TokenVerifier } from "#security/identity/token-verifier.ts";

/** Operators that a list of subjects may have. */
const OPERATOR_PEOPLE_MAX = 1_000;

/** Who is an operator. */
export type PeopleRule =
  /** A file of the owner's alone: one subject in a line, and behind a blank and # whose it is. */
  | { readonly file: string }
  /** A claim that is this text, or a list with this text in it. */
  | { readonly claim: string; readonly value: string };

/** An operator by name. */
export interface OperatorPerson {
  readonly username: string;
  /** Who it is at the identity provider, whatever the address is. */
  readonly subject: string;
}

/** Signs operators in by name. */
export interface OperatorPeople {
  readonly flow: CodeFlow;
  /** The operator when the ID token is a live one of an operator; undefined otherwise. Throws IDP_UNAVAILABLE and RATE_LIMITED. */
  operatorOf(idToken: string, address: string): Promise<OperatorPerson | undefined>;
  /** Subjects of those who are operators now; undefined where a claim says it. Rejects with BAD_ARGUMENT for a list that cannot be used. */
  readonly listed: (() => Promise<ReadonlySet<string>>) | undefined;
}

/** What it is made from. */
export interface OperatorPeopleDeps {
  readonly settings: IdentitySettings;
  /** PEM of the authority of the provider's certificate. */
  readonly idpCa: string | undefined;
  readonly rule: PeopleRule;
  readonly clock: Clock;
  readonly random: Random;
}

/** Makes it. Throws BAD_ARGUMENT when a variable is missing, or the list cannot be used. */
export async function openOperatorPeople(deps: OperatorPeopleDeps): Promise<OperatorPeople> {
  const { settings, idpCa, rule, clock, random } = deps;
  const { issuer, clientId, clientSecret, redirectUri } = settings;
  if (issuer === undefined || clientId === undefined || !redirectUri.endsWith(CALLBACK_PATH)) {
    throw new GroveError(
      "BAD_ARGUMENT",
      `operators sign in at an identity provider with IDP_ISSUER, IDP_CLIENT_ID and IDP_REDIRECT_URI set, the last to the console's own address and ${CALLBACK_PATH}`,
    );
  }
  if ("file" in rule) await readSubjects(rule.file);
  const ask = idpCa === undefined ? fetch : createAuthorityFetch(idpCa);
  // Mock tokens are nobody's: an operator is never one of them.
  const verifier = createTokenVerifier({ ...settings, mock: false, clock, fetch: ask });
  return {
    flow: createCodeFlow({ issuer, clientId, clientSecret, redirectUri, clock, random, fetch: ask }),
    operatorOf: (idToken, address) => operatorOf({ rule, verifier }, idToken, address),
    listed: "file" in rule ? () => readSubjects(rule.file) : undefined,
  };
}

/** Where the provider sends browsers back to. */
export const CALLBACK_PATH = "/api/auth/idp/callback";

async function operatorOf(
  { rule, verifier }: { readonly rule: PeopleRule; readonly verifier: TokenVerifier },
  idToken: string,
  address: string,
): Promise<OperatorPerson | undefined> {
  const { identity } = await verifier.verify(idToken, address);
  const { username, subject } = identity;
  // Read each time: whoever was taken out gets in no more.
  const isOperator =
    "file" in rule
      ? (await readSubjects(rule.file)).has(subject)
      : holds(claimsOf(idToken)[rule.claim], rule.value);
  return subject !== "" && isOperator ? { username, subject } : undefined;
}

/** The claims of a token whose signature was verified. */
function claimsOf(idToken: string): Readonly<Record<string, unknown>> {
  const claims: unknown = JSON.parse(Buffer.from(idToken.split(".")[1] ?? "", "base64url").toString());
  return claims as Record<string, unknown>;
}

function holds(claim: unknown, value: string): boolean {
  return claim === value || (Array.isArray(claim) && claim.includes(value));
}

/** Throws BAD_ARGUMENT for a file that is not there, that others may read, or that has too many lines. */
async function readSubjects(path: string): Promise<ReadonlySet<string>> {
  const text = await readPrivateFile(path);
  if (text === undefined) throw new GroveError("BAD_ARGUMENT", `${path} is not there`);
  const subjects = text
    .split("\n")
    .map((line) => line.replace(/(?:^|\s)#.*$/, "").trim())
    .filter((line) => line !== "");
  if (subjects.length > OPERATOR_PEOPLE_MAX)
    throw new GroveError("BAD_ARGUMENT", `${path} has more than ${OPERATOR_PEOPLE_MAX} subjects`);
  return new Set(subjects);
}
