// The administrator's password as this node was started with it (T9, T10).
import type { Logger } from "#base/log.ts";
import { type AdminPassword, createAdminPassword } from "#security/identity/admin-password.ts";
import type { IdentitySettings } from "#security/identity/sign-in-variables.ts";

/** The settings that decide over it. */
export interface NodePasswordSettings {
  /** False switches the path off. */
  readonly passwordPath: boolean;
  readonly identity: Pick<IdentitySettings, "adminPasswordHash" | "adminPassword">;
}

/** The configured password, or none with the path off (T9); the built-in default is always logged (T10). */
export function adminPasswordOf(
  { passwordPath, identity }: NodePasswordSettings,
  log: Logger,
): AdminPassword | undefined {
  if (!passwordPath) return undefined;
  const password = createAdminPassword({
    ADMIN_PASSWORD_HASH: identity.adminPasswordHash,
    ADMIN_PASSWORD: identity.adminPassword,
  });
  if (password.isDefault) {
    log.warn("default_password", {
      warning:
        "the administrator's password is the built-in default and counts from this machine only: set ADMIN_PASSWORD_HASH",
    });
  }
  return password;
}
