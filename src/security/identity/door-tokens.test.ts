// ID tokens at doors: one that was used once is the same one with another signature that counts.
import assert from "node:assert/strict";
import { generateKeyPairSync, sign, verify } from "node:crypto";
import { test } from "node:test";
import { signedPartOf } from "./door-tokens.ts";

const ORDER = 0xffffffff00000000ffffffffffffffffbce6faada7179e84f3b9cac2fc632551n;

test("a token with another form of its signature is no other token, and other claims are", () => {
  const { privateKey, publicKey } = generateKeyPairSync("ec", { namedCurve: "P-256" });
  const text = (value: unknown): string => Buffer.from(JSON.stringify(value)).toString("base64url");
  const signed = `${text({ alg: "ES256" })}.${text({ sub: "7" })}`;
  const signature = sign("sha256", Buffer.from(signed), { key: privateKey, dsaEncoding: "ieee-p1363" });
  // The other solution of the same equation, which anybody can compute.
  const other = Buffer.from(signature);
  const s = BigInt(`0x${signature.subarray(32).toString("hex")}`);
  other.write((ORDER - s).toString(16).padStart(64, "0"), 32, "hex");
  const key = { key: publicKey, dsaEncoding: "ieee-p1363" } as const;
  for (const one of [signature, other]) assert.ok(verify("sha256", Buffer.from(signed), key, one));
  const token = (bytes: Buffer): string => `${signed}.${bytes.toString("base64url")}`;
  assert.notEqual(token(signature), token(other));
  assert.equal(signedPartOf(token(signature)), signedPartOf(token(other)));
  assert.notEqual(signedPartOf(token(signature)), signedPartOf(`${text({})}.${text({ sub: "8" })}.x`));
  assert.notEqual(signedPartOf("mock-jwt.a"), signedPartOf("mock-jwt.b"));
});
