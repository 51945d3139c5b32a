// Verifies ID tokens: at the provider's tokeninfo address or with its published keys, with a cache; mock
// tokens in mock mode.
import { hash } from "node:crypto";
import { LRUCache } from "lru-cache";
import { atMost } from "#base/at-most.ts";
import { HAS_IDP_AUTH, NO_IDP_AUTH_TEXT } from "#base/build-flags.ts";
import type { Clock } from "#base/clock.ts";
import { isDoorSecret } from "#base/door-call.ts";
import { type ErrorMetadata, GroveError, isGroveError } from "#base/errors.ts";
import { TOKEN_CACHE_CAP_MS, TOKEN_CACHE_ENTRIES } from "#base/limits.ts";
import type { SecurityEventSink } from "#base/security-event.ts";
import { createAuthorityFetch, type Fetch } from "#os/authority-fetch.ts";
import { checkClaims, checkOwnWords, isUnknownKey, type VerifiedToken } from "./claims.ts";
import { looksLikeMockToken, mockClaims, refuseMockToken } from "./mock-token.ts";
import { createProviderCheck } from "./provider-check.ts";
import type { ProviderCheck } from "./provider-check-types.ts";
import { VerificationBudget } from "./verification-budget.ts";

/** How long a refused ID token is remembered (decision D21). */
const TOKEN_NEGATIVE_CACHE_MS = 30_000;
/** Characters of an ID token; longer ones are refused unread. */
const ID_TOKEN_MAX_LENGTH = 16_384;

export type { VerifiedToken } from "./claims.ts";

/** Turns an ID token into an identity (spec 5.2). */
export interface TokenVerifier {
  /**
   * Verifies a token; an unknown one waits for the turn of its address. Throws TOKEN_REJECTED (the message
   * and metadata name the claim), MOCK_TOKEN, CLIENT_ID_UNSET, IDP_UNAVAILABLE. Throws RATE_LIMITED and
   * OVERLOADED with the time of the next try.
   */
  verify(token: string, peerAddress?: string): Promise<VerifiedToken>;
  /**
   * The cached result of a verified token; undefined for one that needs verification, and for a refused one.
   * Sends no request.
   */
  known(token: string): VerifiedToken | undefined;
}

/** Dependencies of a verifier. */
export interface TokenVerifierDeps {
  /**
   * Expected `aud` (IDP_CLIENT_ID). Undefined or empty: every real token is refused without a network call
   * (spec 5.2).
   */
  readonly clientId: string | undefined;
  /** Tokeninfo address (IDP_TOKENINFO_URL). Not used when there is an issuer. */
  readonly tokeninfoUrl?: string | undefined;
  /** Issuer (IDP_ISSUER): tokens are checked with its published keys instead of tokeninfo (decision D21). */
  readonly issuer?: string | undefined;
  /** Organisation that the claim `hd` must name (IDP_HOSTED_DOMAIN), lower-cased; undefined for any. */
  readonly hostedDomain?: string | undefined;
  /** True also accepts `aud` as a list of one (IDP_ALLOW_AUD_LIST). */
  readonly allowAudienceList?: boolean | undefined;
  /** Claim with the names of the person's groups; undefined reads none. */
  readonly groupsClaim?: string | undefined;
  /** True accepts mock tokens (SVC_AUTH_MOCK, spec 5.7). */
  readonly mock: boolean;
  /**
   * False disables the identity provider (USE_IDP_AUTH=0, decision D24): real tokens are refused. Default
   * true.
   */
  readonly useIdpAuth?: boolean;
  readonly clock: Clock;
  /** Default: the runtime's own, or one that trusts `ca` alone. */
  readonly fetch?: Fetch;
  readonly onSecurityEvent?: SecurityEventSink;
  /** PEM of the authority that signed the identity provider's certificate. */
  readonly ca?: string | undefined;
}

/**
 * Makes the verifier of a server (spec 5.1, 5.2, 5.7; decision D21). Throws BAD_ARGUMENT for an invalid
 * address.
 */
export function createTokenVerifier(deps: TokenVerifierDeps): TokenVerifier {
  return new CachingVerifier(deps);
}

interface CachedToken {
  readonly token: VerifiedToken;
  readonly untilMs: number;
}

