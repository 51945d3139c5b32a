// Replaces code-flow.ts in a program that is built with USE_IDP_AUTH=0: sign-in is impossible (spec 5.9,
// D24).
import { NO_IDP_AUTH_TEXT } from "#base/build-flags.ts";
import { GroveError } from "#base/errors.ts";
import type { CodeFlow, CodeFlowDeps } from "./code-flow-types.ts";

/** Throws BAD_ARGUMENT. */
export function createCodeFlow(_deps: CodeFlowDeps): CodeFlow {
  throw new GroveError("BAD_ARGUMENT", NO_IDP_AUTH_TEXT);
}
