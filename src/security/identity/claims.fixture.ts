// Variants of an ID token's claims, and the verdict on each by the tokeninfo address and the issuer's keys
// (spec 5.2, C-09).

/** Their audience. */
export const CLIENT_ID = "client-1";
/** Time of the check in unix seconds. */
export const NOW_S = 1_790_000_000;

/** An issuer's valid claims, with the given changes. */
export function issuedClaims(issuer: string, change: object = {}): object {
  return {
    iss: issuer,
    aud: CLIENT_ID,
    sub: "1",
    email: "alice@example.com",
    email_verified: true,
    iat: NOW_S - 10,
    exp: NOW_S + 3_600,
    ...change,
  };
}

/** A variant: its changes, and the claim that the refusal names, or undefined when it is accepted. */
export interface ClaimVariant {
  readonly what: string;
  readonly change: Record<string, unknown>;
  readonly tokeninfo: string | undefined;
  /** The same with the issuer's keys, where it differs. */
  readonly issuer?: string | undefined;
}

const same = (what: string, change: Record<string, unknown>, claim?: string): ClaimVariant => ({
  what,
  change,
  tokeninfo: claim,
});
/** Each variant alone. */
export const CLAIM_VARIANTS: readonly ClaimVariant[] = [
  same("as it should be", {}),
  same("aud missing", { aud: undefined }, "aud"),
  same("aud null", { aud: null }, "aud"),
  same("aud empty", { aud: "" }, "aud"),
  same("aud of another client", { aud: "client-2" }, "aud"),
  same("aud in other case", { aud: "CLIENT-1" }, "aud"),
  same("aud with a blank", { aud: "client-1 " }, "aud"),
  same("aud a longer name", { aud: "client-10" }, "aud"),
  same("aud a list of us", { aud: [CLIENT_ID] }, "aud"),
  same("aud an empty list", { aud: [] }, "aud"),
  same("aud a list of others", { aud: ["client-2"] }, "aud"),
  same("aud a list of us and others", { aud: [CLIENT_ID, "client-2"], azp: CLIENT_ID }, "aud"),
  same("aud a nested list", { aud: [[CLIENT_ID]] }, "aud"),
  same("aud a number", { aud: 1 }, "aud"),
  same("azp us", { azp: CLIENT_ID }),
  same("azp another client", { azp: "client-2" }, "azp"),
  same("email missing", { email: undefined }, "email"),
  same("email empty", { email: "" }, "email"),
  same("email null", { email: null }, "email"),
  same("email a number", { email: 7 }, "email"),
  same("email a list", { email: ["a@x.de"] }, "email"),
  same("email without @", { email: "alice" }, "email"),
  same("email with two @", { email: "a@b@c" }, "email"),
  same("email with a slash", { email: "../a@x.de" }, "email"),
  same("email with a line break", { email: "a@x.de\nb" }, "email"),
  same("email too long", { email: `${"a".repeat(250)}@x.de` }, "email"),
  same("email in capitals", { email: "ALICE@EXAMPLE.COM" }),
  same("email_verified missing", { email_verified: undefined }, "email_verified"),
  same("email_verified false", { email_verified: false }, "email_verified"),
  same('email_verified "false"', { email_verified: "false" }, "email_verified"),
  same("email_verified the string true", { email_verified: "true" }),
  same('email_verified "TRUE"', { email_verified: "TRUE" }, "email_verified"),
  same('email_verified "1"', { email_verified: "1" }, "email_verified"),
  same("email_verified 1", { email_verified: 1 }, "email_verified"),
  same("email_verified null", { email_verified: null }, "email_verified"),
  same("exp missing", { exp: undefined }, "exp"),
  same("exp null", { exp: null }, "exp"),
  same("exp a word", { exp: "soon" }, "exp"),
  same("exp negative", { exp: -1 }, "exp"),
  {
    what: "exp digits in a string",
    change: { exp: String(NOW_S + 60) },
    tokeninfo: undefined,
    issuer: "exp",
  },
  same("exp with a fraction", { exp: NOW_S + 0.5 }),
  same("exp beyond counting", { exp: 1e300 }, "exp"),
  same("exp 59 seconds ago", { exp: NOW_S - 59 }),
  same("exp 60 seconds ago", { exp: NOW_S - 60 }, "exp"),
  { what: "iat missing", change: { iat: undefined }, tokeninfo: undefined, issuer: "iat" },
  same("iat 60 seconds ahead", { iat: NOW_S + 60 }),
  same("iat 61 seconds ahead", { iat: NOW_S + 61 }, "iat"),
  same("iat a list", { iat: [NOW_S] }, "iat"),
  same("nbf 60 seconds ahead", { nbf: NOW_S + 60 }),
  same("nbf 61 seconds ahead", { nbf: NOW_S + 61 }, "nbf"),
  { what: "sub missing", change: { sub: undefined }, tokeninfo: undefined, issuer: "sub" },
  same("sub empty", { sub: "" }, "sub"),
  same("sub a number", { sub: 42 }, "sub"),
  same("sub too long", { sub: "1".repeat(256) }, "sub"),
  { what: "iss missing", change: { iss: undefined }, tokeninfo: undefined, issuer: "iss" },
  { what: "iss another", change: { iss: "https://evil.example" }, tokeninfo: undefined, issuer: "iss" },
  same("iss a number", { iss: 3 }, "iss"),
  same("a nonce, which only the client knows", { nonce: "n" }),
];