/** Fields of a refusal; the error itself would keep the first caller's stack. */
interface CachedRefusal {
  readonly message: string;
  readonly metadata: ErrorMetadata;
  readonly untilMs: number;
}

/** How often a full cache is searched for expired entries, before it drops live ones. */
const PURGE_EVERY_MS = 10_000;

class CachingVerifier implements TokenVerifier {
  readonly #deps: TokenVerifierDeps;
  readonly #clientId: string | undefined;
  readonly #provider: ProviderCheck | undefined;
  readonly #verified = new LRUCache<string, CachedToken>(atMost(TOKEN_CACHE_ENTRIES));
  /** In the order of expiry. */
  readonly #refused = new Map<string, CachedRefusal>();
  /** At most as many as the budget lets run and wait. */
  readonly #underWay = new Map<string, Promise<VerifiedToken>>();
  readonly #budget: VerificationBudget;
  #purgedAtMs = Number.NEGATIVE_INFINITY;

  constructor(deps: TokenVerifierDeps) {
    for (const url of [deps.issuer, deps.tokeninfoUrl]) {
      if (url !== undefined && !/^https?:$/.test(URL.parse(url)?.protocol ?? "")) {
        throw new GroveError("BAD_ARGUMENT", "the identity provider's address is not an http or https URL");
      }
    }
    this.#deps = deps;
    this.#budget = new VerificationBudget(deps.clock);
    this.#clientId = deps.clientId === "" ? undefined : deps.clientId;
    const { clock, issuer, tokeninfoUrl } = deps;
    const asks = deps.fetch ?? (deps.ca === undefined ? fetch : createAuthorityFetch(deps.ca));
    this.#provider =
      this.#clientId === undefined
        ? undefined
        : createProviderCheck({ clock, fetch: asks, clientId: this.#clientId, issuer, tokeninfoUrl });
  }

  known(token: string): VerifiedToken | undefined {
    if (token.length > ID_TOKEN_MAX_LENGTH) return undefined;
    const verified = this.#verified.get(hash("sha256", token, "base64url"));
    const { clock } = this.#deps;
    return verified !== undefined && isFresh(verified, clock.steadyMs(), clock.wallMs())
      ? verified.token
      : undefined;
  }

  async verify(token: string, peerAddress?: string): Promise<VerifiedToken> {
    const isMock = looksLikeMockToken(token);
    // It must never reach the identity provider.
    if (isDoorSecret(token))
      throw new GroveError("TOKEN_REJECTED", "an app password is no ID token: it opens doors alone");
    if (isMock && !this.#deps.mock) refuseMockToken(this.#deps.onSecurityEvent, peerAddress);
    if (token.length > ID_TOKEN_MAX_LENGTH) {
      throw new GroveError(
        "TOKEN_REJECTED",
        `ID token refused: it has more than ${ID_TOKEN_MAX_LENGTH} characters`,
        { metadata: { limit: String(ID_TOKEN_MAX_LENGTH) } },
      );
    }
    if (!isMock) this.#requireProvider();
    // Header values and query strings allow nothing else; an ID token has dots and base64url only.
    if (!/^[\u0021-\u007e]+$/.test(token) && !isMock) {
      throw new GroveError(
        "TOKEN_REJECTED",
        "ID token refused: it is empty or holds characters that no token has",
      );
    }
    const key = hash("sha256", token, "base64url");
    const known = this.#recall(key);
    if (known !== undefined) return known;
    if (isMock) return this.#verifyAndRemember(key, async () => this.#verifyMock(token));
    const pending = this.#underWay.get(key);
    if (pending !== undefined) return pending;
    const { clock, issuer } = this.#deps;
    checkOwnWords(token, { clientId: this.#clientId, issuer, nowWallMs: clock.wallMs() });
    const verification = this.#budget
      .run(peerAddress ?? "", () => this.#verifyAndRemember(key, () => this.#verifyReal(token)))
      .finally(() => this.#underWay.delete(key));
    this.#underWay.set(key, verification);
    return verification;
  }

  /** Without a client id nothing can be verified, so no request is sent (spec 5.2.2). */
  #requireProvider(): ProviderCheck {
    if (!HAS_IDP_AUTH)
      throw new GroveError("TOKEN_REJECTED", `${NO_IDP_AUTH_TEXT}: it takes mock tokens only`);
    if (this.#deps.useIdpAuth === false) {
      throw new GroveError(
        "TOKEN_REJECTED",
        "this server runs without an identity provider and takes mock tokens only",
      );
    }
    if (this.#clientId === undefined) {
      throw new GroveError(
        "CLIENT_ID_UNSET",
        "sign-in is not set up on this server: IDP_CLIENT_ID is not set",
      );
    }
    if (this.#provider === undefined) {
      throw new GroveError(
        "IDP_UNAVAILABLE",
        "the identity provider is not set up on this server: neither IDP_ISSUER nor IDP_TOKENINFO_URL is set",
      );
    }
    return this.#provider;
  }

  #recall(key: string): VerifiedToken | undefined {
    const nowMs = this.#deps.clock.steadyMs();
    const refused = this.#refused.get(key);
    if (refused !== undefined) {
      const { message, metadata, untilMs } = refused;
      if (nowMs < untilMs) throw new GroveError("TOKEN_REJECTED", message, { metadata });
      this.#refused.delete(key);
    }
    const verified = this.#verified.get(key);
    if (verified === undefined) return undefined;
    if (isFresh(verified, nowMs, this.#deps.clock.wallMs())) return verified.token;
    this.#verified.delete(key);
    return undefined;
  }

  async #verifyAndRemember(key: string, verify: () => Promise<VerifiedToken>): Promise<VerifiedToken> {
    try {
      const verified = await verify();
      const lifeMs = Math.min(verified.expiresAtWallMs - this.#deps.clock.wallMs(), TOKEN_CACHE_CAP_MS);
      if (lifeMs > 0) {
        this.#makeRoom();
        this.#verified.set(key, { token: verified, untilMs: this.#deps.clock.steadyMs() + lifeMs });
      }
      return verified;
    } catch (error) {
      // Verdicts are cached, outages never are (C-10); an unknown key is a fact about the issuer's keys, not
      // the token.
      if (isGroveError(error, "TOKEN_REJECTED") && !isUnknownKey(error)) this.#rememberRefusal(key, error);
      throw error;
    }
  }

  #rememberRefusal(key: string, { message, metadata }: GroveError): void {
    const nowMs = this.#deps.clock.steadyMs();
    for (const [oldest, { untilMs }] of this.#refused) {
      if (nowMs < untilMs && this.#refused.size < TOKEN_CACHE_ENTRIES) break;
      this.#refused.delete(oldest);
    }
    this.#refused.set(key, { message, metadata, untilMs: nowMs + TOKEN_NEGATIVE_CACHE_MS });
  }

  #verifyMock(token: string): VerifiedToken {
    const nowWallMs = this.#deps.clock.wallMs();
    const claims = mockClaims(token, { clientId: this.#clientId, nowWallMs });
    const { allowAudienceList, groupsClaim } = this.#deps;
    const expected = { clientId: this.#clientId, issuer: undefined, allowAudienceList, nowWallMs };
    return checkClaims(claims, { ...expected, groupsClaim });
  }

  async #verifyReal(token: string): Promise<VerifiedToken> {
    const { claims, issuer } = await this.#requireProvider()(token);
    return checkClaims(claims, {
      clientId: this.#clientId,
      issuer,
      hostedDomain: this.#deps.hostedDomain,
      allowAudienceList: this.#deps.allowAudienceList,
      groupsClaim: this.#deps.groupsClaim,
      nowWallMs: this.#deps.clock.wallMs(),
    });
  }

  /** Expired entries go first (spec 5.2.4); only then does the cache drop the least recently used. */
  #makeRoom(): void {
    const nowMs = this.#deps.clock.steadyMs();
    if (this.#verified.size < TOKEN_CACHE_ENTRIES || nowMs - this.#purgedAtMs < PURGE_EVERY_MS) return;
    this.#purgedAtMs = nowMs;
    const wallMs = this.#deps.clock.wallMs();
    for (const [key, entry] of this.#verified.entries()) {
      if (!isFresh(entry, nowMs, wallMs)) this.#verified.delete(key);
    }
  }
}

/**
 * The cache's limit is on the steady clock, the token's end on the wall clock: the earlier one counts (C-01).
 */
function isFresh(entry: CachedToken, nowMs: number, wallMs: number): boolean {
  return nowMs < entry.untilMs && wallMs < entry.token.expiresAtWallMs;
}
