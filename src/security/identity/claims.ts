// Checks an ID token's claims against the cluster's settings; every refusal names the claim (spec 5.2,
// decision D21, C-09).
import { GroveError } from "#base/errors.ts";
import { ISSUER_MAX_LENGTH, SUBJECT_MAX_LENGTH, TOKEN_CLOCK_LENIENCY_MS } from "#base/limits.ts";
import { makeVerifiedIdentity, type VerifiedIdentity } from "#base/verified-identity.ts";
import { claimValues, personsUsername } from "#security/policy/group.ts";

/** Unverified claims. */
export type Claims = Readonly<Record<string, unknown>>;

/** Expected values of the claims. */
export interface ClaimExpectations {
  /** Undefined only for mock tokens of a cluster without a client id: then any audience is valid. */
  readonly clientId: string | undefined;
  /** Exact `iss`; undefined where the provider's tokeninfo address vouches for it. */
  readonly issuer: string | undefined;
  /** Organisation that `hd` must name; undefined admits every account of the provider (decision D21). */
  readonly hostedDomain?: string | undefined;
  /** True also accepts `aud` as a list of one; otherwise lists are refused (spec 5.2.2). */
  readonly allowAudienceList?: boolean | undefined;
  readonly nowWallMs: number;
  /** Claim with the names of the person's groups; undefined reads none. */
  readonly groupsClaim?: string | undefined;
}

/** Identity from a verified ID token, and its validity. */
export interface VerifiedToken {
  readonly identity: VerifiedIdentity;
  /** Wall time of the token's `exp`. */
  readonly expiresAtWallMs: number;
  /** Wall time of its `iat`, in whole seconds; undefined without one. */
  readonly issuedAtWallMs?: number | undefined;
  /**
   * Wall time at which the person proved themselves: `auth_time`, else `iat`, which a provider renews without
   * asking anybody.
   */
  readonly signedInAtWallMs?: number | undefined;
  /** Values of the claim of groups, in order; undefined where none is read. */
  readonly groups?: readonly string[] | undefined;
}

/** Turns claims of proven origin into an identity. Throws TOKEN_REJECTED with metadata `claim`. */
export function checkClaims(claims: Claims, expected: ClaimExpectations): VerifiedToken {
  checkAudience(claims, expected);
  const issuer = checkIssuer(claims, expected.issuer);
  const expiresAtWallMs = checkTimes(claims, expected.nowWallMs);
  checkHostedDomain(claims, expected.hostedDomain);
  const username = checkEmail(claims);
  const subject = optionalText(claims, "sub", SUBJECT_MAX_LENGTH);
  const issuedAtWallMs = timeOf(claims, "iat");
  return {
    identity: makeVerifiedIdentity({ username, issuer: subject === "" ? "" : issuer, subject }),
    expiresAtWallMs,
    issuedAtWallMs,
    signedInAtWallMs: timeOf(claims, "auth_time") ?? issuedAtWallMs,
    ...(expected.groupsClaim === undefined ? {} : { groups: claimValues(claims[expected.groupsClaim]) }),
  };
}

/**
 * Throws TOKEN_REJECTED for a token whose own, still unverified claims are wrong. Missing claims pass, and so
 * does text that is not a signed JSON Web Token: only the provider can judge it.
 */
export function checkOwnWords(token: string, expected: ClaimExpectations): void {
  const claims = unprovenClaims(token);
  if (claims === undefined) return;
  // Lists pass here: the provider's answer decides, and its tokeninfo address may name one audience alone.
  if (claims["aud"] !== undefined) checkAudience(claims, { ...expected, allowAudienceList: true });
  if (claims["iss"] !== undefined) checkIssuer(claims, expected.issuer);
  checkTimes({ exp: Math.ceil(expected.nowWallMs / 1_000), ...claims }, expected.nowWallMs);
}

function unprovenClaims(token: string): Claims | undefined {
  const parts = token.split(".");
  if (parts.length !== 3) return undefined;
  try {
    const claims: unknown = JSON.parse(Buffer.from(parts[1] ?? "", "base64url").toString());
    return typeof claims === "object" && claims !== null && !Array.isArray(claims)
      ? (claims as Claims)
      : undefined;
  } catch {
    return undefined;
  }
}

/** The refusal of a token for a claim. It never contains the claim's value, which may be another person's. */
export function rejected(claim: string, problem: string): GroveError {
  return new GroveError("TOKEN_REJECTED", `ID token refused: claim "${claim}" ${problem}`, {
    metadata: { claim },
  });
}

/** The refused claim of a token with an unknown key. */
export const UNKNOWN_KEY_CLAIM = "kid";

