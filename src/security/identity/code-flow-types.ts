// Dependencies of a browser's sign-in at the identity provider, and its state between the two steps.
import type { Clock } from "#base/clock.ts";
import type { Random } from "#base/random.ts";
import type { Fetch } from "#os/authority-fetch.ts";

/** Dependencies of a flow. */
export interface CodeFlowDeps {
  readonly issuer: string;
  readonly clientId: string;
  readonly clientSecret: string | undefined;
  /** Address to which the provider redirects the browser. */
  readonly redirectUri: string;
  /** Seconds since the person last proved themselves to the provider, at most; else it asks anew. */
  readonly maxAgeSeconds?: number;
  readonly clock: Clock;
  readonly random: Random;
  readonly fetch: Fetch;
}

/** Secrets that bind the second step to the browser that began. */
export interface FlowSecrets {
  readonly state: string;
  readonly nonce: string;
  readonly verifier: string;
}

/** The two steps of a sign-in. */
export interface CodeFlow {
  /** Returns the provider's address for the browser. Throws IDP_UNAVAILABLE. */
  begin(): Promise<{ readonly url: string; readonly secrets: FlowSecrets }>;
  /**
   * Returns the unverified ID token for the address that the browser came back to; undefined without a
   * sign-in. Throws IDP_UNAVAILABLE.
   */
  finish(callback: URL, secrets: FlowSecrets): Promise<string | undefined>;
}
