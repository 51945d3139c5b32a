// The administrator's password as it is configured: a SHA-256, an Argon2 string over one, or the built-in default (spec 5.5, 5.8).
import { GroveError } from "#base/errors.ts";

/** The settings that the password may come from (spec 5.9). */
export interface AdminPasswordSettings {
  /** 64 hex characters, or `$argon2id$…` computed over the lower-case SHA-256 hex of the password (decision T11). */
  readonly ADMIN_PASSWORD_HASH?: string | undefined;
  /** The password itself; used when there is no hash. */
  readonly ADMIN_PASSWORD?: string | undefined;
}

/** Checks what a caller claims is the administrator's password. */
export interface AdminPassword {
  /**
   * True when the value of `x-admin-password-hash` (SHA-256 of the password, 64 hex characters, any case) is the right one; compared
   * in constant time. Throws RATE_LIMITED when too many Argon2 verifications wait.
   */
  verifyHashHeader(candidateHash: string): Promise<boolean> | boolean;
  /** True while the built-in default is in force; then only loopback peers may use the password path (decision T10). */
  readonly isDefault: boolean;
}

/** Reads the configured password. Throws BAD_ARGUMENT when ADMIN_PASSWORD_HASH is of neither form. */
export function createAdminPassword(settings: AdminPasswordSettings): AdminPassword {
  void settings;
  throw new GroveError("NOT_IMPLEMENTED", "being built");
}
