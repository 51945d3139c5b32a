// Types for the used part of the package oidc-provider, which brings none.
import type { IncomingMessage, ServerResponse } from "node:http";
// @ts-expect-error -- no types in the package; what we use is stated below
import { Provider as UntypedProvider } from "oidc-provider";

/** A step of the sign-in: first the user's identity, then the client's consent. */
export interface Interaction {
  readonly uid: string;
  readonly prompt: {
    readonly name: string;
    readonly details: {
      readonly missingOIDCScope?: readonly string[];
      readonly missingOIDCClaims?: readonly string[];
    };
  };
  readonly params: { readonly client_id: string; readonly scope?: string };
  readonly session?: { readonly accountId: string };
  readonly grantId?: string;
}

/** The result of an interaction. */
export interface InteractionResult {
  readonly login?: { readonly accountId: string };
  readonly consent?: { readonly grantId: string };
  readonly error?: string;
  readonly error_description?: string;
}

/** A user's grants to a client. */
export interface Grant {
  addOIDCScope(scope: string): void;
  addOIDCClaims(claims: readonly string[]): void;
  save(): Promise<string>;
}

/** The provider's store between requests. */
export interface ProviderAdapter {
  upsert(id: string, payload: StoredPayload, expiresInSeconds: number): Promise<void>;
  find(id: string): Promise<StoredPayload | undefined>;
  findByUid(uid: string): Promise<StoredPayload | undefined>;
  findByUserCode(userCode: string): Promise<StoredPayload | undefined>;
  consume(id: string): Promise<void>;
  destroy(id: string): Promise<void>;
  revokeByGrantId(grantId: string): Promise<void>;
}

/** A record of the provider. */
export interface StoredPayload {
  readonly uid?: string;
  readonly userCode?: string;
  readonly grantId?: string;
  consumed?: number;
  [field: string]: unknown;
}

/** The provider itself. */
export interface ProviderLibrary {
  callback(): (request: IncomingMessage, response: ServerResponse) => Promise<void>;
  interactionDetails(request: IncomingMessage, response: ServerResponse): Promise<Interaction>;
  interactionFinished(
    request: IncomingMessage,
    response: ServerResponse,
    result: InteractionResult,
    options?: { readonly mergeWithLastSubmission: boolean },
  ): Promise<void>;
  readonly Grant: {
    new (of: { readonly accountId: string; readonly clientId: string }): Grant;
    find(grantId: string): Promise<Grant | undefined>;
  };
  on(event: string, listener: (...values: readonly unknown[]) => void): void;
}

/** Makes a provider; the settings are those of the package's documentation. */
export const createProvider = (
  issuer: string,
  settings: Readonly<Record<string, unknown>>,
): ProviderLibrary =>
  new (UntypedProvider as new (issuer: string, settings: unknown) => ProviderLibrary)(issuer, settings);
