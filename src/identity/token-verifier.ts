// Verifies ID tokens: at the provider's tokeninfo address or with its published keys, with a cache; mock tokens in mock mode.
import type { Clock } from "#base/clock.ts";
import { GroveError } from "#base/errors.ts";
import type { SecurityEventSink } from "#base/security-event.ts";
import type { VerifiedIdentity } from "#base/verified-identity.ts";

/** The part of `fetch` that verification uses. */
export type Fetch = (url: string | URL, init?: RequestInit) => Promise<Response>;

/** What a verified ID token proves, and until when. */
export interface VerifiedToken {
  readonly identity: VerifiedIdentity;
  /** Wall time of the token's `exp`. */
  readonly expiresAtWallMs: number;
}

/** Turns an ID token into an identity (spec 5.2). */
export interface TokenVerifier {
  /**
   * Verifies a token. Throws TOKEN_REJECTED (the message names the claim), MOCK_TOKEN, CLIENT_ID_UNSET, IDP_UNAVAILABLE, OVERLOADED.
   */
  verify(token: string): Promise<VerifiedToken>;
}

/** What a verifier is made from. */
export interface TokenVerifierDeps {
  /** Expected `aud` (IDP_CLIENT_ID). Undefined or empty: every real token is refused without a network call (spec 5.2). */
  readonly clientId: string | undefined;
  /** Tokeninfo address (IDP_TOKENINFO_URL). Not used when there is an issuer. */
  readonly tokeninfoUrl?: string | undefined;
  /** Issuer (IDP_ISSUER): tokens are checked with its published keys instead of tokeninfo (decision D21). */
  readonly issuer?: string | undefined;
  /** True accepts mock tokens (SVC_AUTH_MOCK, spec 5.7). */
  readonly mock: boolean;
  readonly clock: Clock;
  /** Default: the runtime's own, or one that trusts `ca` alone. */
  readonly fetch?: Fetch;
  readonly onSecurityEvent?: SecurityEventSink;
  /** PEM of the authority that signed the identity provider's certificate. */
  readonly ca?: string | undefined;
}

/** Makes the verifier of a server (spec 5.1, 5.2, 5.7; decision D21). */
export function createTokenVerifier(deps: TokenVerifierDeps): TokenVerifier {
  void deps;
  throw new GroveError("NOT_IMPLEMENTED", "being built");
}
