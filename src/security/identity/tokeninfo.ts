// Fetches an ID token's claims from the provider's tokeninfo address (spec 5.2.1).
import type { Clock } from "#base/clock.ts";
import { GroveError } from "#base/errors.ts";
import type { Fetch } from "#os/authority-fetch.ts";
import type { Claims } from "./claims.ts";
import { askProvider, jsonObject, unavailable } from "./provider-fetch.ts";

/**
 * Statuses that are a verdict on the token; any other refusal, such as 429, is about the provider or our
 * settings.
 */
const REFUSALS: readonly number[] = [400, 401, 403, 422];

/** Returns the claims of a token that the provider vouches for. Throws TOKEN_REJECTED or IDP_UNAVAILABLE. */
export async function tokeninfoClaims(
  deps: { clock: Clock; fetch: Fetch; tokeninfoUrl: string },
  token: string,
): Promise<Claims> {
  const url = new URL(deps.tokeninfoUrl);
  url.searchParams.set("id_token", token);
  const answer = await askProvider(deps, url, { headers: { accept: "application/json" } });
  if (answer.status === 200) return jsonObject(answer);
  if (!REFUSALS.includes(answer.status)) throw unavailable(`answered with status ${answer.status}`);
  throw new GroveError(
    "TOKEN_REJECTED",
    "ID token refused: the identity provider does not know it or it has run out",
  );
}
