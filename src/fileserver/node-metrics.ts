// Gathers what the /metrics document needs from the node's parts (spec 2.7, D12), without a scan of any table.
import type { Clock } from "#base/clock.ts";
import { ACTIVE_USER_WINDOW_MS } from "#base/limits.ts";
import { VERSION } from "#base/version.ts";
import type { QuotaBook } from "#quota/quota-book.ts";
import type { SessionTable } from "#sessions/session-table.ts";
import type { Storage } from "#storage/storage.ts";
import { HostGauges } from "#telemetry/host-gauges.ts";
import type { FileserverMetrics, UserReadings } from "#telemetry/metrics-document.ts";
import type { NodeTelemetry } from "#telemetry/node-telemetry.ts";
import type { FileService } from "./file-service.ts";

/** Where the readings come from. */
export interface NodeMetricsDeps {
  readonly service: Pick<FileService, "usage">;
  readonly storage: Pick<Storage, "facts" | "failure">;
  readonly quotas: QuotaBook;
  readonly sessions: SessionTable;
  readonly telemetry: NodeTelemetry;
  readonly clock: Clock;
  readonly dataFolder: string;
  readonly reserveBytes: bigint;
  /** Whole days until the node's certificate ends; null without TLS. */
  readonly certDaysLeft: () => number | null;
  readonly connections: () => number;
  readonly quotaDriftBytes: () => number;
  readonly clockSkewMs: () => number | null;
}

/** Makes the function that /metrics calls. */
export function nodeMetrics(deps: NodeMetricsDeps): () => Promise<FileserverMetrics> {
  const gauges = new HostGauges({ clock: deps.clock, dataDirectory: deps.dataFolder });
  return async () => {
    const host = await gauges.read();
    return deps.telemetry.document({
      host,
      users: users(deps),
      activeUsers: deps.sessions.activeUsers(ACTIVE_USER_WINDOW_MS),
      activeConnections: deps.connections(),
      chunkCount: deps.storage.facts().chunkCount,
      reserveBytes: deps.reserveBytes,
      quotaDriftBytes: deps.quotaDriftBytes(),
      version: VERSION,
      certDaysLeft: deps.certDaysLeft(),
      clockSkewMs: deps.clockSkewMs(),
      storageFailed: deps.storage.failure !== undefined,
    });
  };
}

function* users(deps: NodeMetricsDeps): Generator<UserReadings> {
  for (const [username, usage] of deps.service.usage.entries()) {
    const quota = deps.quotas.quotaOf(username);
    yield {
      username,
      liveBytes: usage.liveBytes,
      trashBytes: usage.trashBytes,
      stagingBytes: usage.stagingBytes,
      fileCount: usage.fileCount,
      quotaBytes: quota.bytes,
      quotaExplicit: quota.source === "explicit",
      lastActiveWallMs: deps.sessions.lastActiveMs(username),
    };
  }
}
