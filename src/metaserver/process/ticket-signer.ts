// The key with which a MetaServer signs tickets: made by itself, in its data folder alone.
import { createPrivateKey, createPublicKey, generateKeyPairSync, type KeyObject } from "node:crypto";
import { join } from "node:path";
import { z } from "zod";
import type { Clock } from "#base/clock.ts";
import { DAY_MS } from "#base/duration.ts";
import type { Random } from "#base/random.ts";
import { removeLeftovers } from "#os/atomic-file.ts";
import { readPrivateFile, writePrivateFile } from "#os/private-file.ts";
import { requireKnownSchema } from "#os/state-file.ts";
import { signTicket, type Ticket } from "#security/tickets/ticket.ts";

/** Life of a key; the one before is told to FileServers until the next one is made. */
export const TICKET_KEY_LIFE_MS: number = 30 * DAY_MS;

const FILE = "ticket_keys.json";
/** Private keys: the one that signs, and the one before. */
const KEYS_KEPT = 2;

const shape = z.strictObject({
  schema: z.literal(1),
  keys: z
    .array(z.strictObject({ id: z.string(), made_ms: z.number(), private_pem: z.string() }))
    .max(KEYS_KEPT),
});

interface SigningKey {
  readonly id: string;
  readonly madeMs: number;
  readonly privateKey: KeyObject;
}

/** A public key, as FileServers get it. */
export interface PublicTicketKey {
  readonly id: string;
  /** SPKI in DER. */
  readonly publicKey: Uint8Array;
}

/** Signs tickets. */
export interface TicketSigner {
  sign(ticket: Ticket): Promise<string>;
  /** At most two. */
  publicKeys(): PublicTicketKey[];
}

/** Opens the keys in a folder, or makes the first. A damaged file is replaced: tickets live for minutes. */
export async function openTicketSigner(
  folder: string,
  deps: { readonly clock: Pick<Clock, "wallMs">; readonly random: Random },
): Promise<TicketSigner> {
  const path = join(folder, FILE);
  await removeLeftovers(path);
  let keys = readKeys(await readPrivateFile(path));
  let making: Promise<SigningKey> | undefined;

  const make = async (): Promise<SigningKey> => {
    const { privateKey } = generateKeyPairSync("ed25519");
    const key = { id: deps.random.bytes(8).toString("hex"), madeMs: deps.clock.wallMs(), privateKey };
    const kept = [key, ...keys].slice(0, KEYS_KEPT);
    await writePrivateFile(path, textOf(kept));
    keys = kept;
    return key;
  };
  const current = async (): Promise<SigningKey> => {
    const [newest] = keys;
    const ageMs = newest === undefined ? Number.NaN : deps.clock.wallMs() - newest.madeMs;
    if (newest !== undefined && Math.abs(ageMs) < TICKET_KEY_LIFE_MS) return newest;
    making ??= make()
      .catch((error: unknown) => {
        // On a full disk the old key goes on, for doors and for a start.
        if (newest === undefined) throw error;
        return newest;
      })
      .finally(() => {
        making = undefined;
      });
    return making;
  };
  await current();
  return {
    sign: async (ticket) => signTicket(ticket, await current()),
    publicKeys: () =>
      keys.map(({ id, privateKey }) => ({
        id,
        publicKey: createPublicKey(privateKey).export({ type: "spki", format: "der" }),
      })),
  };
}

function readKeys(text: string | undefined): SigningKey[] {
  if (text === undefined) return [];
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    return [];
  }
  requireKnownSchema(FILE, (value as { schema?: unknown } | null)?.schema);
  const read = shape.safeParse(value);
  if (!read.success) return [];
  return read.data.keys.flatMap(({ id, made_ms: madeMs, private_pem }) => {
    try {
      return [{ id, madeMs, privateKey: createPrivateKey(private_pem) }];
    } catch {
      return [];
    }
  });
}

function textOf(keys: readonly SigningKey[]): string {
  const stored = keys.map(({ id, madeMs, privateKey }) => ({
    id,
    made_ms: madeMs,
    private_pem: privateKey.export({ type: "pkcs8", format: "pem" }),
  }));
  return `${JSON.stringify({ schema: 1, keys: stored })}\n`;
}
