// Tests of PKCE values and the comparison of secrets.
import assert from "node:assert/strict";
import { test } from "node:test";
import { constantTimeEqual } from "#base/constant-time.ts";
import { systemRandom } from "#base/random.ts";
import { createNonce, createPkce, createState, pkceChallenge } from "./pkce.ts";

test("the challenge is that of RFC 7636, appendix B (spec 5.1.1)", () => {
  assert.equal(
    pkceChallenge("dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk"),
    "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM",
  );
});

test("verifiers have 43 characters of 32 random bytes, and no two values are alike (spec 5.1.1)", () => {
  const seen = new Set<string>();
  for (let at = 0; at < 200; at++) {
    const { verifier, challenge, method } = createPkce(systemRandom);
    assert.match(verifier, /^[A-Za-z0-9_-]{43}$/);
    assert.equal(challenge, pkceChallenge(verifier));
    assert.equal(method, "S256");
    for (const value of [verifier, createState(systemRandom), createNonce(systemRandom)]) seen.add(value);
  }
  assert.equal(seen.size, 600);
  const fixed = createPkce({ bytes: (count) => Buffer.alloc(count, 0xff) });
  assert.equal(Buffer.from(fixed.verifier, "base64url").length, 32);
});

test("equal is equal, and any difference in content, length or kind of bytes is not (C-12)", () => {
  assert.equal(constantTimeEqual("abc", "abc"), true);
  assert.equal(constantTimeEqual("abc", Buffer.from("abc")), true);
  assert.equal(constantTimeEqual("", ""), true);
  for (const other of ["abd", "ab", "abcd", "", "ABC", "abc\0"])
    assert.equal(constantTimeEqual("abc", other), false);
});
