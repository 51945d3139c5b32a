// Input and result of an ID token check by the identity provider.
import type { Clock } from "#base/clock.ts";
import type { Fetch } from "#os/authority-fetch.ts";
import type { Claims } from "./claims.ts";

/** Dependencies of the check. */
export interface ProviderCheckDeps {
  readonly clock: Clock;
  readonly fetch: Fetch;
  readonly clientId: string;
  readonly issuer: string | undefined;
  /** Not used when there is an issuer. */
  readonly tokeninfoUrl: string | undefined;
}

/**
 * Returns the claims of a token that the provider vouches for, and the issuer when its keys proved it. Throws
 * TOKEN_REJECTED or IDP_UNAVAILABLE.
 */
export type ProviderCheck = (token: string) => Promise<{ claims: Claims; issuer: string | undefined }>;
