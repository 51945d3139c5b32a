// The book of quotas: `quota_config.json` in the data folder (spec 2.1), replaced as a whole and never guessed at.
import { readFile, rename } from "node:fs/promises";
import { join } from "node:path";
import { GroveError, isGroveError } from "#base/errors.ts";
import { parse64, parseU64, stringify64 } from "#base/json64.ts";
import { DEFAULT_QUOTA_BYTES, QUOTA_SETS_WAITING, U64_MAX, USERNAME_MAX_LENGTH } from "#base/limits.ts";
import { errorText } from "#base/log.ts";
import { previousGeneration, removeLeftovers, writeFileAtomic } from "#os/atomic-file.ts";

/** Name of the file in the data folder (spec 2.1). */
export const QUOTA_FILE = "quota_config.json";

/** The schema that this version writes; a newer one is refused rather than overwritten (D18). */
const SCHEMA = 1;

/** A user's quota and where it comes from (T23). */
export interface QuotaInForce {
  readonly bytes: bigint;
  readonly source: "explicit" | "default";
}

/** How a file is replaced; tests put failures here. */
export type ReplaceFile = (path: string, content: string) => Promise<void>;

/** What the book is opened with. */
export interface QuotaBookDeps {
  readonly dataFolder: string;
  /** Told when the file was missing or damaged and the generation before it is in force. */
  readonly onRecovered?: (reason: string) => void;
  readonly replaceFile?: ReplaceFile;
}

/** All explicit quotas of a FileServer. Reads are in memory; a change is in force once it is on stable storage (D6). */
export class QuotaBook {
  readonly #path: string;
  readonly #replaceFile: ReplaceFile;
  #quotas: Map<string, bigint>;
  #lastSet: Promise<unknown> = Promise.resolve();
  #waiting = 0;
  #failure: string | undefined;

  private constructor(path: string, quotas: Map<string, bigint>, replaceFile: ReplaceFile) {
    this.#path = path;
    this.#quotas = quotas;
    this.#replaceFile = replaceFile;
  }

  /**
   * Reads the book, an absent one as empty. A damaged file gives way to the generation before it; when that is missing or damaged too,
   * throws CORRUPT: a silent fall back to the default would change everyone's quota. Throws BAD_ARGUMENT for a newer schema.
   */
  static async open(deps: QuotaBookDeps): Promise<QuotaBook> {
    const path = join(deps.dataFolder, QUOTA_FILE);
    const replaceFile: ReplaceFile =
      deps.replaceFile ?? ((file, content) => writeFileAtomic(file, content, { keepPrevious: true }));
    await removeLeftovers(path);
    const current = await readGeneration(path);
    if (current.quotas !== undefined) return new QuotaBook(path, current.quotas, replaceFile);
    const previous = await readGeneration(previousGeneration(path));
    if (previous.quotas !== undefined) {
      deps.onRecovered?.(current.problem ?? "the file is missing");
      // Set aside first: the next change would otherwise keep the damaged file as the generation before.
      if (current.problem !== undefined) await rename(path, `${path}.corrupt`);
      await writeFileAtomic(path, format(previous.quotas));
      return new QuotaBook(path, previous.quotas, replaceFile);
    }
    if (current.problem === undefined && previous.problem === undefined) {
      return new QuotaBook(path, new Map(), replaceFile);
    }
    throw new GroveError(
      "CORRUPT",
      `${path} cannot be read (${current.problem ?? "missing"}) and neither can ${previousGeneration(path)} ` +
        `(${previous.problem ?? "missing"}). Put a good copy in its place, or {"quotas":{}} to give everybody the default.`,
    );
  }

  /** The quota in force for a user; without an entry 16 GiB (spec 2.1). */
  quotaOf(username: string): QuotaInForce {
    const bytes = this.#quotas.get(username);
    return bytes === undefined ? DEFAULT_IN_FORCE : { bytes, source: "explicit" };
  }

  /** The same in bytes alone. */
  quotaBytes(username: string): bigint {
    return this.#quotas.get(username) ?? DEFAULT_QUOTA_BYTES;
  }

  /** Every explicit entry. */
  entries(): IterableIterator<[username: string, quotaBytes: bigint]> {
    return this.#quotas.entries();
  }

