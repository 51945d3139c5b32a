// Replaces provider-check.ts in a program that is built with USE_IDP_AUTH=0: there is no provider (spec 5.9,
// D24).
import type { ProviderCheck, ProviderCheckDeps } from "./provider-check-types.ts";

/** Returns no check for any settings. */
export function createProviderCheck(_deps: ProviderCheckDeps): ProviderCheck | undefined {
  return undefined;
}
