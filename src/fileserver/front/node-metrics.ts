// Gathers the readings of the /metrics document from the node's parts (spec 2.7, D12), without a table scan.
import type { Clock } from "#base/clock.ts";
import { VERSION } from "#base/version.ts";
import type { AllSessions } from "#fileserver/doors/all-sessions.ts";
import type { FileService } from "#fileserver/operations/file-service.ts";
import { gitCommit } from "#os/git-commit.ts";
import type { QuotaStore } from "#quota/quota-store.ts";
import type { DamagedFile, Storage } from "#storage/contract/storage.ts";
import type { EngineReadings } from "#telemetry/engine-metrics.ts";
import { HostGauges } from "#telemetry/host-gauges.ts";
import type { DamagedFileReading, GuardedReadings, NodeMetrics } from "#telemetry/metrics-document.ts";
import type { NodeTelemetry } from "#telemetry/node-telemetry.ts";
import type { SecurityEvents } from "#telemetry/security-events.ts";
import { UserMaps, type UserReadings } from "#telemetry/user-maps.ts";

/** A user counts as active for this long after the last use of a session (decision D12). */
const ACTIVE_USER_WINDOW_MS: number = 15 * 60_000;

/** Sources of the readings. */
export interface NodeMetricsDeps {
  readonly service: Pick<FileService, "usage">;
  readonly storage: Pick<
    Storage,
    "facts" | "failure" | "damagedFiles" | "damageFoundTotal" | "oldestTrash" | "scrubState" | "recountState"
  >;
  readonly quotas: QuotaStore;
  readonly sessions: Pick<AllSessions, "activeUsers" | "lastActiveMs" | "takeUsed">;
  readonly telemetry: NodeTelemetry;
  readonly securityEvents: Pick<SecurityEvents, "total">;
  /** Undefined on a node with disks of its own. */
  readonly engine: (() => EngineReadings) | undefined;
  readonly clock: Clock;
  readonly dataFolder: string;
  readonly reserveBytes: bigint;
  /** Age at which items of the trash are deleted; 0 for none. */
  readonly trashRetentionMs: number;
  /** Whole days until the node's certificate ends; null without TLS. */
  readonly certDaysLeft: () => number | null;
  readonly connections: () => number;
  readonly clockSkewMs: () => number | null;
  /** True when mock tokens are accepted (spec 5.7). */
  readonly authMock: boolean;
}

/** The result of a scrape: the document, and apart from it the facts about single users. */
export interface NodeReadings {
  readonly node: NodeMetrics;
  readonly users: UserMaps;
  readonly guarded: GuardedReadings;
}

/** Makes the function behind /metrics. Its work grows with changes since the last call, not with users. */
export function nodeMetrics(deps: NodeMetricsDeps): () => Promise<NodeReadings> {
  const gauges = new HostGauges({ clock: deps.clock, dataDirectory: deps.dataFolder });
  const none = (): UserMaps => new UserMaps((username) => readingsOf(deps, username));
  let users = none();
  const commit = gitCommit();
  return async () => {
    const host = await gauges.read();
    const active = deps.sessions.takeUsed();
    // Maps of users only grow: without one who has moved away they are made anew.
    if (deps.service.usage.takeLost()) users = none();
    users.update(deps.service.usage.takeChanged());
    users.update(active);
    const damaged = deps.storage.damagedFiles();
    const node = deps.telemetry.document({
      host,
      users,
      activeUsers: deps.sessions.activeUsers(ACTIVE_USER_WINDOW_MS),
      activeConnections: deps.connections(),
      chunkCount: deps.storage.facts().chunkCount,
      reserveBytes: deps.reserveBytes,
      version: VERSION,
      gitCommit: commit,
      certDaysLeft: deps.certDaysLeft(),
      clockSkewMs: deps.clockSkewMs(),
      authMock: deps.authMock,
      storageFailed: deps.storage.failure !== undefined,
      care: {
        damagedFiles: damaged.count,
        damageFoundTotal: deps.storage.damageFoundTotal,
        scrub: deps.storage.scrubState(),
        recount: deps.storage.recountState(),
      },
      engine: deps.engine?.(),
    });
    const { total: securityEventsTotal } = deps.securityEvents;
    return { node, users, guarded: { damaged: damaged.listed.map(toReading), securityEventsTotal } };
  };
}

function toReading({ owner, path, isTrashed, sizeBytes }: DamagedFile): DamagedFileReading {
  return { username: owner, path, trashed: isTrashed, size: sizeBytes };
}

function readingsOf(deps: NodeMetricsDeps, username: string): UserReadings | undefined {
  const usage = deps.service.usage.of(username);
  if (usage === undefined) return undefined;
  const quota = deps.quotas.quotaOf(username);
  const limit = deps.quotas.inodeLimitOf(username);
  return {
    username,
    liveBytes: usage.liveBytes,
    trashBytes: usage.trashBytes,
    stagingBytes: usage.stagingBytes,
    fileCount: usage.fileCount,
    inodeCount: usage.liveInodes + usage.trashInodes,
    inodeLimit: limit.inodes,
    inodeLimitExplicit: limit.source === "explicit",
    quotaBytes: quota.bytes,
    quotaExplicit: quota.source === "explicit",
    lastActiveWallMs: deps.sessions.lastActiveMs(username),
    trashExpiresWallMs: usage.trashInodes === 0 ? undefined : trashExpiry(deps, username),
  };
}

function trashExpiry({ storage, trashRetentionMs }: NodeMetricsDeps, owner: string): number | undefined {
  if (trashRetentionMs === 0) return undefined;
  try {
    const [oldest] = storage.oldestTrash(owner, Number.MAX_SAFE_INTEGER, 1);
    return oldest === undefined ? undefined : oldest.trashedAtMs + trashRetentionMs;
  } catch {
    // The rows of a shared engine may be elsewhere; the user's next change asks again.
    return undefined;
  }
}
