// The operator's password as the console holds it: read at the start, read again on request; a changed one ends every session (W-04).
import { GroveError } from "#base/errors.ts";
import { readPrivateFile } from "#os/private-file.ts";
import {
  type AdminPassword,
  type AdminPasswordSettings,
  adminPasswordHash,
  createAdminPassword,
} from "#security/identity/admin-password.ts";

/** Where the password is configured: the environment, or the first line of a file that is the owner's alone. */
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

  /** Reads it. Throws BAD_ARGUMENT when it is of no known form, or when others may read the file. */
  static async open(source: PasswordSource): Promise<OperatorPassword> {
    return new OperatorPassword(source, await readSettings(source));
  }

  /** True while the built-in default is in force (T10). */
  get isDefault(): boolean {
    return this.#password.isDefault;
  }

  /** What is configured, as it stands there and in the form that is as good as the password; nothing while the default is in force. */
  get secrets(): readonly string[] {
    const { ADMIN_PASSWORD_HASH: hash = "", ADMIN_PASSWORD: password = "" } = this.#settings;
    return [hash.trim(), ...(password === "" ? [] : [password, adminPasswordHash(password)])].filter(
      (secret) => secret !== "",
    );
  }

  /** SHA-256 hex of the password, for SetQuota by operators who did not type it; empty where only an Argon2 string is configured. */
  get nodeHash(): string {
    const { ADMIN_PASSWORD_HASH: hash = "", ADMIN_PASSWORD: password = "" } = this.#settings;
    if (hash.trim() === "") return this.isDefault ? "" : adminPasswordHash(password);
    return hash.trim().startsWith("$") ? "" : hash.trim().toLowerCase();
  }

  /** True when this is the SHA-256 (hex) of the password. Throws RATE_LIMITED when too many Argon2 verifications wait. */
  async matches(passwordHash: string): Promise<boolean> {
    const password = this.#password;
    const isRight = await password.verifyHashHeader(passwordHash);
    // What was changed meanwhile counts as it is now.
    return password === this.#password ? isRight : this.matches(passwordHash);
  }

  /** Reads the file again; true when the password is another one now. What cannot be read changes nothing and is thrown. */
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
  // An empty file must not bring the built-in default back.
  if (line !== "") return { ADMIN_PASSWORD_HASH: line };
  throw new GroveError(
    "BAD_ARGUMENT",
    `${file} ${text === undefined ? "is not there" : "has no hash in its first line"}: write what 'grove admin hash-password' prints`,
  );
}
