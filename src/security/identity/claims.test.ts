// Tests of about fifty variants of an ID token's claims, at the tokeninfo address and with the issuer's keys
// (spec 5.2, C-09).
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { ManualClock } from "#base/clock.ts";
import { isGroveError } from "#base/errors.ts";
import { CLAIM_VARIANTS, CLIENT_ID, type ClaimVariant, issuedClaims, NOW_S } from "./claims.fixture.ts";
import { checkClaims } from "./claims.ts";
import {
  answerAsIssuer,
  json,
  makeKey,
  signToken,
  startProvider,
  type TestProvider,
} from "./provider.fixture.ts";
import { createTokenVerifier } from "./token-verifier.ts";

const key = makeKey("ES256", "k1");
let provider: TestProvider;
before(async () => {
  provider = await startProvider();
  answerAsIssuer(provider, key);
});
after(() => provider.stop());

async function outcome(
  mode: "tokeninfo" | "issuer",
  variant: Pick<ClaimVariant, "change">,
  allowAudienceList = false,
): Promise<string | undefined> {
  const claims = issuedClaims(provider.origin, variant.change);
  provider.answers.set("/tokeninfo", json(claims));
  const verifier = createTokenVerifier({
    clientId: CLIENT_ID,
    ...(mode === "issuer" ? { issuer: provider.origin } : { tokeninfoUrl: `${provider.origin}/tokeninfo` }),
    mock: false,
    allowAudienceList,
    clock: new ManualClock(NOW_S * 1000),
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
  test(`${CLAIM_VARIANTS.length} variants of claims, by ${mode}: each refusal names its claim (spec 5.2, D21, C-09)`, {
    timeout: 60_000,
  }, async () => {
    for (const variant of CLAIM_VARIANTS) {
      const expected = mode === "issuer" && "issuer" in variant ? variant.issuer : variant.tokeninfo;
      assert.equal(await outcome(mode, variant), expected, variant.what);
    }
  });

  test(`IDP_ALLOW_AUD_LIST takes a list of exactly this client, by ${mode} (spec 5.2.2)`, async () => {
    const told = async (aud: unknown): Promise<string | undefined> =>
      outcome(mode, { change: { aud } }, true);
    for (const aud of [CLIENT_ID, [CLIENT_ID]]) assert.equal(await told(aud), undefined);
    for (const aud of [[], ["client-2"], [[CLIENT_ID]], [CLIENT_ID, CLIENT_ID], "client-2", ""])
      assert.equal(await told(aud), "aud", JSON.stringify(aud));
    assert.equal(
      await outcome(mode, { change: { aud: [CLIENT_ID, "client-2"], azp: CLIENT_ID } }, true),
      "aud",
    );
  });
}

test("with an organisation set, only accounts of it are let in, by hd and not by address (D21)", () => {
  const claims = { aud: CLIENT_ID, email: "alice@example.com", email_verified: true, exp: NOW_S + 60 };
  const expected = {
    clientId: CLIENT_ID,
    issuer: undefined,
    nowWallMs: NOW_S * 1000,
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
