// The tokens of mock mode, with which anybody is anybody (spec 5.7).
import { canonicalUsername } from "#base/names.ts";

/** What they begin with. */
export const MOCK_PREFIX = "mock-jwt.";

/** The mock token of a user. */
export function mockToken(email: string): string {
  return MOCK_PREFIX + canonicalUsername(email);
}
