// The environment variables of sign-in and administration, read once (spec 5.9, decisions D21, D23, D24).
import { HAS_IDP_AUTH, NO_IDP_AUTH_TEXT } from "#base/build-flags.ts";
import { GroveError } from "#base/errors.ts";
import { canonicalUsername } from "#base/names.ts";

/** Loopback port that waits for the identity provider's redirect (spec 5.1). */
const LOGIN_CALLBACK_PORT = 38_485;

/** Default address of the identity provider's redirect (spec 5.1). */
export const DEFAULT_REDIRECT_URI: string = `http://localhost:${LOGIN_CALLBACK_PORT}/logincallback`;

/** All settings in parsed form. Unset and empty are both undefined. */
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
  /** USE_IDP_AUTH: false only for `0`, or in a program that was built without it (decision D24). */
  readonly useIdpAuth: boolean;
  /** IDP_ISSUER. */
  readonly issuer: string | undefined;
  /** IDP_HOSTED_DOMAIN, lower-cased: organisation that the claim `hd` must name (decision D21). */
  readonly hostedDomain: string | undefined;
  /** IDP_ALLOW_AUD_LIST: `true` and `1` accept a token whose `aud` is a list of one (spec 5.2.2). */
  readonly allowAudienceList: boolean;
  /** IDP_AUTH_URL. */
  readonly authUrl: string | undefined;
  /** IDP_TOKEN_URL. */
  readonly tokenUrl: string | undefined;
  /** IDP_TOKENINFO_URL. */
  readonly tokeninfoUrl: string | undefined;
  /** Warnings for the log about values without their apparent effect. */
  readonly warnings: readonly string[];
}

/** An environment, or a file parsed into one. */
export type Environment = Readonly<Record<string, string | undefined>>;

/** Reads the variables. Throws BAD_ARGUMENT with the name of a wrong variable, never its value. */
export function readIdentitySettings(env: Environment): IdentitySettings {
  const warnings: string[] = [];
  const settings = {
    clientId: plainText(env, "IDP_CLIENT_ID"),
    clientSecret: setting(env, "IDP_CLIENT_SECRET"),
    redirectUri: url(env, "IDP_REDIRECT_URI", warnings) ?? DEFAULT_REDIRECT_URI,
    mock: switchOf(env, "SVC_AUTH_MOCK", warnings),
    adminEmail: adminEmail(env),
    adminPasswordHash: setting(env, "ADMIN_PASSWORD_HASH"),
    adminPassword: setting(env, "ADMIN_PASSWORD"),
    useIdpAuth: HAS_IDP_AUTH && env["USE_IDP_AUTH"] !== "0",
    issuer: url(env, "IDP_ISSUER", warnings),
    hostedDomain: plainText(env, "IDP_HOSTED_DOMAIN")?.toLowerCase(),
    allowAudienceList: switchOf(env, "IDP_ALLOW_AUD_LIST", warnings),
    authUrl: url(env, "IDP_AUTH_URL", warnings),
    tokenUrl: url(env, "IDP_TOKEN_URL", warnings),
    tokeninfoUrl: url(env, "IDP_TOKENINFO_URL", warnings),
  };
  if (settings.useIdpAuth && settings.clientId !== undefined) {
    if (settings.issuer === undefined && settings.tokeninfoUrl === undefined) {
      warnings.push("IDP_CLIENT_ID is set, but neither IDP_ISSUER nor IDP_TOKENINFO_URL: nobody can sign in");
    }
  } else if (settings.useIdpAuth && !settings.mock) {
    warnings.push("IDP_CLIENT_ID is not set: nobody can sign in");
  }
  return { ...settings, warnings };
}

/**
 * Throws BAD_ARGUMENT when a server may not start with these: without USE_IDP_AUTH only mock mode allows
 * sign-in (D24).
 */
export function requireServable(settings: IdentitySettings): void {
  if (settings.useIdpAuth || settings.mock) return;
  throw new GroveError(
    "BAD_ARGUMENT",
    `${HAS_IDP_AUTH ? "USE_IDP_AUTH=0 leaves sign-in with an identity provider out" : NO_IDP_AUTH_TEXT}: such a server starts only with SVC_AUTH_MOCK=1`,
  );
}

function setting(env: Environment, name: string): string | undefined {
  const value = env[name];
  return value === undefined || value === "" ? undefined : value;
}

/** A value for exact comparison: a trailing blank would cause an outage that is hard to see. */
function plainText(env: Environment, name: string): string | undefined {
  const value = setting(env, name);
  if (value === undefined || /^[\u0021-\u007e]+$/.test(value)) return value;
  throw new GroveError("BAD_ARGUMENT", `${name} holds blanks or characters that no such value has`);
}

/** Off unless it is exactly `true` or `1` (C-06). */
function switchOf(
  env: Environment,
  name: "IDP_ALLOW_AUD_LIST" | "SVC_AUTH_MOCK",
  warnings: string[],
): boolean {
  const value = setting(env, name);
  if (value === "true" || value === "1") return true;
  if (value !== undefined && value !== "false" && value !== "0") {
    const what = name === "SVC_AUTH_MOCK" ? "mock mode stays off" : "a list as aud stays refused";
    warnings.push(`${name} has a value other than true, 1, false and 0: ${what}`);
  }
  return false;
}

function adminEmail(env: Environment): string | undefined {
  const value = setting(env, "SVC_ADMIN_EMAIL");
  if (value === undefined) return undefined;
  try {
    return canonicalUsername(value.trim());
  } catch (cause) {
    throw new GroveError("BAD_ARGUMENT", "SVC_ADMIN_EMAIL is not an e-mail address", { cause });
  }
}

function url(env: Environment, name: string, warnings: string[]): string | undefined {
  const value = setting(env, name)?.trim();
  if (value === undefined) return undefined;
  const parsed = URL.parse(value);
  if (parsed === null || !/^https?:$/.test(parsed.protocol)) {
    throw new GroveError("BAD_ARGUMENT", `${name} is not an http or https address`);
  }
  if (parsed.username !== "" || parsed.password !== "") {
    throw new GroveError("BAD_ARGUMENT", `${name} must not hold a user name or password`);
  }
  if (parsed.protocol === "http:" && !/^(?:localhost|127(?:\.\d+){3}|\[::1\])$/.test(parsed.hostname)) {
    warnings.push(`${name} is not https: whoever is on the way can read and forge sign-ins`);
  }
  return value;
}
