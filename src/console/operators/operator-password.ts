// The operator's password: read at the start and again on request; a changed one ends every session (W-04).
import { GroveError } from "#base/errors.ts";
import { readPrivateFile } from "#os/private-file.ts";
import {
  type AdminPassword,
  type AdminPasswordSettings,
  adminPasswordHash,
  createAdminPassword,
} from "#security/identity/admin-password.ts";

/** Source of the password: the environment, or the first line of a file that only its owner can read. */
export interface PasswordSource {
  readonly env: AdminPasswordSettings;
  readonly file: string | undefined;
}

/** The password in force. */
export class OperatorPassword {
  readonly #source: PasswordSource;
  #settings: AdminPasswordSettings;
  #password: AdminPassword;

  private constructor(source: PasswordSource, settings: AdminPasswordSettings) {
    this.#source = source;
    this.#settings = settings;
    this.#password = createAdminPassword(settings);
  }

  /** Reads it. Throws BAD_ARGUMENT for an unknown form, or a file that others may read. */
  static async open(source: PasswordSource): Promise<OperatorPassword> {
    return new OperatorPassword(source, await readSettings(source));
  }

  /** True while the built-in default is in force (T10). */
  get isDefault(): boolean {
    return this.#password.isDefault;
  }

  /** The configured text and its password-equivalent form; empty while the default is in force. */
  get secrets(): readonly string[] {
    const { ADMIN_PASSWORD_HASH: hash = "", ADMIN_PASSWORD: password = "" } = this.#settings;
    return [hash.trim(), ...(password === "" ? [] : [password, adminPasswordHash(password)])].filter(
      (secret) => secret !== "",
    );
  }

  /**
   * SHA-256 hex of the password, for SetQuota without typing it; empty where only an Argon2 string is
   * configured.
   */
  get nodeHash(): string {
    const { ADMIN_PASSWORD_HASH: hash = "", ADMIN_PASSWORD: password = "" } = this.#settings;
    if (hash.trim() === "") return this.isDefault ? "" : adminPasswordHash(password);
    return hash.trim().startsWith("$") ? "" : hash.trim().toLowerCase();
  }

  /** True for the password's SHA-256 (hex). Throws RATE_LIMITED when too many Argon2 verifications wait. */
  async matches(passwordHash: string): Promise<boolean> {
    const password = this.#password;
    const isRight = await password.verifyHashHeader(passwordHash);
    // A password that changed during the check is checked again.
    return password === this.#password ? isRight : this.matches(passwordHash);
  }

  /**
   * Reads the file again; true when the password is a different one. On an error it stays as it is, and the
   * error is thrown.
   */
  async reload(): Promise<boolean> {
    const settings = await readSettings(this.#source);
    if (JSON.stringify(settings) === JSON.stringify(this.#settings)) return false;
    this.#password = createAdminPassword(settings);
    this.#settings = settings;
    return true;
  }
}

async function readSettings({ env, file }: PasswordSource): Promise<AdminPasswordSettings> {
  if (file === undefined) return env;
  const text = await readPrivateFile(file);
  const line = text?.split("\n", 1)[0]?.trim() ?? "";
  // An empty file must not restore the built-in default.
  if (line !== "") return { ADMIN_PASSWORD_HASH: line };
  throw new GroveError(
    "BAD_ARGUMENT",
    `${file} ${text === undefined ? "is not there" : "has no hash in its first line"}: write what 'grove admin hash-password' prints`,
  );
}
