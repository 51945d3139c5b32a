// The environment variables of sign-in and administration, read once with clear errors (spec 5.9, decisions D21, D23, D24).
import { GroveError } from "#base/errors.ts";

/** Where the identity provider redirects to unless told otherwise (spec 5.1). */
export const DEFAULT_REDIRECT_URI = "http://localhost:38485/logincallback";

/** All of them, as their readers want them. Unset and empty are both undefined. */
export interface IdentitySettings {
  /** IDP_CLIENT_ID: expected `aud`. */
  readonly clientId: string | undefined;
  /** IDP_CLIENT_SECRET. */
  readonly clientSecret: string | undefined;
  /** IDP_REDIRECT_URI. */
  readonly redirectUri: string;
  /** SVC_AUTH_MOCK: only `true` and `1` switch it on (C-06). */
  readonly mock: boolean;
  /** SVC_ADMIN_EMAIL in canonical form. */
  readonly adminEmail: string | undefined;
  /** ADMIN_PASSWORD_HASH. */
  readonly adminPasswordHash: string | undefined;
  /** ADMIN_PASSWORD. */
  readonly adminPassword: string | undefined;
  /** USE_IDP_AUTH: false only for `0` (decision D24). */
  readonly useIdpAuth: boolean;
  /** IDP_ISSUER. */
  readonly issuer: string | undefined;
  /** IDP_AUTH_URL. */
  readonly authUrl: string | undefined;
  /** IDP_TOKEN_URL. */
  readonly tokenUrl: string | undefined;
  /** IDP_TOKENINFO_URL. */
  readonly tokeninfoUrl: string | undefined;
  /** Sentences for the log about values that do not do what they seem to. */
  readonly warnings: readonly string[];
}

/** Reads the variables from an environment. Throws BAD_ARGUMENT naming the variable that is wrong, never its value. */
export function readIdentitySettings(env: Readonly<Record<string, string | undefined>>): IdentitySettings {
  void env;
  throw new GroveError("NOT_IMPLEMENTED", "being built");
}

/** Throws BAD_ARGUMENT when a server may not start with these: without USE_IDP_AUTH only mock mode can sign anybody in (D24). */
export function requireServable(settings: IdentitySettings): void {
  void settings;
}
