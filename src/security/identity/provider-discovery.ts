// Requests of the OAuth library to the identity provider, and the provider's discovery (decision D21).
import * as oauth from "oauth4webapi";
import type { Clock } from "#base/clock.ts";
import { isGroveError } from "#base/errors.ts";
import type { Fetch } from "#os/authority-fetch.ts";
import { askProvider, jsonObject, unavailable } from "./provider-fetch.ts";

/** Options of the library for each request. */
export type ProviderOptions = Readonly<Record<symbol, unknown>>;

/**
 * Sends every request of the library through our limits. A status that `isAnswer` refuses is IDP_UNAVAILABLE.
 */
export function providerOptions(
  deps: { readonly clock: Clock; readonly fetch: Fetch; readonly issuer: string },
  isAnswer: (status: number) => boolean,
): ProviderOptions {
  return {
    [oauth.customFetch]: async (url: string, init: RequestInit) => {
      const answer = await askProvider(deps, url, init);
      if (!isAnswer(answer.status)) throw unavailable(`answered with status ${answer.status}`);
      return Response.json(jsonObject(answer), { status: answer.status });
    },
    // A provider on this machine, as of `grove up`; sign-in-variables.ts warns of any other.
    // oxlint-disable-next-line typescript/no-deprecated
    [oauth.allowInsecureRequests]: new URL(deps.issuer).protocol === "http:",
  };
}

/** Returns an issuer's published metadata when it is complete. Throws IDP_UNAVAILABLE. */
export async function discoverProvider(
  issuer: string,
  options: ProviderOptions,
  missing: (server: oauth.AuthorizationServer) => string | undefined,
): Promise<oauth.AuthorizationServer> {
  try {
    const url = new URL(issuer);
    const response = await oauth.discoveryRequest(url, { algorithm: "oidc", ...options });
    const server = await oauth.processDiscoveryResponse(url, response);
    const problem = missing(server);
    if (problem !== undefined) throw unavailable(`publishes no ${problem}`);
    return server;
  } catch (error) {
    if (isGroveError(error)) throw error;
    throw unavailable("did not answer discovery as an OpenID provider of this issuer does");
  }
}
