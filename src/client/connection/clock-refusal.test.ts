// Tests of sign-ins refused for a wrong clock: which clock is named, and the hint.
import assert from "node:assert/strict";
import { test } from "node:test";
import { GroveError } from "#base/errors.ts";
import { judgedByClocks } from "#client/signin/clock-refusal.ts";
import { explain } from "./error-text.ts";

const NOW_MS = 1_800_000_000_000;
const HOUR_MS = 3_600_000;

const part = (value: object): string => Buffer.from(JSON.stringify(value)).toString("base64url");
const tokenUntil = (ms: number): string =>
  `${part({ alg: "RS256" })}.${part({ exp: Math.trunc(ms / 1_000) })}.c2ln`;

function told(claim: string, serverMs: number | string | undefined, endsMs: number): string {
  const metadata = serverMs === undefined ? { claim } : { claim, now_ms: String(serverMs) };
  const refusal = new GroveError("TOKEN_REJECTED", `ID token refused: claim "${claim}" is wrong`, {
    metadata,
  });
  const facts = { peer: "n1:42024", token: tokenUntil(endsMs), nowMs: NOW_MS };
  const { what, todo } = explain(judgedByClocks(refusal, facts));
  return `${what} ${todo}`;
}

test("a token that is good here, and over for a server whose clock is ahead, is no reason to sign in again", () => {
  assert.equal(
    told("exp", NOW_MS + 3 * HOUR_MS, NOW_MS + HOUR_MS),
    "The server n1:42024 refuses your sign-in for its time: its clock is 3 hours ahead of this machine's. " +
      "Signing in once more does not help. If this machine's clock is right, tell the administrator of the cluster to set the server's.",
  );
});

test("the same where it is not good yet, or the server says no time", () => {
  assert.match(
    told("iat", NOW_MS - 5 * 60_000, NOW_MS + HOUR_MS),
    /its clock is 5 minutes behind this machine's\./,
  );
  assert.match(told("nbf", NOW_MS - 72 * HOUR_MS, NOW_MS + HOUR_MS), /is 3 days behind/);
  for (const unsaid of [undefined, "", "x", "-1", NOW_MS + 1_000]) {
    const words = told("iat", unsaid, NOW_MS + HOUR_MS);
    assert.match(
      words,
      /its clock does not agree with the identity provider's\. Signing in once more does not help\. Tell /,
    );
  }
});

test("a token that is over here too needs a new sign-in, and so does one that is refused for another claim", () => {
  assert.match(told("exp", NOW_MS, NOW_MS - 1), /Sign in again: grove login$/);
  assert.match(told("aud", NOW_MS + 3 * HOUR_MS, NOW_MS + HOUR_MS), /Sign in again: grove login$/);
  assert.doesNotMatch(told("kid", undefined, NOW_MS + HOUR_MS), /sign in again/i);
});

test("what is no refusal of a token stays as it is", () => {
  const error = new GroveError("RATE_LIMITED", "x");
  assert.equal(judgedByClocks(error, { peer: "n", token: "mock-jwt.a@example.com", nowMs: NOW_MS }), error);
});
