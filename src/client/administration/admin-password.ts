// Asks for the administrator's password unseen and sends its hash, over TLS or loopback only (spec 5.5).
import { hash } from "node:crypto";
import type { ClientContext } from "#client/connection/client-context.ts";
import type { Profile } from "#client/signin/profile.ts";
import { isLoopback, isPlain } from "#client/signin/server-address.ts";
import { ClientError } from "#client/terminal/client-error.ts";
import { askSecret } from "#client/terminal/prompt.ts";

/** Flags that select the password instead of the user's identity. */
export interface AdminPasswordFlags {
  readonly adminPassword?: boolean;
  readonly adminPasswordStdin?: boolean;
}

/** True when the password is to be used. */
export function isByPassword({ adminPassword, adminPasswordStdin }: AdminPasswordFlags): boolean {
  return adminPassword === true || adminPasswordStdin === true;
}

/** Asks for the password without showing it; resolves with its hash. */
export async function askPasswordHash({
  terminal,
  signal,
}: Pick<ClientContext, "signal" | "terminal">): Promise<string> {
  return hash("sha256", await askSecret(terminal, "Administrator's password: ", signal), "hex");
}

/** The metadata of a call by password. */
export function passwordMetadata(passwordHash: string): Record<string, string> {
  return { "x-admin-password-hash": passwordHash };
}

/** Throws USAGE on a readable network: the hash is as good as the password (decision T9). */
export function requireSafeForPassword(profile: Pick<Profile, "ca" | "mock">, address: string): void {
  if (!isPlain(profile) || isLoopback(address)) return;
  throw new ClientError(
    "USAGE",
    `the password is not sent to ${address}, since the connection is not encrypted`,
  );
}
