// The text of `quota_config.json`: reading and writing its two schemas (spec 2.1).
import { readFile } from "node:fs/promises";
import { GroveError } from "#base/errors.ts";
import { parse64, parseU64, stringify64 } from "#base/json64.ts";
import { IDS_PER_ROOT, USERNAME_MAX_LENGTH } from "#base/limits.ts";
import { requireKnownSchema } from "#os/state-file.ts";

/** Explicit quotas and inode limits, by username. */
export interface QuotaEntries {
  /** Bytes, 1 to 2^64 - 1. */
  readonly quotas: ReadonlyMap<string, bigint>;
  /** Files and directories, 1 to 2^32 - 1. */
  readonly inodeLimits: ReadonlyMap<string, number>;
}

/** No explicit quotas or limits. */
export const NO_ENTRIES: QuotaEntries = { quotas: new Map(), inodeLimits: new Map() };

/** The newest known schema; files of a newer one are refused rather than overwritten (D18). */
const SCHEMA = 2;

/**
 * The text of the file. It keeps schema 1 until an inode limit is set: a Grove without inode limits opens
 * schema 1, and refuses schema 2 rather than lose them.
 */
export function formatQuotas({ quotas, inodeLimits }: QuotaEntries): string {
  const content =
    inodeLimits.size === 0
      ? { schema: 1, quotas: sorted(quotas) }
      : { schema: SCHEMA, quotas: sorted(quotas), inode_limits: sorted(inodeLimits) };
  return `${stringify64(content, 2)}\n`;
}

function sorted<V>(entries: ReadonlyMap<string, V>): Record<string, V> {
  return Object.fromEntries([...entries].sort(([a], [b]) => (a < b ? -1 : 1)));
}

/** One generation of the file: its entries or its problem; neither when the file is missing. */
export interface Generation {
  readonly entries?: QuotaEntries;
  readonly problem?: string;
}

/** Reads one generation. Throws BAD_ARGUMENT for a newer schema, STORAGE_FAILED for an unreadable file. */
export async function readGeneration(path: string): Promise<Generation> {
  let text: string;
  try {
    text = await readFile(path, "utf8");
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return {};
    throw new GroveError("STORAGE_FAILED", `cannot read ${path}`, { cause: error });
  }
  let parsed: unknown;
  try {
    parsed = parse64(text);
  } catch {
    return { problem: "it is not JSON" };
  }
  return readEntries(parsed, path);
}

function readEntries(parsed: unknown, path: string): Generation {
  if (!isPlainObject(parsed)) return { problem: "it is not a JSON object" };
  const schema = parsed["schema"] ?? 1;
  requireKnownSchema(path, schema, SCHEMA);
  if (schema !== 1 && schema !== SCHEMA) return { problem: 'its "schema" is not 1 or 2' };
  if (!isPlainObject(parsed["quotas"])) return { problem: 'it has no object "quotas"' };
  const limits = parsed["inode_limits"] === undefined ? {} : parsed["inode_limits"];
  if (!isPlainObject(limits)) return { problem: 'its "inode_limits" is not an object' };
  const quotas = readMap(parsed["quotas"], parseU64);
  if (quotas === undefined)
    return { problem: `a quota in it is not an integer from 0 to 2^64 - 1, or ${WHOSE}` };
  const inodeLimits = readMap(limits, parseInodeLimit);
  if (inodeLimits === undefined) {
    return { problem: `an inode limit in it is not an integer from 0 to ${IDS_PER_ROOT}, or ${WHOSE}` };
  }
  return { entries: { quotas, inodeLimits } };
}

const WHOSE = "a username in it is empty, too long or there twice";

function parseInodeLimit(value: unknown): number | undefined {
  const count = parseU64(value);
  return count === undefined || count > BigInt(IDS_PER_ROOT) ? undefined : Number(count);
}

function readMap<V extends number | bigint>(
  map: Record<string, unknown>,
  parse: (value: unknown) => V | undefined,
): Map<string, V> | undefined {
  const seen = new Set<string>();
  const entries = new Map<string, V>();
  for (const [username, raw] of Object.entries(map)) {
    const value = parse(raw);
    const key = username.normalize("NFC").toLowerCase();
    if (value === undefined || key === "" || key.length > USERNAME_MAX_LENGTH || seen.has(key))
      return undefined;
    seen.add(key);
    // A stored zero is an absent entry (spec 2.1).
    if (value > 0) entries.set(key, value);
  }
  return entries;
}

function isPlainObject(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
