// The administrators of a MetaServer: by its own password, or by SVC_ADMIN_EMAIL's ID token (spec 5.5, T9).
import type { Clock } from "#base/clock.ts";
import { GroveError } from "#base/errors.ts";
import { ADMIN_HASH_FAILURE_WINDOW_MS, ADMIN_HASH_FAILURES_PER_WINDOW } from "#base/limits.ts";
import { SlidingWindow } from "#base/sliding-window.ts";
import { createAdminPassword } from "#security/identity/admin-password.ts";
import { PasswordPath, type PasswordPathDeps } from "#security/identity/password-path.ts";
import type { IdentitySettings } from "#security/identity/sign-in-variables.ts";
import type { TokenVerifier } from "#security/identity/token-verifier.ts";
import type { CallContext } from "#wire/grpc/handler.ts";
import { admitPerson, type PersonEntryDeps } from "./subject-gate.ts";

/** Metadata that carries the administrator's password hash (spec 4.3, 5.5). */
const PASSWORD_HASH_HEADER = "x-admin-password-hash";
const BEARER = /^bearer +(\S+)$/i;

/** The ways to prove administrator rights. */
export interface Administrators {
  /** Undefined unless this MetaServer has a password: the built-in default opens nothing here. */
  readonly passwordPath: PasswordPath | undefined;
  readonly adminUsername: string | undefined;
}

/** Dependencies of the rule. */
export interface AdministratorDeps extends PersonEntryDeps {
  /** Undefined: there are none. */
  readonly administrators?: Administrators | undefined;
  readonly tokenVerifier: TokenVerifier;
}

/** The name under which an administrator acts. Throws NOT_ADMIN, and why a presented ID token is invalid. */
export async function requireAdministrator(
  { metadata, peer }: Pick<CallContext, "metadata" | "peer">,
  deps: AdministratorDeps,
): Promise<string> {
  const { tokenVerifier } = deps;
  const { passwordPath, adminUsername } = deps.administrators ?? {};
  const verdict = await passwordPath?.judge(metadata.get(PASSWORD_HASH_HEADER), peer);
  if (verdict?.isRight === true) return "administrator";
  const token = BEARER.exec(metadata.get("authorization") ?? "")?.[1];
  if (token !== undefined && adminUsername !== undefined) {
    const verified = await tokenVerifier.verify(token, peer.address);
    const { username } = verified.identity;
    if (username === adminUsername) {
      await admitPerson(verified, deps);
      return username;
    }
  }
  const isUnset = passwordPath === undefined && adminUsername === undefined;
  const reason =
    verdict?.obstacle ??
    (isUnset
      ? "this metaserver knows none: set ADMIN_PASSWORD_HASH or SVC_ADMIN_EMAIL for it too"
      : undefined);
  throw new GroveError(
    "NOT_ADMIN",
    `permission denied: only cluster administrators can do that${reason === undefined ? "" : `; ${reason}`}`,
  );
}

/** The administrators by a MetaServer's settings. Throws BAD_ARGUMENT for an invalid hash. */
export function administratorsOf(
  settings: Pick<IdentitySettings, "adminEmail" | "adminPassword" | "adminPasswordHash">,
  { clock, ...world }: Pick<PasswordPathDeps, "log" | "onSecurityEvent"> & { readonly clock: Clock },
): Administrators {
  const { adminEmail, adminPassword, adminPasswordHash } = settings;
  const isSet = adminPasswordHash !== undefined || adminPassword !== undefined;
  const passwordFailures = new SlidingWindow(clock, {
    count: ADMIN_HASH_FAILURES_PER_WINDOW,
    windowMs: ADMIN_HASH_FAILURE_WINDOW_MS,
  });
  const password = createAdminPassword({
    ADMIN_PASSWORD_HASH: adminPasswordHash,
    ADMIN_PASSWORD: adminPassword,
  });
  return {
    adminUsername: adminEmail,
    passwordPath: isSet
      ? new PasswordPath({ adminPassword: password, passwordFailures, ...world })
      : undefined,
  };
}
