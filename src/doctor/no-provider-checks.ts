// Stands for provider-checks.ts in a program that is built with USE_IDP_AUTH=0: no provider is asked (spec 5.9, D24).
import type { Check } from "./finding.ts";
import type { ProviderAddresses, ProviderAsker } from "./provider-checks.ts";

/** None; the finding about USE_IDP_AUTH says why. */
export function providerChecks(_addresses: ProviderAddresses, _asker?: ProviderAsker): Check[] {
  return [];
}
