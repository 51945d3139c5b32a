// Replaces provider-checks.ts in builds with USE_IDP_AUTH=0: checks no provider (spec 5.9, D24).
import type { Fetch } from "#os/authority-fetch.ts";
import type { Check } from "./finding.ts";
import type { ProviderAddresses, ProviderAsker } from "./provider-checks.ts";

/** None; the finding about USE_IDP_AUTH gives the reason. */
export function providerChecks(_addresses: ProviderAddresses, _asker?: ProviderAsker): Check[] {
  return [];
}

/** Finds nothing, for the same reason. */
export function providerKeysCheck(_issuer: string, _ask: Fetch): Check {
  return { name: "identity provider", run: () => Promise.resolve([]) };
}
