// The object store of a node: all that writes, reads and removes chunks there, joined.
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import type { Clock } from "#base/clock.ts";
import { GroveError } from "#base/errors.ts";
import type { Logger } from "#base/log.ts";
import type { Random } from "#base/random.ts";
import { makePrivateFolder } from "#os/private-folder.ts";
import { type BucketFacts, checkBucket } from "./bucket-check.ts";
import type { ChunkBlocks } from "./chunk-blocks.ts";
import { ChunkNamesOfRoot } from "./chunk-names-of-root.ts";
import { type ChunkReading, ChunkReads } from "./chunk-reads.ts";
import { ChunkRoom, STORE_SPILL_BYTES } from "./chunk-room.ts";
import type { RemovalDeps } from "./dropped-chunks.ts";
import { ChunkPuts } from "./object-chunk-writer.ts";
import { ObjectUpload } from "./object-upload.ts";
import { READ_CACHE_BYTES, ReadCache } from "./read-cache.ts";
import { S3Client } from "./s3-client.ts";
import { CredentialsFile } from "./store-credentials.ts";
import type { StorePatience } from "./store-exchange.ts";
import { StoreMarker } from "./store-marker.ts";
import { StoreRequests } from "./store-requests.ts";
import type { StoreSettings } from "./store-settings.ts";

/** Dependencies of a node's object store. */
export interface ObjectStoreDeps {
  readonly settings: StoreSettings;
  readonly blocks: ChunkBlocks;
  /** Local folder for the read cache and for chunks that find no room in memory. */
  readonly folder: string;
  /** Bytes of the read cache; READ_CACHE_BYTES by default. */
  readonly cacheBytes?: number;
  /** Free bytes that the local disk keeps. */
  readonly reserveBytes: bigint;
  /** Whether the local disk has room above its reserve, for the bytes that uploads may put there. */
  readonly hasLocalRoom: (bytes: number) => boolean;
  readonly clock: Clock;
  readonly random: Random;
  /** From 0 to below 1, for jitter. */
  readonly fraction: () => number;
  readonly logger: Logger;
  readonly patience?: StorePatience;
  /** How long a request is repeated. */
  readonly triesMs?: number;
}

/** A node's object store. Make it once for each process. */
export class ObjectStore {
  readonly requests: StoreRequests;
  readonly marker: StoreMarker;
  readonly cache: ReadCache;
  readonly #deps: ObjectStoreDeps;
  readonly #puts: ChunkPuts;
  readonly #reads: ChunkReads;

  private constructor(deps: ObjectStoreDeps, requests: StoreRequests, cache: ReadCache) {
    const { prefix } = deps.settings;
    this.#deps = deps;
    this.requests = requests;
    this.cache = cache;
    this.marker = new StoreMarker(requests, prefix);
    const room = new ChunkRoom({ maySpill: () => deps.hasLocalRoom(STORE_SPILL_BYTES) });
    this.#puts = new ChunkPuts({ requests, prefix, room, spillFolder: deps.folder, random: deps.random });
    this.#reads = new ChunkReads({ requests, prefix, cache, marker: this.marker });
  }

  /** Joins the parts. Sends nothing to the store: call `check` before the first write. */
  static async open(deps: ObjectStoreDeps): Promise<ObjectStore> {
    const { clock, logger, folder, cacheBytes = READ_CACHE_BYTES, reserveBytes } = deps;
    makePrivateFolder(folder);
    const requests = await openRequests(deps);
    const cache = await ReadCache.open({
      folder: join(folder, "chunks-read"),
      clock,
      logger,
      limitBytes: cacheBytes,
      reserveBytes,
    });
    return new ObjectStore(deps, requests, cache);
  }

  /** Tries the bucket. Throws BAD_ARGUMENT for one that must not be used. */
  check(): Promise<BucketFacts> {
    return checkBucket(this.requests, this.#deps.settings.prefix, this.#deps.random);
  }

  /** Begins the name of every object. */
  get prefix(): string {
    return this.#deps.settings.prefix;
  }

  /** Names for the holder of a root; made anew with each lease. */
  namesOf(rootId: string, epoch: number): ChunkNamesOfRoot {
    const { blocks, random, clock } = this.#deps;
    return new ChunkNamesOfRoot({ blocks, rootId, epoch, random, clock });
  }

  /** Begins the way of one upload. */
  upload(upload: { names: ChunkNamesOfRoot; user: string; sizeBytes: number | undefined }): ObjectUpload {
    return new ObjectUpload({ puts: this.#puts, ...upload });
  }

  /** Opens one file for reading. */
  reading(user: string): ChunkReading {
    return this.#reads.open(user);
  }

  /** What passes that remove objects need. */
  removal(deps: { incarnation: string; recoveryWindowMs: number }): RemovalDeps {
    const { settings, clock, logger } = this.#deps;
    const { requests, marker } = this;
    return { requests, prefix: settings.prefix, marker, clock, logger, ...deps };
  }

  /** Ends every request and connection at once, then the cache. */
  async close(): Promise<void> {
    this.requests.client.close();
    await this.cache.close();
  }
}

/** Requests to a bucket, without a cache or a way to write chunks. Throws BAD_ARGUMENT for unreadable files. */
export async function openRequests(
  deps: Pick<ObjectStoreDeps, "settings" | "clock" | "fraction" | "logger" | "patience" | "triesMs">,
): Promise<StoreRequests> {
  const { settings, clock, fraction, logger, patience, triesMs } = deps;
  const credentials = new CredentialsFile({ path: settings.credentialsFile, clock, logger });
  await credentials.current();
  const ca = settings.caFile === undefined ? undefined : await authorityOf(settings.caFile);
  const client = new S3Client({
    settings,
    credentials,
    ca,
    clock,
    ...(patience === undefined ? {} : { patience }),
  });
  return new StoreRequests({
    client,
    clock,
    fraction,
    logger,
    ...(triesMs === undefined ? {} : { triesMs }),
  });
}

async function authorityOf(path: string): Promise<string> {
  try {
    return await readFile(path, "utf8");
  } catch (error) {
    const { code = "error" } = error as NodeJS.ErrnoException;
    throw new GroveError("BAD_ARGUMENT", `the object store's authority ${path} cannot be read: ${code}`);
  }
}
