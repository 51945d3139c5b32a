// Readings of nodes, and a cluster state store to which a test hands the outcome of each poll.
import { ManualClock } from "#base/clock.ts";
import type { NodeReading } from "./cluster-state.ts";
import { ClusterStateStore, type ListedNode } from "./cluster-state-store.ts";

const GIB = 2n ** 30n;

/** A reading of a healthy node without users. */
export function nodeReading(overrides: Partial<NodeReading> = {}): NodeReading {
  return { ...HEALTHY, ...overrides };
}

/** A node as the metadata store lists it, named after its id. */
export function listedNode(id: string, overrides: Partial<ListedNode> = {}): ListedNode {
  return {
    id,
    name: id,
    address: "192.0.2.1:50051",
    metricsUrl: "http://192.0.2.1:9051",
    softwareVersion: "0.1.0",
    ...overrides,
  };
}

/** A store with these nodes on a manual clock. Nothing polls: the test calls `answered` and `failed`. */
export function testCluster(...ids: readonly string[]): {
  readonly clusterState: ClusterStateStore;
  readonly clock: ManualClock;
} {
  const clock = new ManualClock();
  const clusterState = new ClusterStateStore({ clock });
  clusterState.list(ids.map((id) => listedNode(id)));
  return { clusterState, clock };
}

const HEALTHY: NodeReading = {
  diskTotalBytes: 1_000n * GIB,
  diskUsedBytes: 400n * GIB,
  diskFreeBytes: 600n * GIB,
  diskUsagePercent: 40,
  usersAssignedCount: 0,
  activeUsers: 0,
  cpuTempCelsius: 45,
  cpuUsagePercent: 12.5,
  memUsedBytes: 2n * GIB,
  memTotalBytes: 8n * GIB,
  memUsagePercent: 25,
  loadAvg1m: 0.5,
  loadAvg5m: 0.25,
  uptimeSeconds: 3_600,
  lastRestartUnix: 1_789_996_400,
  chunkCount: 1_000n,
  activeConnections: 3,
  bytesWrittenTotal: 10_000_000n,
  bytesReadTotal: 20_000_000n,
  writeOpsTotal: 1_000n,
  readOpsTotal: 2_000n,
  errorsTotal: 0n,
  attemptsTotal: null,
  failedWritesTotal: 0n,
  failedReadsTotal: 0n,
  refusedTotal: 0n,
  opLatencyWriteMsP50: 2,
  opLatencyWriteMsP95: 5,
  opLatencyWriteMsP99: 9,
  opLatencyWriteSamples: 1_000,
  opLatencyReadMsP50: 1,
  opLatencyReadMsP95: 3,
  opLatencyReadMsP99: 7,
  opLatencyReadSamples: 1_024,
  version: "0.1.0",
  gitCommit: "0123456789abcdef0123456789abcdef01234567",
  bootId: "6f9e3c3e-0000-4000-8000-000000000001",
  inodeFree: 1_000_000n,
  inodeTotal: 1_200_000n,
  reserveBytes: 20n * GIB,
  trashBytes: 0n,
  stagingBytes: 0n,
  quotaDriftBytes: 0n,
  driftedCounters: 0,
  certDaysLeft: 80,
  clockSkewMs: 3,
  authMock: false,
  storageFailed: false,
  damagedFileCount: 0,
  damageFoundTotal: 0,
  securityEventsTotal: null,
  usersTruncated: false,
  usersWithheld: false,
  perUserStorage: new Map(),
  perUserQuota: new Map(),
  perUserDetail: new Map(),
  nearQuota: null,
  invalidFields: [],
};
