// Checks ID tokens with the provider's published keys or its tokeninfo address (spec 5.2.1, decision D21).
import type { Claims } from "./claims.ts";
import { IssuerKeys } from "./issuer-keys.ts";
import type { ProviderCheck, ProviderCheckDeps } from "./provider-check-types.ts";
import { tokeninfoClaims } from "./tokeninfo.ts";

/** Makes the check for a server's settings; undefined without an issuer and a tokeninfo address. */
export function createProviderCheck(deps: ProviderCheckDeps): ProviderCheck | undefined {
  const { clock, fetch, issuer, clientId, tokeninfoUrl } = deps;
  if (issuer !== undefined) {
    const keys = new IssuerKeys({ clock, fetch, issuer, clientId });
    return (token) => keys.claims(token);
  }
  if (tokeninfoUrl === undefined) return undefined;
  return async (token): Promise<{ claims: Claims; issuer: undefined }> => ({
    claims: await tokeninfoClaims({ clock, fetch, tokeninfoUrl }, token),
    issuer: undefined,
  });
}
