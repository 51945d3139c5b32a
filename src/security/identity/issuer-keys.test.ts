// Tests of verification with the issuer's keys: forged signatures, rotated keys, false discovery, outages.
import assert from "node:assert/strict";
import { afterEach, beforeEach, test } from "node:test";
import { ManualClock } from "#base/clock.ts";
import { type ErrorCode, isGroveError } from "#base/errors.ts";
import { ISSUER_KEYS_TTL_MS } from "./issuer-keys.ts";
import {
  type Answer,
  json,
  makeKey,
  type SigningKey,
  signToken,
  startProvider,
  type TestProvider,
  text,
} from "./provider.fixture.ts";
import { IDP_RESPONSE_MAX_BYTES } from "./provider-fetch.ts";
import { createTokenVerifier, type TokenVerifier } from "./token-verifier.ts";

const CLIENT_ID = "client-1";
const NOW = 1_790_000_000;
const rsa = makeKey("RS256", "rsa");
const ec = makeKey("ES256", "ec");
const ed = makeKey("EdDSA", "ed");
const stranger = makeKey("RS256", "rsa");

let provider: TestProvider;
let clock: ManualClock;
let verifier: TokenVerifier;
beforeEach(async () => {
  provider = await startProvider();
  clock = new ManualClock(NOW * 1000);
  verifier = createTokenVerifier({ clientId: CLIENT_ID, issuer: provider.origin, mock: false, clock });
  discover({});
  provider.answers.set("/jwks", json({ keys: [rsa.jwk, ec.jwk, ed.jwk] }));
});
afterEach(() => provider.stop());

function discover(change: object): void {
  const metadata = {
    issuer: provider.origin,
    jwks_uri: `${provider.origin}/jwks`,
    id_token_signing_alg_values_supported: ["RS256", "ES256", "EdDSA"],
    ...change,
  };
  provider.answers.set("/.well-known/openid-configuration", json(metadata));
}

let serial = 0;
/** A token that is in no cache. */
function token(key: SigningKey, header: object = {}, change: object = {}): string {
  const facts = {
    iss: provider.origin,
    aud: CLIENT_ID,
    sub: String(serial++),
    email: "a@x.de",
    email_verified: true,
  };
  return signToken(key, { ...facts, iat: NOW, exp: NOW + 3_600, ...change }, header);
}

async function refused(candidate: string, code: ErrorCode, claim?: string): Promise<void> {
  await assert.rejects(verifier.verify(candidate), (error) => {
    assert.ok(isGroveError(error, code), String(error));
    if (claim !== undefined) assert.equal(error.metadata["claim"], claim);
    return true;
  });
}

test("tokens with RSA, elliptic curve and Edwards signatures are verified; keys are fetched once (D21)", async () => {
  for (const key of [rsa, ec, ed]) {
    const { identity } = await verifier.verify(token(key));
    assert.deepEqual([identity.username, identity.issuer], ["a@x.de", provider.origin]);
  }
  assert.deepEqual(provider.requests, ["/.well-known/openid-configuration", "/jwks"]);
});

test("the token itself is never sent anywhere (C-13)", async () => {
  const mine = token(rsa);
  await verifier.verify(mine);
  assert.ok(provider.requests.every((request) => !request.includes(mine.slice(0, 20))));
});

test("forged tokens are refused: another's key, changed claims, no signature, other algorithms (C-09)", async () => {
  await refused(token(stranger), "TOKEN_REJECTED", "signature");
  const [header, payload, signature] = token(rsa).split(".");
  const [, otherPayload] = token(rsa, {}, { email: "admin@x.de" }).split(".");
  await refused(`${header}.${otherPayload}.${signature}`, "TOKEN_REJECTED", "signature");
  await refused(`${header}.${payload}.`, "TOKEN_REJECTED", "signature");
  await refused(`${header}.${payload}`, "TOKEN_REJECTED");
  await refused(`${header}.${payload}.${signature}.x.y`, "TOKEN_REJECTED");
  for (const alg of ["none", "None", "HS256", "RS1", "RS512", ""])
    await refused(token(rsa, { alg }), "TOKEN_REJECTED", "alg");
  await refused(token(rsa, { alg: "ES256", kid: "ec" }), "TOKEN_REJECTED", "signature");
  await refused(token(rsa, { kid: "nobody" }), "TOKEN_REJECTED", "kid");
  await refused(token(rsa, { crit: ["b64"], b64: false }), "TOKEN_REJECTED");
});

test("a key that the token brings along is not believed (C-09)", async () => {
  const bait = { jwk: stranger.jwk, jku: `${provider.origin}/evil`, x5u: `${provider.origin}/evil` };
  await refused(token(stranger, bait), "TOKEN_REJECTED", "signature");
  assert.ok(!provider.requests.includes("/evil"));
});

test("what is no JSON Web Token is refused without a word of it", async () => {
  for (const junk of [
    "junk",
    "a.b.c",
    "...",
    "e30.e30.e30",
    `${"a".repeat(8_000)}.${"b".repeat(8_000)}.c`,
    "eyJhbGciOiJSUzI1NiJ9.bnVsbA.c2ln",
  ]) {
    await assert.rejects(
      verifier.verify(junk),
      (error) => isGroveError(error, "TOKEN_REJECTED") && !error.message.includes(junk),
    );
  }
});

