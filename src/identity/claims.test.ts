// Some fifty variants of an ID token's claims, at the tokeninfo address and with the issuer's keys (spec 5.2, C-09).
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { ManualClock } from "#base/clock.ts";
import { isGroveError } from "#base/errors.ts";
import { checkClaims } from "./claims.ts";
import { json, makeKey, signToken, startProvider, type TestProvider } from "./provider.fixture.ts";
import { createTokenVerifier } from "./token-verifier.ts";

const CLIENT_ID = "client-1";
const NOW = 1_790_000_000;
const key = makeKey("ES256", "k1");
let provider: TestProvider;
before(async () => {
  provider = await startProvider();
  const { origin } = provider;
  provider.answers.set(
    "/.well-known/openid-configuration",
    json({ issuer: origin, jwks_uri: `${origin}/jwks`, id_token_signing_alg_values_supported: ["ES256"] }),
  );
  provider.answers.set("/jwks", json({ keys: [key.jwk] }));
});
after(() => provider.stop());

/** A variant: what is changed, and the claim that the refusal names, or undefined when it is accepted. */
interface Variant {
  readonly what: string;
  readonly change: Record<string, unknown>;
  readonly tokeninfo: string | undefined;
  /** With the issuer's keys, where that differs. */
  readonly issuer?: string | undefined;
}

const same = (what: string, change: Record<string, unknown>, claim?: string): Variant => ({
  what,
  change,
  tokeninfo: claim,
});
const VARIANTS: readonly Variant[] = [
  same("as it should be", {}),
  same("aud missing", { aud: undefined }, "aud"),
  same("aud null", { aud: null }, "aud"),
  same("aud empty", { aud: "" }, "aud"),
  same("aud of another client", { aud: "client-2" }, "aud"),
  same("aud in other case", { aud: "CLIENT-1" }, "aud"),
  same("aud with a blank", { aud: "client-1 " }, "aud"),
  same("aud a longer name", { aud: "client-10" }, "aud"),
  same("aud a list of us", { aud: [CLIENT_ID] }),
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
  { what: "exp digits in a string", change: { exp: String(NOW + 60) }, tokeninfo: undefined, issuer: "exp" },
  same("exp with a fraction", { exp: NOW + 0.5 }),
  same("exp beyond counting", { exp: 1e300 }, "exp"),
  same("exp 59 seconds ago", { exp: NOW - 59 }),
  same("exp 60 seconds ago", { exp: NOW - 60 }, "exp"),
  { what: "iat missing", change: { iat: undefined }, tokeninfo: undefined, issuer: "iat" },
  same("iat 60 seconds ahead", { iat: NOW + 60 }),
  same("iat 61 seconds ahead", { iat: NOW + 61 }, "iat"),
  same("iat a list", { iat: [NOW] }, "iat"),
  same("nbf 60 seconds ahead", { nbf: NOW + 60 }),
  same("nbf 61 seconds ahead", { nbf: NOW + 61 }, "nbf"),
  { what: "sub missing", change: { sub: undefined }, tokeninfo: undefined, issuer: "sub" },
  same("sub empty", { sub: "" }, "sub"),
  same("sub a number", { sub: 42 }, "sub"),
  same("sub too long", { sub: "1".repeat(256) }, "sub"),
  { what: "iss missing", change: { iss: undefined }, tokeninfo: undefined, issuer: "iss" },
  { what: "iss another", change: { iss: "https://evil.example" }, tokeninfo: undefined, issuer: "iss" },
  same("iss a number", { iss: 3 }, "iss"),
  same("a nonce, which only the client knows", { nonce: "n" }),
];

async function outcome(mode: "tokeninfo" | "issuer", variant: Variant): Promise<string | undefined> {
  const claims = {
    iss: provider.origin,
    aud: CLIENT_ID,
    sub: "1",
    email: "alice@example.com",
    email_verified: true,
    iat: NOW - 10,
    exp: NOW + 3_600,
    ...variant.change,
  };
  provider.answers.set("/tokeninfo", json(claims));
  const verifier = createTokenVerifier({
    clientId: CLIENT_ID,
    ...(mode === "issuer" ? { issuer: provider.origin } : { tokeninfoUrl: `${provider.origin}/tokeninfo` }),
    mock: false,
    clock: new ManualClock(NOW * 1000),
  });
  const token = signToken(key, claims);
  try {
    const { identity } = await verifier.verify(token);
    assert.equal(identity.username, "alice@example.com");
    return undefined;
  } catch (error) {
    assert.ok(isGroveError(error, "TOKEN_REJECTED"), String(error));
    assert.ok(error.message.includes(`"${error.metadata["claim"]}"`), error.message);
    const [, payload = "", signature = ""] = token.split(".");
    const told = `${error.stack}${JSON.stringify(error.metadata)}${String(error.cause)}`;
    assert.ok(!told.includes(payload.slice(0, 40)) && !told.includes(signature), "the token is not told");
    return error.metadata["claim"];
  }
}

for (const mode of ["tokeninfo", "issuer"] as const) {
  test(`${VARIANTS.length} variants of claims, by ${mode}: each refusal names its claim (spec 5.2, D21, C-09)`, {
    timeout: 60_000,
  }, async () => {
    for (const variant of VARIANTS) {
      const expected = mode === "issuer" && "issuer" in variant ? variant.issuer : variant.tokeninfo;
      assert.equal(await outcome(mode, variant), expected, variant.what);
    }
  });
}

test("with an organisation set, only accounts of it are let in, by hd and not by address (D21)", () => {
  const claims = { aud: CLIENT_ID, email: "alice@example.com", email_verified: true, exp: NOW + 60 };
  const expected = {
    clientId: CLIENT_ID,
    issuer: undefined,
    nowWallMs: NOW * 1000,
    hostedDomain: "example.com",
  };
  assert.equal(
    checkClaims({ ...claims, hd: "Example.com" }, expected).identity.username,
    "alice@example.com",
  );
  for (const hd of [undefined, "", "example.org", "sub.example.com", 3, ["example.com"]]) {
    assert.throws(
      () => checkClaims({ ...claims, ...(hd === undefined ? {} : { hd }) }, expected),
      (error) => isGroveError(error, "TOKEN_REJECTED") && error.metadata["claim"] === "hd",
    );
  }
  assert.equal(
    checkClaims(claims, { ...expected, hostedDomain: undefined }).identity.username,
    "alice@example.com",
  );
});
