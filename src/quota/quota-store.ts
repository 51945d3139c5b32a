// Store of quotas and inode limits: `quota_config.json` (spec 2.1), replaced whole, never guessed.
import { rename } from "node:fs/promises";
import { join } from "node:path";
import { GroveError, isGroveError } from "#base/errors.ts";
import { DEFAULT_INODE_LIMIT, DEFAULT_QUOTA_BYTES, IDS_PER_ROOT, U64_MAX } from "#base/limits.ts";
import { errorText } from "#base/log.ts";
import { previousGeneration, removeLeftovers, writeFileAtomic } from "#os/atomic-file.ts";
import { formatQuotas, NO_ENTRIES, type QuotaEntries, readGeneration } from "./quota-format.ts";

/** SetQuota calls that may wait for the write of the file; more are answered OVERLOADED. */
export const QUOTA_SETS_WAITING = 256;

/** Name of the file in the data folder (spec 2.1). */
export const QUOTA_FILE = "quota_config.json";

/** A user's quota and its source (T23). */
export interface QuotaInForce {
  readonly bytes: bigint;
  readonly source: "explicit" | "default";
}

/** A user's inode limit and its source. */
export interface InodeLimitInForce {
  /** Files and directories, those in the trash included. */
  readonly inodes: number;
  readonly source: "explicit" | "default";
}

/** A change for one user; undefined fields stay as they are. */
export interface QuotaChange {
  /** 0 to 2^64 - 1; 0 removes the entry. */
  readonly quotaBytes?: bigint | undefined;
  /** 0 to 2^32 - 1; 0 removes the entry. */
  readonly inodeLimit?: number | undefined;
}

/** How a file is replaced; tests inject failures here. */
export type ReplaceFile = (path: string, content: string) => Promise<void>;

/** Dependencies of the store. */
export interface QuotaStoreDeps {
  readonly dataFolder: string;
  /** The inode limit of users without an entry; default 10,000,000. */
  readonly defaultInodeLimit?: number;
  /** Called when the file was missing or damaged and the previous generation is in force. */
  readonly onRecovered?: (reason: string) => void;
  readonly replaceFile?: ReplaceFile;
  /** Keeps a change where other nodes find it, before it is in force here; left out on a node's own disks. */
  readonly share?: (username: string, change: QuotaChange) => Promise<void>;
}

/** What other nodes have kept of one user. */
export interface SharedQuota {
  readonly username: string;
  readonly bytes: bigint | undefined;
  readonly inodes: number | undefined;
}

/**
 * Explicit quotas and inode limits of a FileServer. Reads are in memory; a change is in force once durable
 * (D6).
 */
export class QuotaStore {
  readonly #path: string;
  readonly #replaceFile: ReplaceFile;
  readonly #defaultInodeLimit: number;
  readonly #share: QuotaStoreDeps["share"];
  #entries: QuotaEntries;
  #lastSet: Promise<unknown> = Promise.resolve();
  #waiting = 0;
  #failure: string | undefined;

  private constructor(path: string, entries: QuotaEntries, deps: QuotaStoreDeps) {
    this.#path = path;
    this.#entries = entries;
    this.#defaultInodeLimit = deps.defaultInodeLimit ?? DEFAULT_INODE_LIMIT;
    this.#share = deps.share;
    this.#replaceFile =
      deps.replaceFile ?? ((file, content) => writeFileAtomic(file, content, { keepPrevious: true }));
  }