test("an issuer that publishes no signature algorithms is held to RS256", async () => {
  discover({ id_token_signing_alg_values_supported: undefined });
  await verifier.verify(token(rsa));
  await refused(token(ec), "TOKEN_REJECTED", "alg");
});

test("discovery that names another issuer, has no keys or is no JSON is an outage (D21)", async () => {
  for (const change of [{ issuer: "https://evil.example" }, { issuer: undefined }, { jwks_uri: undefined }]) {
    discover(change);
    await refused(token(rsa), "IDP_UNAVAILABLE");
  }
  provider.answers.set("/.well-known/openid-configuration", text("<html>", "text/html"));
  await refused(token(rsa), "IDP_UNAVAILABLE");
  provider.answers.set("/.well-known/openid-configuration", json({}, 404));
  await refused(token(rsa), "IDP_UNAVAILABLE");
  discover({});
  await verifier.verify(token(rsa));
});

test("keys that cannot be fetched or used are an outage, and are asked for again (C-10)", async () => {
  for (const answer of [
    json({}, 500),
    json({ keys: "none" }),
    json([]),
    text("x", "text/plain"),
    json({ keys: [], pad: "x".repeat(IDP_RESPONSE_MAX_BYTES) }),
    json({ keys: [{ ...rsa.jwk, n: undefined }] }),
    (request) => request.socket.resetAndDestroy(),
  ] satisfies Answer[]) {
    provider.answers.set("/jwks", answer);
    await refused(token(rsa), "IDP_UNAVAILABLE");
  }
  provider.answers.set("/jwks", json({ keys: [rsa.jwk] }));
  await verifier.verify(token(rsa));
});

test("a flood of unknown key ids fetches the keys once at once, and then no more than once a minute", async () => {
  await verifier.verify(token(rsa));
  const asked = provider.requests.length;
  for (let at = 0; at < 50; at++) await refused(token(rsa, { kid: `k${at}` }), "TOKEN_REJECTED", "kid");
  assert.equal(provider.requests.length, asked + 1);
  const together = Array.from({ length: 8 }, (_, at) =>
    refused(token(rsa, { kid: `t${at}` }), "TOKEN_REJECTED", "kid"),
  );
  await Promise.all(together);
  assert.equal(provider.requests.length, asked + 1);
  clock.advance(60_000);
  for (let at = 0; at < 50; at++) await refused(token(rsa, { kid: `m${at}` }), "TOKEN_REJECTED", "kid");
  assert.equal(provider.requests.length, asked + 2);
});

test("a key that was published after the keys were fetched is found at once, and by all who come with it", async () => {
  provider.answers.set("/jwks", json({ keys: [rsa.jwk] }));
  await verifier.verify(token(rsa));
  provider.answers.set("/jwks", json({ keys: [rsa.jwk, ec.jwk] }));
  await Promise.all(Array.from({ length: 20 }, () => verifier.verify(token(ec))));
  await verifier.verify(token(rsa));
  assert.deepEqual(provider.requests, ["/.well-known/openid-configuration", "/jwks", "/jwks"]);
});

test("the same token is taken once its key is published: that a key was unknown is not remembered", async () => {
  provider.answers.set("/jwks", json({ keys: [rsa.jwk] }));
  await verifier.verify(token(rsa));
  const early = token(ec);
  await refused(early, "TOKEN_REJECTED", "kid");
  provider.answers.set("/jwks", json({ keys: [rsa.jwk, ec.jwk] }));
  clock.advance(60_000);
  await verifier.verify(early);
});

test("an unknown key while the issuer is away costs nobody the keys that are known (C-10)", async () => {
  provider.answers.set("/jwks", json({ keys: [rsa.jwk] }));
  await verifier.verify(token(rsa));
  provider.answers.set("/jwks", json({}, 503));
  provider.answers.set("/.well-known/openid-configuration", json({}, 503));
  await refused(token(ec), "IDP_UNAVAILABLE");
  await verifier.verify(token(rsa));
});

test("discovery is asked again after 10 minutes, and its old answer holds while it cannot be (C-10)", async () => {
  await verifier.verify(token(rsa));
  clock.advance(ISSUER_KEYS_TTL_MS - 1);
  await verifier.verify(token(rsa));
  assert.equal(provider.requests.length, 2);
  clock.advance(1);
  provider.answers.set("/.well-known/openid-configuration", json({}, 503));
  await verifier.verify(token(rsa));
  assert.deepEqual(provider.requests.slice(2), ["/.well-known/openid-configuration"]);
  discover({});
  provider.answers.set("/jwks", json({ keys: [ec.jwk] }));
  await verifier.verify(token(ec)); // discovery works again, and returns the new keys
  await refused(token(rsa), "TOKEN_REJECTED", "kid");
});

test("an issuer that redirects or hangs is given up (D21)", { timeout: 30_000 }, async () => {
  provider.answers.set("/.well-known/openid-configuration", (_request, response) => {
    response.writeHead(301, { location: "/elsewhere" }).end();
  });
  await refused(token(rsa), "IDP_UNAVAILABLE");
  assert.ok(!provider.requests.includes("/elsewhere"));
  provider.answers.set("/.well-known/openid-configuration", () => {});
  const asked = provider.requests.length;
  const hanging = refused(token(rsa), "IDP_UNAVAILABLE");
  while (provider.requests.length === asked) await new Promise((resolve) => setTimeout(resolve, 5));
  clock.advance(5_000);
  await hanging;
});
