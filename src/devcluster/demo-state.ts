// The demonstration's stored state between starts: passwords, keys and ports.
import { createHash, randomInt } from "node:crypto";
import { join } from "node:path";
import { z } from "zod";
import { GroveError } from "#base/errors.ts";
import { readPrivateFile, writePrivateFile } from "#os/private-file.ts";
import { type DemoUser, makeProviderKeys, type ProviderKeys } from "./provider-settings.ts";

/** The ports of a run. */
export interface DemoPorts {
  readonly idp: number;
  readonly metaserver: number;
  /** Undefined in the state of an earlier Grove. */
  readonly console?: number | undefined;
  /** Undefined in the state of an earlier Grove. */
  readonly door?: number | undefined;
  /** gRPC ports of the FileServers, in order. */
  readonly nodes: readonly number[];
}

/** The file's contents; mode 0600. */
export interface DemoState {
  readonly schema: 1;
  readonly adminPassword: string;
  readonly metricsToken: string;
  readonly users: readonly DemoUser[];
  readonly keys: ProviderKeys;
  /** Undefined before the first start. */
  readonly ports?: DemoPorts | undefined;
}

/** The user who may set quotas (SVC_ADMIN_EMAIL, spec 5.5). */
export const ADMIN_EMAIL = "admin@example.com";

const FILE = "demo-state.json";
const PORT = z.int().min(1).max(65_535);
const stateSchema: z.ZodType<DemoState> = z.object({
  schema: z.literal(1),
  adminPassword: z.string().min(8),
  metricsToken: z.string().min(8),
  users: z.array(z.object({ email: z.email(), name: z.string(), password: z.string().min(8) })).min(1),
  keys: z.object({ signingKey: z.record(z.string(), z.unknown()), cookieKey: z.string().min(32) }),
  ports: z
    .object({
      idp: PORT,
      metaserver: PORT,
      console: PORT.optional(),
      door: PORT.optional(),
      nodes: z.array(PORT),
    })
    .optional(),
});

/** Reads the state of a folder, or makes a new one. Throws BAD_ARGUMENT for a damaged file. */
export async function readOrMakeState(folder: string): Promise<DemoState> {
  const path = join(folder, FILE);
  const text = await readPrivateFile(path);
  if (text === undefined) return makeState();
  const parsed = stateSchema.safeParse(parsedJson(text));
  if (parsed.success) return parsed.data;
  throw new GroveError("BAD_ARGUMENT", `${path} is not as it should be; without it, new passwords are made`);
}

function parsedJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/** Keeps the state for the next start. */
export async function writeState(folder: string, state: DemoState): Promise<void> {
  await writePrivateFile(join(folder, FILE), `${JSON.stringify(state, null, 2)}\n`);
}

/** SHA-256 of the administrator's password, as FileServers are configured with it (spec 5.8). */
export function adminPasswordHash(state: DemoState): string {
  return createHash("sha256").update(state.adminPassword).digest("hex");
}

async function makeState(): Promise<DemoState> {
  const user = (email: string, name: string): DemoUser => ({ email, name, password: makePassword() });
  return {
    schema: 1,
    adminPassword: makePassword(),
    metricsToken: makePassword(5),
    users: [
      user("alice@example.com", "Alice Ash"),
      user("bob@example.com", "Bob Birch"),
      user("carol@example.com", "Carol Cedar"),
      user(ADMIN_EMAIL, "Admin"),
    ],
    keys: await makeProviderKeys(),
  };
}

/** Groups of four unambiguous characters; three groups have 58 bits. */
function makePassword(groups = 3): string {
  const alphabet = "abcdefghjkmnpqrstuvwxyz23456789";
  const group = (): string =>
    Array.from({ length: 4 }, () => alphabet.charAt(randomInt(alphabet.length))).join("");
  return Array.from({ length: groups }, group).join("-");
}