  /**
   * Reads the file, a missing one as empty. A damaged one gives way to the previous generation. Throws
   * CORRUPT when that is missing or damaged too: a silent default would change everyone's quota.
   * Throws BAD_ARGUMENT for a newer schema.
   */
  static async open(deps: QuotaStoreDeps): Promise<QuotaStore> {
    const path = join(deps.dataFolder, QUOTA_FILE);
    await removeLeftovers(path);
    const current = await readGeneration(path);
    if (current.entries !== undefined) return new QuotaStore(path, current.entries, deps);
    const previous = await readGeneration(previousGeneration(path));
    if (previous.entries !== undefined) {
      deps.onRecovered?.(current.problem ?? "the file is missing");
      // Set aside first: the next change would otherwise keep the damaged file as the previous generation.
      if (current.problem !== undefined) await rename(path, `${path}.corrupt`);
      await writeFileAtomic(path, formatQuotas(previous.entries));
      return new QuotaStore(path, previous.entries, deps);
    }
    if (current.problem === undefined && previous.problem === undefined) {
      return new QuotaStore(path, NO_ENTRIES, deps);
    }
    throw new GroveError(
      "CORRUPT",
      `${path} cannot be read (${current.problem ?? "missing"}) and neither can ${previousGeneration(path)} ` +
        `(${previous.problem ?? "missing"}). Put a good copy in its place, or {"quotas":{}} to give everybody the default.`,
    );
  }

  /** The quota in force for a user; without an entry 16 GiB (spec 2.1). */
  quotaOf(username: string): QuotaInForce {
    const bytes = this.#entries.quotas.get(username);
    return bytes === undefined ? DEFAULT_IN_FORCE : { bytes, source: "explicit" };
  }

  /** The quota in force as bytes alone. */
  quotaBytes(username: string): bigint {
    return this.#entries.quotas.get(username) ?? DEFAULT_QUOTA_BYTES;
  }

