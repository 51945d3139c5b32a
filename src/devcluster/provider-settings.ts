// The settings file of the demonstration's identity provider: its port, keys and users.
import { createHash, generateKeyPair, randomBytes } from "node:crypto";
import { promisify } from "node:util";
import { z } from "zod";
import { GroveError } from "#base/errors.ts";
import { readPrivateFile } from "#os/private-file.ts";

/** A user who can sign in at the demonstration's provider. */
export interface DemoUser {
  readonly email: string;
  readonly name: string;
  readonly password: string;
}

/** The contents of the file; mode 0600, since it holds passwords and keys. */
export interface ProviderSettings {
  readonly port: number;
  readonly clientId: string;
  readonly redirectUris: readonly string[];
  /** The door's own client, whose tokens FileServers refuse. */
  readonly door?: { readonly clientId: string; readonly redirectUris: readonly string[] } | undefined;
  /** Private key that signs ID tokens, as a JWK. */
  readonly signingKey: Readonly<Record<string, unknown>>;
  /** Signs the provider's cookies. */
  readonly cookieKey: string;
  readonly users: readonly DemoUser[];
}

const settingsSchema: z.ZodType<ProviderSettings> = z.object({
  port: z.int().min(1).max(65_535),
  clientId: z.string().min(1),
  redirectUris: z.array(z.url()).min(1),
  door: z.object({ clientId: z.string().min(1), redirectUris: z.array(z.url()).min(1) }).optional(),
  signingKey: z.record(z.string(), z.unknown()),
  cookieKey: z.string().min(32),
  users: z.array(z.object({ email: z.email(), name: z.string().min(1), password: z.string().min(8) })).min(1),
});

/** The key that signs ID tokens, and the one that signs cookies. */
export type ProviderKeys = Pick<ProviderSettings, "signingKey" | "cookieKey">;

/** Address of the provider, also its issuer: plain HTTP that never leaves this machine. */
export const issuerOf = (port: number): string => `http://127.0.0.1:${port}`;

/** Makes new keys: RSA, because every client supports RS256. */
export async function makeProviderKeys(): Promise<ProviderKeys> {
  const { privateKey } = await promisify(generateKeyPair)("rsa", { modulusLength: 2_048 });
  const jwk = privateKey.export({ format: "jwk" });
  const kid = randomBytes(8).toString("hex");
  return {
    signingKey: { ...jwk, kid, alg: "RS256", use: "sig" },
    cookieKey: randomBytes(32).toString("base64url"),
  };
}

/** Reads and checks the file. Throws BAD_ARGUMENT if it is missing, invalid or readable by others. */
export async function readProviderSettings(path: string): Promise<ProviderSettings> {
  const text = await readPrivateFile(path);
  if (text === undefined) throw new GroveError("BAD_ARGUMENT", `${path} is missing`);
  const parsed = settingsSchema.safeParse(JSON.parse(text));
  if (parsed.success) return parsed.data;
  const where = parsed.error.issues[0]?.path.join(".") ?? "";
  throw new GroveError("BAD_ARGUMENT", `${path} is not as it should be, at "${where}"`);
}

/**
 * The subject of a user. It is not the address, which another user can get later; a subject is never reused.
 */
export function subjectOf(email: string): string {
  return createHash("sha256").update(`demo user ${email}`).digest("hex").slice(0, 24);
}
