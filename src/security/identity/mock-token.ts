// Mock tokens: their form, refusal and claims (spec 5.7). They prove nothing and serve tests and
// demonstrations.
import { GroveError } from "#base/errors.ts";
import type { SecurityEventSink } from "#base/security-event.ts";
import type { Claims } from "./claims.ts";

const PREFIX = "mock-jwt.";
const LIFETIME_SECONDS = 3_600;

/**
 * True for any text with the prefix of a mock token, in any case of letters, so that none passes the refusal
 * (C-06).
 */
export function looksLikeMockToken(token: string): boolean {
  return token.trimStart().toLowerCase().startsWith(PREFIX);
}

/**
 * Refuses a mock token outside of mock mode, before any other step: a fatal security event, and MOCK_TOKEN
 * (spec 5.7, C-06).
 */
export function refuseMockToken(
  onSecurityEvent: SecurityEventSink | undefined,
  peerAddress: string | undefined,
): never {
  onSecurityEvent?.({
    type: "mock_token",
    fatal: true,
    ...(peerAddress === undefined ? {} : { ipSeen: peerAddress }),
  });
  throw new GroveError("MOCK_TOKEN", "mock tokens are not accepted here");
}

/**
 * Reads the claims of `mock-jwt.` and an e-mail address, or `mock-jwt.` and unpadded base64url JSON of
 * claims. Missing claims get defaults: verified e-mail, an hour of life, the expected audience. Throws
 * TOKEN_REJECTED for any other text.
 */
export function mockClaims(
  token: string,
  expected: { clientId: string | undefined; nowWallMs: number },
): Claims {
  if (!token.startsWith(PREFIX))
    throw new GroveError("TOKEN_REJECTED", 'a mock token begins with "mock-jwt." as written');
  const rest = token.slice(PREFIX.length);
  const nowSeconds = Math.floor(expected.nowWallMs / 1000);
  return {
    email_verified: true,
    exp: nowSeconds + LIFETIME_SECONDS,
    ...(expected.clientId === undefined ? {} : { aud: expected.clientId }),
    ...(rest.includes("@") ? { email: rest } : decodeClaims(rest)),
  };
}

function decodeClaims(text: string): Claims {
  try {
    if (!/^[A-Za-z0-9_-]+$/.test(text)) throw new SyntaxError("not base64url");
    const bytes = Buffer.from(text, "base64url");
    const claims: unknown = JSON.parse(new TextDecoder("utf-8", { fatal: true }).decode(bytes));
    if (typeof claims === "object" && claims !== null && !Array.isArray(claims)) return claims as Claims;
  } catch {
    // The parser's text would quote the token.
  }
  throw new GroveError(
    "TOKEN_REJECTED",
    'after "mock-jwt." comes an e-mail address, or unpadded base64url JSON of claims',
  );
}
