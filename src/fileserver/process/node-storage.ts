// Opens the engine that a node's flags name, with the quotas of the roots that it serves.
import type { Clock } from "#base/clock.ts";
import { GroveError } from "#base/errors.ts";
import type { Logger } from "#base/log.ts";
import { formatHostPort, type HostPort } from "#base/node-id.ts";
import { type Random, systemFraction } from "#base/random.ts";
import type { DiskSpace } from "#fileserver/control/meta-link.ts";
import type { RemovedUserReaper } from "#fileserver/operations/removed-user-reaper.ts";
import type { RootUsage } from "#fileserver/operations/root-usage.ts";
import { DEFAULT_SERVICE_LIMITS, type ServiceLimits } from "#fileserver/operations/service-limits.ts";
import { QuotaStore, type QuotaStoreDeps } from "#quota/quota-store.ts";
import { readClusterId } from "#security/authority/cluster-id-file.ts";
import { againWhenRowsCome } from "#storage/contract/rows-to-come.ts";
import type { Storage } from "#storage/contract/storage.ts";
import type { EngineRows } from "#storage/engine/engine-rows.ts";
import type { EngineSettings } from "#storage/engine/engine-settings.ts";
import type { SharedStorage } from "#storage/engine/shared-storage.ts";
import { openStorage } from "#storage/local/open-storage.ts";
import type { EngineReadings } from "#telemetry/engine-metrics.ts";

/** The settings that say where content is kept. */
export interface NodeStorageOptions {
  readonly dataFolder: string;
  readonly metaservers: readonly string[];
  readonly engine?: EngineSettings | undefined;
  readonly listen: HostPort;
  readonly advertise: string | undefined;
  readonly reserveBytes: bigint;
  readonly limits?: Partial<ServiceLimits>;
}

/** What opening takes. */
export interface NodeStorageDeps {
  readonly clock: Clock;
  readonly random: Random;
  readonly log: Logger;
  readonly diskSpace: () => DiskSpace;
}

/** The open engine. */
export interface NodeStorage {
  readonly storage: Storage;
  readonly quotas: QuotaStore;
  /** Free bytes where content goes. */
  readonly freeBytes: () => bigint;
  /** Settles when this process may not go on; undefined on a node's own disks. */
  readonly ended: Promise<void> | undefined;
  /** What /metrics shows of the shared engine; undefined on a node's own disks. */
  readonly engine: (() => EngineReadings) | undefined;
  /** Says which cluster the node has joined. Throws CLUSTER_MISMATCH for an engine of another one. */
  readonly joined: (clusterId: string) => Promise<void>;
  /** Keeps what is known of roots true while they come and go; `moved` tells the MetaServer. */
  follow(service: RootFollowers, moved: () => void): void;
}

/** What is told of roots that come and go. */
interface RootFollowers {
  readonly usage: RootUsage;
  readonly removals: Pick<RemovedUserReaper, "arrived">;
}

/** An object store has no size that a node could see. */
const BOUNDLESS_BYTES = 2n ** 62n;

/** Opens the data folder, and what lies elsewhere. Throws what the engines throw. */
export async function openNodeStorage(
  options: NodeStorageOptions,
  deps: NodeStorageDeps,
): Promise<NodeStorage> {
  if (options.engine !== undefined) return openShared(options, options.engine, deps);
  const { clock, random, log, diskSpace } = deps;
  const storage = await openStorage({ directory: options.dataFolder, clock, random, logger: log });
  try {
    const quotas = await openQuotas(options, deps);
    return {
      storage,
      quotas,
      freeBytes: () => diskSpace().freeBytes,
      ended: undefined,
      engine: undefined,
      joined: () => Promise.resolve(),
      follow: () => undefined,
    };
  } catch (error) {
    await storage.close();
    throw error;
  }
}

async function openShared(
  options: NodeStorageOptions,
  engine: EngineSettings,
  deps: NodeStorageDeps,
): Promise<NodeStorage> {
  // Most nodes have files on their own disks, and no use for the code.
  const { openSharedStorage } = await import("#storage/engine/open-shared-storage.ts");
  const { sharedAddresses } = await import("#storage/shared/shared-connection.ts");
  const { clock, random, log, diskSpace } = deps;
  const database: { rows?: EngineRows } = {};
  let opening: Promise<QuotaStore> | undefined;
  // The folder is this process's own by the first call.
  const quotas = (): Promise<QuotaStore> =>
    (opening ??= openQuotas(options, deps, async (username, { quotaBytes, inodeLimit }) => {
      await database.rows?.setQuota(username, quotaBytes, inodeLimit);
    }));
  const opened = await openSharedStorage({
    directory: options.dataFolder,
    database: sharedAddresses(engine.database, process.env),
    store: engine.store,
    address: options.advertise ?? formatHostPort(options.listen),
    reserveBytes: options.reserveBytes,
    hasLocalRoom: (bytes) => diskSpace().freeBytes - BigInt(bytes) > options.reserveBytes,
    takeQuotas: async (usernames, kept) => (await quotas()).adopt(usernames, kept),
    clock,
    random,
    fraction: systemFraction,
    logger: log,
    leaseMs: engine.leaseMs,
    clusterId:
      options.metaservers.length === 0 ? undefined : ((await readClusterId(options.dataFolder)) ?? ""),
  });
  database.rows = opened.rows;
  const { storage } = opened;
  const ended = Promise.withResolvers<void>();
  ended.promise.catch(() => undefined);
  storage.onFailure((reason) => ended.reject(new GroveError("STORAGE_FAILED", reason)));
  try {
    return {
      storage,
      quotas: await quotas(),
      freeBytes: () => BOUNDLESS_BYTES,
      ended: ended.promise,
      engine: opened.readings,
      joined: opened.joined,
      follow: (service, moved) => followRoots(storage, service, moved),
    };
  } catch (error) {
    await storage.close();
    throw error;
  }
}

function followRoots(storage: SharedStorage, { usage, removals }: RootFollowers, moved: () => void): void {
  storage.onRoots((gained, lost) => {
    for (const owner of lost) usage.forget(owner);
    for (const owner of gained) removals.arrived(owner);
    void (async () => {
      for (const owner of gained) {
        const root = await againWhenRowsCome(() => storage.root(owner));
        if (root !== undefined) usage.record(owner, root.usage);
      }
      moved();
    })().catch(() => undefined);
  });
}

function openQuotas(
  { dataFolder, limits }: NodeStorageOptions,
  { log }: NodeStorageDeps,
  share?: QuotaStoreDeps["share"],
): Promise<QuotaStore> {
  return QuotaStore.open({
    dataFolder,
    defaultInodeLimit: limits?.inodesPerUser ?? DEFAULT_SERVICE_LIMITS.inodesPerUser,
    onRecovered: (reason) => log.error("quota_file_recovered", { reason }),
    ...(share === undefined ? {} : { share }),
  });
}
