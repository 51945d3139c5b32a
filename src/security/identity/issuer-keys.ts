// Verifies an ID token with the keys that its issuer publishes: discovery, key set, signature, claims
// (decision D21).
import * as oauth from "oauth4webapi";
import type { Clock } from "#base/clock.ts";
import { GroveError, isGroveError } from "#base/errors.ts";
import { TOKEN_CLOCK_LENIENCY_MS } from "#base/limits.ts";
import { TokenBuckets } from "#base/token-buckets.ts";
import type { Fetch } from "#os/authority-fetch.ts";
import { type Claims, isUnknownKey, rejected, UNKNOWN_KEY_CLAIM } from "./claims.ts";
import { discoverProvider, type ProviderOptions, providerOptions } from "./provider-discovery.ts";
import { unavailable } from "./provider-fetch.ts";

/** How long an issuer's discovery answers and key sets are used before the next fetch. */
export const ISSUER_KEYS_TTL_MS: number = 10 * 60_000;
/** Fetches of an issuer's keys in a burst, caused by tokens that name an unknown key. */
const ISSUER_KEY_FETCHES = 2;
/** The same per minute after that. */
const ISSUER_KEY_FETCHES_PER_MINUTE = 1;

/** The key of the bucket: an issuer's keys are fetched together. */
const ALL_KEYS = "";

/** Dependencies of the verification for one issuer. */
export interface IssuerDeps {
  readonly clock: Clock;
  readonly fetch: Fetch;
  readonly issuer: string;
  readonly clientId: string;
}

/** The keys of one issuer, fetched on first use and cached. */
export class IssuerKeys {
  readonly #deps: IssuerDeps;
  #server: oauth.AuthorizationServer | undefined;
  #discoveredAtMs = 0;
  #discovery: Promise<oauth.AuthorizationServer> | undefined;
  /** Limits the fetches of keys, for any reason. */
  readonly #fetches: TokenBuckets;
  #fetchCount = 0;
  /** The same objects for every request, so that the library merges concurrent ones. */
  readonly #discoveryOptions: ProviderOptions;
  readonly #keyOptions: ProviderOptions;

