// The random values of a sign-in: PKCE verifier and challenge (S256), state and nonce (spec 5.1, RFC 7636).
import { hash } from "node:crypto";
import type { Random } from "#base/random.ts";

const SECRET_BYTES = 32;

/** A code verifier and its challenge for the consent address. */
export interface Pkce {
  /** 43 characters of unpadded base64url, from 32 random bytes. */
  readonly verifier: string;
  /** BASE64URL(SHA256(verifier)). */
  readonly challenge: string;
  readonly method: "S256";
}

/** Makes a new verifier and its challenge (spec 5.1.1). */
export function createPkce(random: Random): Pkce {
  const verifier = random.bytes(SECRET_BYTES).toString("base64url");
  return { verifier, challenge: pkceChallenge(verifier), method: "S256" };
}

/** The S256 challenge of a verifier (RFC 7636, 4.2). */
export function pkceChallenge(verifier: string): string {
  return hash("sha256", verifier, "base64url");
}

/** A new `state`: 256 random bits, single use (spec 5.1.1, C-08). */
export function createState(random: Random): string {
  return random.bytes(SECRET_BYTES).toString("base64url");
}

/** A new `nonce`: 256 random bits, compared with the ID token's (C-08). */
export function createNonce(random: Random): string {
  return random.bytes(SECRET_BYTES).toString("base64url");
}
