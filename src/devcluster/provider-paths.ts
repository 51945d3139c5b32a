// The paths of the demonstration's identity provider, below its issuer.

/** Answers 200 once the provider serves. */
export const DISCOVERY_PATH = "/.well-known/openid-configuration";
/** The authorization endpoint, where a sign-in begins. */
export const AUTH_PATH = "/auth";
/** The token endpoint, which exchanges codes for tokens. */
export const TOKEN_PATH = "/token";
/** Returns the claims of an ID token, given as `id_token` in the query. */
export const TOKENINFO_PATH = "/tokeninfo";
/** Prefix of the sign-in pages, followed by the interaction's id. */
export const SIGN_IN_PATH = "/sign-in/";
