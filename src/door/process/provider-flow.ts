// The way to the identity provider for browsers at a door, by the environment.
import { systemClock } from "#base/clock.ts";
import { systemRandom } from "#base/random.ts";
import { createAuthorityFetch } from "#os/authority-fetch.ts";
import { readPem } from "#security/authority/tls-material.ts";
import { createCodeFlow } from "#security/identity/code-flow.ts";
import type { CodeFlow } from "#security/identity/code-flow-types.ts";
import { type Environment, readIdentitySettings } from "#security/identity/sign-in-variables.ts";

/** A session at a door may share and make links for a while after its sign-in, which is therefore a new one. */
const SIGN_IN_MAX_AGE_S = 300;

/** Makes a flow for a redirect address; undefined without IDP_ISSUER and IDP_CLIENT_ID. Rejects with BAD_ARGUMENT. */
export async function flowToProvider(
  env: Environment,
  caFile: string | undefined,
): Promise<((redirectUri: string) => CodeFlow) | undefined> {
  const { issuer, clientId, clientSecret } = readIdentitySettings(env);
  if (issuer === undefined || clientId === undefined) return undefined;
  const ask = caFile === undefined ? fetch : createAuthorityFetch(await readPem(caFile));
  return (redirectUri) =>
    createCodeFlow({
      issuer,
      clientId,
      clientSecret,
      redirectUri,
      maxAgeSeconds: SIGN_IN_MAX_AGE_S,
      clock: systemClock,
      random: systemRandom,
      fetch: ask,
    });
}