  /** Files and directories that a user's root may hold, those in its trash included. */
  inodeLimitOf(username: string): InodeLimitInForce {
    const inodes = this.#entries.inodeLimits.get(username);
    return inodes === undefined
      ? { inodes: this.#defaultInodeLimit, source: "default" }
      : { inodes, source: "explicit" };
  }

  /** The inode limit in force as a number alone. */
  inodeLimit(username: string): number {
    return this.#entries.inodeLimits.get(username) ?? this.#defaultInodeLimit;
  }

  /** Every explicit quota. */
  entries(): IterableIterator<[username: string, quotaBytes: bigint]> {
    return this.#entries.quotas.entries();
  }

  /**
   * Puts what came along with a root in force; what was set for the user stays set, also at the default's value
   * (spec 5.9). Other nodes of a shared engine may know what was in force before the root was away, so there it
   * is kept even where this node knows it.
   */
  async take(username: string, quota: QuotaInForce, limit: InodeLimitInForce): Promise<void> {
    const isDefaultQuota = quota.source === "default" && quota.bytes === DEFAULT_QUOTA_BYTES;
    const isDefaultLimit = limit.source === "default" && limit.inodes === this.#defaultInodeLimit;
    const quotaBytes = isDefaultQuota ? 0n : quota.bytes;
    const inodeLimit = isDefaultLimit ? 0 : limit.inodes;
    const { quotas, inodeLimits } = this.#entries;
    const isKnown =
      (quotas.get(username) ?? 0n) === quotaBytes && (inodeLimits.get(username) ?? 0) === inodeLimit;
    if (isKnown && this.#share === undefined) return;
    await this.set(username, { quotaBytes, inodeLimit });
  }

  /**
   * Sets a user's quota, inode limit or both; 0 removes the entry (spec 2.1, T23). The change is in force
   * when it is on stable storage, and then the call resolves. Sets run one after another. Throws
   * BAD_ARGUMENT, OVERLOADED, or STORAGE_FAILED when the file cannot be replaced.
   */
  async set(username: string, change: QuotaChange): Promise<void> {
    const { quotaBytes = 0n, inodeLimit = 0 } = change;
    if (quotaBytes < 0n || quotaBytes > U64_MAX) {
      throw new GroveError("BAD_ARGUMENT", "a quota is an integer from 0 to 18446744073709551615");
    }
    if (!Number.isInteger(inodeLimit) || inodeLimit < 0 || inodeLimit > IDS_PER_ROOT) {
      throw new GroveError("BAD_ARGUMENT", `an inode limit is an integer from 0 to ${IDS_PER_ROOT}`);
    }
    if (this.#waiting >= QUOTA_SETS_WAITING) {
      throw new GroveError("OVERLOADED", "too many quota changes at once; try again");
    }
    this.#waiting++;
    const mine = this.#lastSet.then(() => this.#replace(username, change));
    this.#lastSet = mine.catch(() => undefined);
    try {
      await mine;
    } finally {
      this.#waiting--;
    }
  }

  /** Removes a user's entries; without any nothing is written. Throws as `set` does. */
  async forget(username: string): Promise<void> {
    const { quotas, inodeLimits } = this.#entries;
    if (!quotas.has(username) && !inodeLimits.has(username)) return;
    await this.set(username, { quotaBytes: 0n, inodeLimit: 0 });
  }

  /** Gives the entries of one name to another; without entries nothing changes. Throws as `set` does. */
  async rename(from: string, to: string): Promise<void> {
    const mine = this.#lastSet.then(() => this.#rename(from, to));
    this.#lastSet = mine.catch(() => undefined);
    await mine;
  }

  async #rename(from: string, to: string): Promise<void> {
    const { quotas, inodeLimits } = this.#entries;
    const next = { quotas: renamed(quotas, from, to), inodeLimits: renamed(inodeLimits, from, to) };
    if (next.quotas !== quotas || next.inodeLimits !== inodeLimits) await this.#put(next);
  }

  /** Takes over what other nodes have kept of users; those without an entry there have the default. */
  async adopt(usernames: readonly string[], kept: readonly SharedQuota[]): Promise<void> {
    const mine = this.#lastSet.then(async () => {
      const [quotas, limits] = [new Map(this.#entries.quotas), new Map(this.#entries.inodeLimits)];
      for (const username of usernames) {
        quotas.delete(username);
        limits.delete(username);
      }
      for (const { username, bytes, inodes } of kept) {
        if (bytes !== undefined) quotas.set(username, bytes);
        if (inodes !== undefined) limits.set(username, inodes);
      }
      const entries = { quotas, inodeLimits: limits };
      const text = formatQuotas(entries);
      if (text !== formatQuotas(this.#entries)) await this.#replaceFile(this.#path, text);
      this.#entries = entries;
    });
    this.#lastSet = mine.catch(() => undefined);
    await mine;
  }

  async #replace(username: string, change: QuotaChange): Promise<void> {
    const { quotaBytes, inodeLimit } = change;
    if (this.#failure !== undefined) throw new GroveError("STORAGE_FAILED", this.#failure);
    const next: QuotaEntries = {
      quotas: withEntry(this.#entries.quotas, username, quotaBytes),
      inodeLimits: withEntry(this.#entries.inodeLimits, username, inodeLimit),
    };
    await this.#share?.(username, change);
    await this.#put(next);
  }

  async #put(next: QuotaEntries): Promise<void> {
    if (this.#failure !== undefined) throw new GroveError("STORAGE_FAILED", this.#failure);
    try {
      await this.#replaceFile(this.#path, formatQuotas(next));
    } catch (error) {
      // Most failures leave the old file, so that the next set may find room. After a failed flush the file's
      // state after a power cut is unknown. A flush is never tried again: a restart reads the file anew.
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
    this.#entries = next;
  }
}

const DEFAULT_IN_FORCE: QuotaInForce = { bytes: DEFAULT_QUOTA_BYTES, source: "default" };

/** A copy of a map with one entry set, or removed for zero; undefined changes nothing. */
function withEntry<V extends number | bigint>(
  map: ReadonlyMap<string, V>,
  username: string,
  value: V | undefined,
): ReadonlyMap<string, V> {
  if (value === undefined) return map;
  const next = new Map(map);
  if (value > 0) next.set(username, value);
  else next.delete(username);
  return next;
}

/** A copy with an entry under another name; the same map without such an entry. */
function renamed<V>(map: ReadonlyMap<string, V>, from: string, to: string): ReadonlyMap<string, V> {
  const value = map.get(from);
  if (value === undefined) return map;
  const next = new Map(map).set(to, value);
  next.delete(from);
  return next;
}

/**
 * The problem of a folder's quota file, unchanged; undefined when it is sound or absent. Throws like open.
 */
export async function quotaFileProblem(dataFolder: string): Promise<string | undefined> {
  const path = join(dataFolder, QUOTA_FILE);
  const { problem } = await readGeneration(path);
  return problem === undefined ? undefined : `${path} is damaged: ${problem}`;
}
