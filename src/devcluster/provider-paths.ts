// The addresses of the demonstration's identity provider, below its issuer.

/** Answers 200 once the provider serves. */
export const DISCOVERY_PATH = "/.well-known/openid-configuration";
/** Where every sign-in begins. */
export const AUTH_PATH = "/auth";
/** Where codes are exchanged for tokens. */
export const TOKEN_PATH = "/token";
/** Says what an ID token holds; the token comes in the query as `id_token`. */
export const TOKENINFO_PATH = "/tokeninfo";
/** Where the conversation with a person takes place, followed by its id. */
export const SIGN_IN_PATH = "/sign-in/";