/** True for the refusal of a token whose key was not among the issuer's when they were fetched last. */
export function isUnknownKey({ code, metadata }: Pick<GroveError, "code" | "metadata">): boolean {
  return code === "TOKEN_REJECTED" && metadata["claim"] === UNKNOWN_KEY_CLAIM;
}

/**
 * The refusal for a claim that is a time, with the server's time, so that a reader can tell which clock is
 * wrong.
 */
function outOfTime(claim: string, problem: string, nowWallMs: number): GroveError {
  const { code, message, metadata } = rejected(claim, problem);
  return new GroveError(code, message, { metadata: { ...metadata, now_ms: String(Math.trunc(nowWallMs)) } });
}

/**
 * Exact comparison of one string (spec 5.2.2). A list may have one entry at most: another audience in it
 * could replay the token.
 */
function checkAudience(claims: Claims, { clientId, allowAudienceList }: ClaimExpectations): void {
  if (clientId === undefined) return;
  const { aud } = claims;
  if (aud === undefined) throw rejected("aud", "is missing");
  if (Array.isArray(aud) && allowAudienceList !== true) {
    throw rejected("aud", "is a list: a server takes a list of one only with IDP_ALLOW_AUD_LIST=1");
  }
  const [audience, ...others]: readonly unknown[] = Array.isArray(aud) ? aud : [aud];
  if (audience !== clientId || others.length > 0) throw rejected("aud", "is not this cluster's client id");
  if (claims["azp"] !== undefined && claims["azp"] !== clientId) {
    throw rejected("azp", "is not this cluster's client id");
  }
}

function checkIssuer(claims: Claims, issuer: string | undefined): string {
  const found = optionalText(claims, "iss", ISSUER_MAX_LENGTH);
  if (issuer !== undefined && found !== issuer)
    throw rejected("iss", "is not this cluster's identity provider");
  return found;
}

/**
 * A provider of many organisations vouches for all of them; only `hd`, not the e-mail address, names the
 * account's organisation.
 */
function checkHostedDomain(claims: Claims, hostedDomain: string | undefined): void {
  if (hostedDomain === undefined) return;
  if (claims["hd"] === undefined) throw rejected("hd", "is missing: the account belongs to no organisation");
  if (typeof claims["hd"] !== "string" || claims["hd"].toLowerCase() !== hostedDomain) {
    throw rejected("hd", "is not this cluster's organisation");
  }
}

/** Wall time, with sixty seconds for clocks that differ (C-01). */
function checkTimes(claims: Claims, nowWallMs: number): number {
  const expiresAtWallMs = timeOf(claims, "exp");
  if (expiresAtWallMs === undefined) throw rejected("exp", "is missing");
  if (expiresAtWallMs <= nowWallMs - TOKEN_CLOCK_LENIENCY_MS)
    throw outOfTime("exp", "is past: the token has run out", nowWallMs);
  for (const claim of ["iat", "nbf", "auth_time"]) {
    const fromMs = timeOf(claims, claim);
    if (fromMs !== undefined && fromMs > nowWallMs + TOKEN_CLOCK_LENIENCY_MS) {
      throw outOfTime(
        claim,
        "is in the future: compare the clocks of this server and the identity provider",
        nowWallMs,
      );
    }
  }
  return expiresAtWallMs;
}

/** Seconds as a number, or as digits in the style of tokeninfo. */
function timeOf(claims: Claims, claim: string): number | undefined {
  const value = claims[claim];
  if (value === undefined) return undefined;
  const seconds = typeof value === "string" && /^\d{1,12}$/.test(value) ? Number(value) : value;
  if (typeof seconds !== "number" || !(seconds >= 0) || seconds * 1000 > Number.MAX_SAFE_INTEGER) {
    throw rejected(claim, "is not a time in seconds");
  }
  return Math.floor(seconds * 1000);
}

function checkEmail(claims: Claims): string {
  const { email, email_verified: isVerified } = claims;
  if (email === undefined || email === "") {
    throw rejected(
      "email",
      'is missing; the sign-in must ask for the scope "email", and the provider must put it into ID tokens',
    );
  }
  if (typeof email !== "string") throw rejected("email", "is not text");
  if (isVerified === undefined) throw rejected("email_verified", "is missing");
  if (isVerified !== true && isVerified !== "true") throw rejected("email_verified", "is not true");
  try {
    return personsUsername(email);
  } catch {
    throw rejected("email", "is not an e-mail address that can be a username");
  }
}

function optionalText(claims: Claims, claim: string, maxLength: number): string {
  const value = claims[claim];
  if (value === undefined) return "";
  if (typeof value !== "string" || value === "") throw rejected(claim, "is not text");
  if (value.length > maxLength || !value.isWellFormed()) throw rejected(claim, "is too long or malformed");
  return value;
}