  /**
   * Sets a user's quota in bytes, 0 to 2^64 - 1; 0 removes the entry (spec 2.1, T23). Resolves when that is on stable storage, and only
   * then it is in force. Sets run one after another. Throws BAD_ARGUMENT, OVERLOADED, or STORAGE_FAILED when the file cannot be replaced.
   */
  async set(username: string, quotaBytes: bigint): Promise<void> {
    if (quotaBytes < 0n || quotaBytes > U64_MAX) {
      throw new GroveError("BAD_ARGUMENT", "a quota is an integer from 0 to 18446744073709551615");
    }
    if (this.#waiting >= QUOTA_SETS_WAITING) {
      throw new GroveError("OVERLOADED", "too many quota changes at once; try again");
    }
    this.#waiting++;
    const mine = this.#lastSet.then(() => this.#replace(username, quotaBytes));
    this.#lastSet = mine.catch(() => undefined);
    try {
      await mine;
    } finally {
      this.#waiting--;
    }
  }

  async #replace(username: string, quotaBytes: bigint): Promise<void> {
    if (this.#failure !== undefined) throw new GroveError("STORAGE_FAILED", this.#failure);
    const next = new Map(this.#quotas);
    if (quotaBytes === 0n) next.delete(username);
    else next.set(username, quotaBytes);
    try {
      await this.#replaceFile(this.#path, format(next));
    } catch (error) {
      // Most failures leave the old file, so that the next set may find room. After a failed flush nobody knows what a power
      // cut would leave, and a flush is never tried again: a restart reads the file anew.
      if (isGroveError(error, "STORAGE_FAILED")) {
        this.#failure = `quotas cannot be changed until a restart: ${errorText(error)}`;
      }
      throw new GroveError(
        "STORAGE_FAILED",
        "the quota could not be written to disk; the old one stays in force",
        {
          cause: error,
        },
      );
    }
    this.#quotas = next;
  }
}

/** What is wrong with the quota file of a folder, without changing it; undefined when it is sound or absent. Throws like open. */
export async function quotaFileProblem(dataFolder: string): Promise<string | undefined> {
  const path = join(dataFolder, QUOTA_FILE);
  const { problem } = await readGeneration(path);
  return problem === undefined ? undefined : `${path} is damaged: ${problem}`;
}

const DEFAULT_IN_FORCE: QuotaInForce = { bytes: DEFAULT_QUOTA_BYTES, source: "default" };

function format(quotas: ReadonlyMap<string, bigint>): string {
  const sorted = [...quotas].sort(([a], [b]) => (a < b ? -1 : 1));
  return `${stringify64({ schema: SCHEMA, quotas: Object.fromEntries(sorted) }, 2)}\n`;
}

/** One generation: its quotas, or what is wrong with it, or neither when there is no file. */
interface Generation {
  readonly quotas?: Map<string, bigint>;
  readonly problem?: string;
}

async function readGeneration(path: string): Promise<Generation> {
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
  return readQuotas(parsed, path);
}

function readQuotas(parsed: unknown, path: string): Generation {
  if (!isPlainObject(parsed)) return { problem: "it is not a JSON object" };
  const schema = parsed["schema"] ?? SCHEMA;
  if (typeof schema === "number" && Number.isInteger(schema) && schema > SCHEMA) {
    throw new GroveError(
      "BAD_ARGUMENT",
      `${path} was written by a newer Grove (schema ${schema}); run that one`,
    );
  }
  if (schema !== SCHEMA) return { problem: 'its "schema" is not 1' };
  if (!isPlainObject(parsed["quotas"])) return { problem: 'it has no object "quotas"' };
  const quotas = new Map<string, bigint>();
  for (const [username, value] of Object.entries(parsed["quotas"])) {
    const bytes = parseU64(value);
    if (bytes === undefined) return { problem: "a quota in it is not an integer from 0 to 2^64 - 1" };
    const key = username.normalize("NFC").toLowerCase();
    if (key === "" || key.length > USERNAME_MAX_LENGTH || quotas.has(key)) {
      return { problem: "a username in it is empty, too long or there twice" };
    }
    // A stored zero is an absent entry (spec 2.1).
    if (bytes > 0n) quotas.set(key, bytes);
  }
  return { quotas };
}

function isPlainObject(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
