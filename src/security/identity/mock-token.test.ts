// Tests of mock tokens in mock mode: their two forms, and the rules that still apply.
import assert from "node:assert/strict";
import { test } from "node:test";
import { ManualClock } from "#base/clock.ts";
import { type ErrorCode, isGroveError } from "#base/errors.ts";
import { createTokenVerifier, type TokenVerifier } from "./token-verifier.ts";

const CLIENT_ID = "client-1";
const HOUR_MS = 3_600_000;
const clock = new ManualClock();

function verifier(clientId: string | undefined): TokenVerifier {
  return createTokenVerifier({
    clientId,
    tokeninfoUrl: "http://127.0.0.1:1/",
    mock: true,
    clock,
    fetch: () => assert.fail("a mock token is never asked for"),
    onSecurityEvent: () => assert.fail("in mock mode it is no event"),
  });
}

const mockOf = (value: object): string =>
  `mock-jwt.${Buffer.from(JSON.stringify(value)).toString("base64url")}`;

async function refused(promise: Promise<unknown>, code: ErrorCode, claim?: string): Promise<void> {
  await assert.rejects(promise, (error) => {
    assert.ok(isGroveError(error, code), String(error));
    if (claim !== undefined) assert.equal(error.metadata["claim"], claim);
    return true;
  });
}

test("in mock mode an e-mail address or claims in base64url are an identity, with or without a client id (spec 5.7)", async () => {
  for (const clientId of [CLIENT_ID, undefined]) {
    const mock = verifier(clientId);
    const plain = await mock.verify("mock-jwt.Bob@Example.com");
    assert.deepEqual({ ...plain.identity }, { username: "bob@example.com", issuer: "", subject: "" });
    assert.equal(plain.expiresAtWallMs, clock.wallMs() + HOUR_MS);
    const made = await mock.verify(mockOf({ email: "C@x.de", sub: "7", iss: "test", exp: 1_790_000_007 }));
    assert.deepEqual({ ...made.identity }, { username: "c@x.de", issuer: "test", subject: "7" });
    assert.equal(made.expiresAtWallMs, 1_790_000_007_000);
  }
});

test("mock claims are held to the same rules, and each refusal names the claim (spec 5.2, 5.7)", async () => {
  const mock = verifier(CLIENT_ID);
  await refused(
    mock.verify(mockOf({ email: "a@x", email_verified: false })),
    "TOKEN_REJECTED",
    "email_verified",
  );
  await refused(mock.verify(mockOf({ email: "a@x", aud: "other" })), "TOKEN_REJECTED", "aud");
  await refused(mock.verify(mockOf({ email: "a@x", exp: 1 })), "TOKEN_REJECTED", "exp");
  await refused(mock.verify(mockOf({ sub: "1" })), "TOKEN_REJECTED", "email");
  for (const wrong of [
    "mock-jwt.",
    "mock-jwt.@",
    "mock-jwt.a b@x",
    "mock-jwt.%%%",
    "mock-jwt.bm8ganNvbg",
    "MOCK-JWT.a@x.de",
    " mock-jwt.a@x.de",
    mockOf([]),
    `${mockOf({ email: "a@x" })}=`,
  ]) {
    await refused(mock.verify(wrong), "TOKEN_REJECTED");
  }
});