  constructor(deps: IssuerDeps) {
    this.#deps = deps;
    this.#fetches = new TokenBuckets(deps.clock, {
      perSecond: ISSUER_KEY_FETCHES_PER_MINUTE / 60,
      burst: ISSUER_KEY_FETCHES,
    });
    const isOk = (status: number): boolean => status === 200;
    this.#discoveryOptions = providerOptions(deps, isOk);
    const fetchKeys: Fetch = (url, init) => {
      this.#fetchCount++;
      this.#fetches.charge(ALL_KEYS, 1);
      return deps.fetch(url, init);
    };
    this.#keyOptions = providerOptions({ ...deps, fetch: fetchKeys }, isOk);
  }

  /**
   * Returns the claims of a token that the issuer has signed for this client. Throws TOKEN_REJECTED or
   * IDP_UNAVAILABLE.
   */
  async claims(token: string): Promise<{ claims: Claims; issuer: string }> {
    const server = await this.#discover();
    // The library checks ID tokens inside a token endpoint's answer; this makes one around the given token.
    const answer = Response.json({ access_token: "none", token_type: "bearer", id_token: token });
    let claims: Claims | undefined;
    try {
      const parsed = await oauth.processGenericTokenEndpointResponse(server, this.#client(), answer);
      claims = oauth.getValidatedIdTokenClaims(parsed);
    } catch (error) {
      throw claimRefusal(error);
    }
    if (claims === undefined) throw rejected("signature", "is missing");
    await this.#requireSignature(server, answer);
    return { claims, issuer: server.issuer };
  }

  /**
   * Throws TOKEN_REJECTED unless a key of the issuer has signed the token, newly published keys included.
   * `before` is the issuer to return to when its new keys cannot be fetched.
   */
  async #requireSignature(
    server: oauth.AuthorizationServer,
    answer: Response,
    before?: oauth.AuthorizationServer,
  ): Promise<void> {
    const fetched = this.#fetchCount;
    try {
      await oauth.validateApplicationLevelSignature(server, answer, this.#keyOptions);
    } catch (error) {
      const refusal = signatureRefusal(error);
      if (isUnknownKey(refusal) && this.#fetchCount === fetched) {
        const renewed = this.#withNewKeys(server);
        if (renewed !== undefined) return this.#requireSignature(renewed, answer, server);
      }
      // The library would keep unusable keys for minutes after the provider has fixed them.
      if (refusal.code === "IDP_UNAVAILABLE" && this.#server === server) this.#server = before;
      throw refusal;
    }
  }

  /** The issuer with newer keys; undefined while the fetches are used up. */
  #withNewKeys(server: oauth.AuthorizationServer): oauth.AuthorizationServer | undefined {
    if (this.#server !== undefined && this.#server !== server) return this.#server;
    if (this.#fetches.waitMs(ALL_KEYS) > 0) return undefined;
    // The library caches keys by the object that describes the issuer.
    this.#server = { ...server };
    return this.#server;
  }

  /**
   * The client for the library: its time is our clock's, in whole seconds, and so a little more lenient than
   * checkClaims, which decides.
   */
  #client(): oauth.Client {
    return {
      client_id: this.#deps.clientId,
      [oauth.clockSkew]: Math.round((this.#deps.clock.wallMs() - Date.now()) / 1000),
      [oauth.clockTolerance]: TOKEN_CLOCK_LENIENCY_MS / 1000 + 2,
    };
  }

  async #discover(): Promise<oauth.AuthorizationServer> {
    const ageMs = this.#deps.clock.steadyMs() - this.#discoveredAtMs;
    if (this.#server !== undefined && ageMs < ISSUER_KEYS_TTL_MS) return this.#server;
    this.#discovery ??= this.#fetchMetadata().finally(() => {
      this.#discovery = undefined;
    });
    try {
      return await this.#discovery;
    } catch (error) {
      // The issuer's last answer stays valid while it is out of reach.
      if (this.#server !== undefined) return this.#server;
      throw error;
    }
  }

  async #fetchMetadata(): Promise<oauth.AuthorizationServer> {
    // A cached answer without keys would prolong a provider's short failure.
    this.#server = await discoverProvider(this.#deps.issuer, this.#discoveryOptions, ({ jwks_uri: keys }) =>
      keys === undefined ? "keys" : undefined,
    );
    this.#discoveredAtMs = this.#deps.clock.steadyMs();
    return this.#server;
  }
}

/** The library's errors hold the whole token and its claims: only the claim's name is copied. */
function claimRefusal(error: unknown): GroveError {
  if (isGroveError(error)) return error;
  const { code, cause, message } = error as { code?: string; cause?: { claim?: unknown }; message?: string };
  const claim = typeof cause?.claim === "string" ? cause.claim : /"(\w{1,32})"/.exec(message ?? "")?.[1];
  if (code === oauth.JWT_TIMESTAMP_CHECK) return rejected(claim ?? "exp", "does not fit the time now");
  if (code === oauth.JWT_CLAIM_COMPARISON)
    return rejected(claim ?? "aud", "is not what this cluster expects");
  if (claim !== undefined && /claim/.test(message ?? "")) {
    return rejected(claim, /missing/.test(message ?? "") ? "is missing" : "has a wrong value or type");
  }
  if (/alg/.test(message ?? "")) return rejected("alg", "is not a signature that this issuer uses");
  return new GroveError("TOKEN_REJECTED", "ID token refused: it is not a signed JSON Web Token");
}

function signatureRefusal(error: unknown): GroveError {
  if (isGroveError(error)) return error;
  const { code, message } = error as { code?: string; message?: string };
  if (code === oauth.KEY_SELECTION) {
    return rejected(UNKNOWN_KEY_CLAIM, "names no key that this issuer publishes now; try again in a minute");
  }
  if (code === oauth.UNSUPPORTED_OPERATION) return rejected("alg", "is not supported");
  if (/signature verification failed/.test(message ?? "")) return rejected("signature", "does not verify");
  return unavailable("publishes keys that cannot be used");
}
