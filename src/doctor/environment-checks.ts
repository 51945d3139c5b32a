// Checks every variable that servers read (spec 5.9), one finding each, and never shows a value.
import { HAS_IDP_AUTH, NO_IDP_AUTH_TEXT } from "#base/build-flags.ts";
import { errorText } from "#base/log.ts";
import { createAdminPassword } from "#security/identity/admin-password.ts";
import {
  type Environment,
  type IdentitySettings,
  readIdentitySettings,
} from "#security/identity/sign-in-variables.ts";
import { type Check, type Finding, failed, ok, warning } from "./finding.ts";

/** Checks the variables of an environment; it must be the one that the servers are started with. */
export function environmentCheck(env: Environment): Check {
  return { name: "environment", run: () => Promise.resolve(environmentFindings(env)) };
}

/** The finding for each variable. */
export function environmentFindings(env: Environment): Finding[] {
  const wrong = new Map<string, Finding>();
  const sound: Record<string, string | undefined> = { ...env };
  for (const name of CHECKED) {
    const problem = problemOf(name, env[name]);
    if (problem === undefined) continue;
    wrong.set(name, problem);
    delete sound[name];
  }
  const settings = readIdentitySettings(sound);
  return CHECKED.map((name) => wrong.get(name) ?? JUDGES[name](env, settings));
}

const CHECKED = [
  "IDP_CLIENT_ID",
  "IDP_CLIENT_SECRET",
  "IDP_REDIRECT_URI",
  "IDP_ISSUER",
  "IDP_TOKENINFO_URL",
  "IDP_HOSTED_DOMAIN",
  "IDP_ALLOW_AUD_LIST",
  "IDP_AUTH_URL",
  "IDP_TOKEN_URL",
  "IDP_DOOR_CLIENT_ID",
  "SVC_AUTH_MOCK",
  "SVC_ADMIN_EMAIL",
  "SVC_METRICS_TOKEN",
  "ADMIN_PASSWORD_HASH",
  "ADMIN_PASSWORD",
  "USE_IDP_AUTH",
] as const;

type Variable = (typeof CHECKED)[number];
type Judge = (env: Environment, settings: IdentitySettings) => Finding;

/** Values with which the servers would refuse to start. */
function problemOf(name: Variable, value: string | undefined): Finding | undefined {
  try {
    const others = { IDP_CLIENT_ID: "x", IDP_ISSUER: "https://x" };
    const { warnings } = readIdentitySettings(value === undefined ? others : { ...others, [name]: value });
    if (name === "ADMIN_PASSWORD_HASH") createAdminPassword({ ADMIN_PASSWORD_HASH: value });
    const [said] = warnings;
    return said === undefined ? undefined : warning(name, said, "Correct it, then restart the servers.");
  } catch (error) {
    return failed(name, errorText(error), "Correct it: the servers do not start with it.");
  }
}

const isSet = (env: Environment, name: Variable): boolean => (env[name] ?? "") !== "";

