// The tokens of mock mode, which any client can make for any user (spec 5.7).
import { canonicalUsername } from "#base/names.ts";

/** The prefix of mock tokens. */
export const MOCK_PREFIX = "mock-jwt.";

/** The mock token of a user. */
export function mockToken(email: string): string {
  return MOCK_PREFIX + canonicalUsername(email);
}
