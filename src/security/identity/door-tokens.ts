// ID tokens of people who sign in at doors: doors have a client id of their own, which FileServers refuse.
import { GroveError } from "#base/errors.ts";
import type { IdentitySettings } from "./sign-in-variables.ts";
import { createTokenVerifier, type TokenVerifier, type TokenVerifierDeps } from "./token-verifier.ts";

/** Their verifier by IDP_DOOR_CLIENT_ID; undefined without it. Throws BAD_ARGUMENT for FileServers' own client id. */
export function doorTokens(
  settings: IdentitySettings,
  deps: Pick<TokenVerifierDeps, "ca" | "clock" | "mock" | "onSecurityEvent">,
): TokenVerifier | undefined {
  const clientId = process.env["IDP_DOOR_CLIENT_ID"];
  if (clientId === undefined || clientId === "")
    return deps.mock ? createTokenVerifier({ ...settings, ...deps }) : undefined;
  if (clientId === settings.clientId)
    throw new GroveError(
      "BAD_ARGUMENT",
      "IDP_DOOR_CLIENT_ID is IDP_CLIENT_ID: doors need a client of their own, so that what they hold opens no FileServer",
    );
  return createTokenVerifier({ ...settings, clientId, ...deps });
}

/** What the signature of an ID token covers: one token has many signatures and ways to write them that all count. */
export function signedPartOf(idToken: string): string {
  const [header = "", claims, signature] = idToken.split(".");
  return claims === undefined || signature === undefined ? idToken : `${header}.${claims}`;
}