const JUDGES: Readonly<Record<Variable, Judge>> = {
  IDP_CLIENT_ID(env, { mock, useIdpAuth }) {
    if (isSet(env, "IDP_CLIENT_ID"))
      return ok("IDP_CLIENT_ID", "is set: tokens for anybody else are refused");
    if (mock || !useIdpAuth) return ok("IDP_CLIENT_ID", "is not set, and not needed for mock sign-in");
    return failed(
      "IDP_CLIENT_ID",
      "is not set, so nobody can sign in",
      "Set it to the client id that the identity provider gave you.",
    );
  },
  IDP_CLIENT_SECRET: (env) =>
    ok(
      "IDP_CLIENT_SECRET",
      isSet(env, "IDP_CLIENT_SECRET") ? "is set" : "is not set; few providers ask for it",
    ),
  IDP_REDIRECT_URI(env, { redirectUri }) {
    const { hostname, protocol, href } = new URL(redirectUri);
    if (!isSet(env, "IDP_REDIRECT_URI")) return ok("IDP_REDIRECT_URI", `is not set; ${href} is used`);
    if (protocol === "http:" && ["localhost", "127.0.0.1", "[::1]"].includes(hostname))
      return ok("IDP_REDIRECT_URI", "leads to this machine");
    return warning(
      "IDP_REDIRECT_URI",
      "does not lead to this machine: the browser's answer must be pasted",
      "Set it to an http://localhost address, or leave it out.",
    );
  },
  IDP_ISSUER(env, settings) {
    if (isSet(env, "IDP_ISSUER"))
      return ok("IDP_ISSUER", "is set: signatures of tokens are checked with its keys");
    if (settings.mock || !settings.useIdpAuth || isSet(env, "IDP_TOKENINFO_URL"))
      return ok("IDP_ISSUER", "is not set");
    return failed(
      "IDP_ISSUER",
      "is not set, and neither is IDP_TOKENINFO_URL: no token can be checked",
      "Set IDP_ISSUER to the provider's issuer.",
    );
  },
  IDP_TOKENINFO_URL: (env) =>
    ok("IDP_TOKENINFO_URL", isSet(env, "IDP_TOKENINFO_URL") ? "is set" : "is not set"),
  IDP_HOSTED_DOMAIN: (env) =>
    ok(
      "IDP_HOSTED_DOMAIN",
      isSet(env, "IDP_HOSTED_DOMAIN")
        ? "is set: accounts of other organisations are refused"
        : "is not set: any account of the provider may sign in",
    ),
  IDP_ALLOW_AUD_LIST: (_env, { allowAudienceList }) =>
    ok(
      "IDP_ALLOW_AUD_LIST",
      allowAudienceList ? "is on: a token whose aud is a list of one counts" : "is off: aud is one text",
    ),
  IDP_AUTH_URL: (env) => ok("IDP_AUTH_URL", isSet(env, "IDP_AUTH_URL") ? "is set" : "is not set"),
  IDP_TOKEN_URL: (env) => ok("IDP_TOKEN_URL", isSet(env, "IDP_TOKEN_URL") ? "is set" : "is not set"),
  IDP_DOOR_CLIENT_ID(env, { clientId }) {
    if (!isSet(env, "IDP_DOOR_CLIENT_ID"))
      return ok(
        "IDP_DOOR_CLIENT_ID",
        "is not set: doors take app passwords and links, and no browser's sign-in",
      );
    if (env["IDP_DOOR_CLIENT_ID"] === clientId)
      return failed(
        "IDP_DOOR_CLIENT_ID",
        "is IDP_CLIENT_ID, and a MetaServer does not start so",
        "Register a client of their own for doors, and set its id.",
      );
    return ok("IDP_DOOR_CLIENT_ID", "is set: browsers sign in at doors as that client");
  },
  SVC_AUTH_MOCK: (_env, { mock }) =>
    mock
      ? warning(
          "SVC_AUTH_MOCK",
          "mock sign-in is on: anybody can be anybody",
          "Take it away on machines that others can reach.",
        )
      : ok("SVC_AUTH_MOCK", "mock sign-in is off"),
  SVC_ADMIN_EMAIL: (env) =>
    ok(
      "SVC_ADMIN_EMAIL",
      isSet(env, "SVC_ADMIN_EMAIL")
        ? "is set"
        : "is not set; quotas are set with the administrator's password alone",
    ),
  SVC_METRICS_TOKEN: (env) =>
    ok(
      "SVC_METRICS_TOKEN",
      isSet(env, "SVC_METRICS_TOKEN")
        ? "is set: what /metrics tells of single users needs it"
        : "is not set: /metrics tells of single users too",
    ),
  ADMIN_PASSWORD_HASH(env) {
    const { isDefault } = createAdminPassword({
      ADMIN_PASSWORD_HASH: env["ADMIN_PASSWORD_HASH"],
      ADMIN_PASSWORD: env["ADMIN_PASSWORD"],
    });
    if (isDefault) {
      return warning(
        "ADMIN_PASSWORD_HASH",
        "the administrator's password is the built-in one, which counts only from this machine",
        "Set it to the SHA-256 of a password of your own.",
      );
    }
    return ok(
      "ADMIN_PASSWORD_HASH",
      isSet(env, "ADMIN_PASSWORD_HASH")
        ? "is set, and not the built-in one"
        : "is not set; ADMIN_PASSWORD is used",
    );
  },
  ADMIN_PASSWORD(env) {
    if (!isSet(env, "ADMIN_PASSWORD")) return ok("ADMIN_PASSWORD", "is not set");
    if (isSet(env, "ADMIN_PASSWORD_HASH"))
      return warning("ADMIN_PASSWORD", "is set beside ADMIN_PASSWORD_HASH, which counts", "Take it away.");
    return warning(
      "ADMIN_PASSWORD",
      "holds the password itself",
      "Set ADMIN_PASSWORD_HASH to its SHA-256 instead.",
    );
  },
  USE_IDP_AUTH(env, { useIdpAuth, mock }) {
    const value = env["USE_IDP_AUTH"] ?? "";
    if (!HAS_IDP_AUTH) {
      const todo = "Build it again without USE_IDP_AUTH=0 where people are to sign in.";
      return mock
        ? warning("USE_IDP_AUTH", NO_IDP_AUTH_TEXT, todo)
        : failed("USE_IDP_AUTH", NO_IDP_AUTH_TEXT, todo);
    }
    if (!["", "0", "1"].includes(value))
      return warning(
        "USE_IDP_AUTH",
        "is neither 0 nor 1 and counts as 1",
        "Set it to 0 or 1, or leave it out.",
      );
    if (useIdpAuth) return ok("USE_IDP_AUTH", "sign-in with the identity provider is on");
    if (mock)
      return warning(
        "USE_IDP_AUTH",
        "sign-in with the identity provider is left out",
        "Set it to 1 outside of trials.",
      );
    return failed(
      "USE_IDP_AUTH",
      "sign-in is left out, and the servers start without it only with SVC_AUTH_MOCK=1",
      "Set it to 1.",
    );
  },
};
