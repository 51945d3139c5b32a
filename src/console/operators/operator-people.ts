// The identity provider's people who are operators: a list of subjects, a claim of ID tokens, or none.
import type { Clock } from "#base/clock.ts";
import { GroveError } from "#base/errors.ts";
import type { Random } from "#base/random.ts";
import { createAuthorityFetch } from "#os/authority-fetch.ts";
import { readPrivateFile } from "#os/private-file.ts";
import { createCodeFlow } from "#security/identity/code-flow.ts";
import type { CodeFlow } from "#security/identity/code-flow-types.ts";
import { type IdentitySettings } from "#security/identity/sign-in-variables.ts";
import { createTokenVerifier, type TokenVerifier } from "#security/identity/token-verifier.ts";

/** Length limit of the list of subjects. */
const OPERATOR_PEOPLE_MAX = 1_000;

/** The rule by which a person is an operator. */
export type PeopleRule =
  /**
   * A file that only its owner can read: one subject per line, with an optional name behind a blank and #.
   */
  | { readonly file: string }
  /** A claim that equals this text, or a list that contains it. */
  | { readonly claim: string; readonly value: string };

/** An operator by name. */
export interface OperatorPerson {
  readonly username: string;
  /** The subject at the identity provider; the address may change. */
  readonly subject: string;
}

/** Signs operators in by name. */
export interface OperatorPeople {
  readonly flow: CodeFlow;
  /** The operator of a valid ID token; undefined for anyone else. Throws IDP_UNAVAILABLE and RATE_LIMITED. */
  operatorOf(idToken: string, address: string): Promise<OperatorPerson | undefined>;
  /** Subjects on the list now; undefined for a claim. Rejects with BAD_ARGUMENT for an unusable list. */
  readonly listed: (() => Promise<ReadonlySet<string>>) | undefined;
}

/** Dependencies of signing in by name. */
export interface OperatorPeopleDeps {
  readonly settings: IdentitySettings;
  /** PEM of the authority that signs the provider's certificate. */
  readonly idpCa: string | undefined;
  readonly rule: PeopleRule;
  readonly clock: Clock;
  readonly random: Random;
}

/** Opens it. Throws BAD_ARGUMENT for a missing variable or an unusable list. */
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
  // Mock tokens never belong to operators.
  const verifier = createTokenVerifier({ ...settings, mock: false, clock, fetch: ask });
  return {
    flow: createCodeFlow({ issuer, clientId, clientSecret, redirectUri, clock, random, fetch: ask }),
    operatorOf: (idToken, address) => operatorOf({ rule, verifier }, idToken, address),
    listed: "file" in rule ? () => readSubjects(rule.file) : undefined,
  };
}

/** Redirect path for the provider. */
export const CALLBACK_PATH = "/api/auth/idp/callback";

async function operatorOf(
  { rule, verifier }: { readonly rule: PeopleRule; readonly verifier: TokenVerifier },
  idToken: string,
  address: string,
): Promise<OperatorPerson | undefined> {
  const { identity } = await verifier.verify(idToken, address);
  const { username, subject } = identity;
  // Read at each sign-in, so that a removed operator is refused.
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

/** Throws BAD_ARGUMENT for a file that is missing, readable by others, or too long. */
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
