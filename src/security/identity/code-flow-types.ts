// What a sign-in by a browser at the identity provider is made from, and what it keeps between its two steps.
import type { Clock } from "#base/clock.ts";
import type { Random } from "#base/random.ts";
import type { Fetch } from "#os/authority-fetch.ts";

/** What a flow is made from. */
export interface CodeFlowDeps {
  readonly issuer: string;
  readonly clientId: string;
  readonly clientSecret: string | undefined;
  /** Where the provider sends the browser back to. */
  readonly redirectUri: string;
  readonly clock: Clock;
  readonly random: Random;
  readonly fetch: Fetch;
}

/** What the browser that began keeps, so that no other one can end it. */
export interface FlowSecrets {
  readonly state: string;
  readonly nonce: string;
  readonly verifier: string;
}

/** The two steps of a sign-in. */
export interface CodeFlow {
  /** The address to send the browser to. Throws IDP_UNAVAILABLE. */
  begin(): Promise<{ readonly url: string; readonly secrets: FlowSecrets }>;
  /** The ID token for the address that the browser came back to, not verified yet; undefined when nobody was signed in. Throws IDP_UNAVAILABLE. */
  finish(callback: URL, secrets: FlowSecrets): Promise<string | undefined>;
}
