// Feeds polls into the history: samples, gaps, and users for their forecasts (spec 2.8, 2.10).
import type { NodeSample, UserUsage } from "#console/history/node-sample.ts";
import type { ClusterState, NodeReading, PollOutcome } from "./cluster-state.ts";
import type { HomeNodes } from "./home-nodes.ts";

/** The part of the history that takes data. */
interface Fed {
  record(sample: NodeSample): unknown;
  recordGap(nodeId: string, wallMs: number): void;
  recordUsers(nodeId: string, wallMs: number, users: Iterable<UserUsage>): void;
}

/** Maximum age of the homes by which users' data is accepted; milliseconds. */
const HOMES_AGE_MS = 300_000;

/**
 * Feeds the history from now on; the returned function ends that. Only a user's home node is accepted as a
 * source, as far as homes are known (M-05).
 */
export function feedHistory(
  cluster: Pick<ClusterState, "onPoll">,
  history: Fed,
  homes: Pick<HomeNodes, "current" | "refresh">,
): () => void {
  return cluster.onPoll(({ node, reading, wallMs, steadyMs }: PollOutcome) => {
    if (reading === undefined) {
      history.recordGap(node.id, wallMs);
      return;
    }
    history.record(sampleOf(node.id, reading, wallMs, steadyMs));
    history.recordUsers(node.id, wallMs, usersOf(node.id, reading, homes));
  }, "first");
}

function sampleOf(nodeId: string, reading: NodeReading, wallMs: number, steadyMs: number): NodeSample {
  return {
    nodeId,
    wallMs,
    steadyMs,
    bytesWritten: numeric(reading.bytesWrittenTotal),
    bytesRead: numeric(reading.bytesReadTotal),
    writeOps: numeric(reading.writeOpsTotal),
    readOps: numeric(reading.readOpsTotal),
    errors: numeric(reading.errorsTotal),
    attempts: numeric(reading.attemptsTotal),
    lastRestartUnix: reading.lastRestartUnix,
    bootId: reading.bootId,
    uptimeSeconds: reading.uptimeSeconds,
    diskUsedBytes: numeric(reading.diskUsedBytes),
    diskFreeBytes: numeric(reading.diskFreeBytes),
    reserveBytes: numeric(reading.reserveBytes),
    diskUsagePercent: reading.diskUsagePercent,
    cpuTempCelsius: reading.cpuTempCelsius,
    cpuUsagePercent: reading.cpuUsagePercent,
    memUsagePercent: reading.memUsagePercent,
    activeConnections: reading.activeConnections,
    writeMsP50: reading.opLatencyWriteMsP50,
    writeMsP95: reading.opLatencyWriteMsP95,
    writeMsP99: reading.opLatencyWriteMsP99,
    readMsP50: reading.opLatencyReadMsP50,
    readMsP95: reading.opLatencyReadMsP95,
    readMsP99: reading.opLatencyReadMsP99,
  };
}

/** Rates need no more digits than a number has. */
function numeric(count: bigint | null): number | null {
  return count === null ? null : Number(count);
}

function* usersOf(
  nodeId: string,
  { perUserStorage, perUserQuota }: NodeReading,
  homes: Pick<HomeNodes, "current" | "refresh">,
): Generator<UserUsage> {
  void homes.refresh(HOMES_AGE_MS);
  const { current } = homes;
  for (const [username, usedBytes] of perUserStorage) {
    const quotaBytes = perUserQuota.get(username);
    if (quotaBytes !== undefined && (current.get(username) ?? nodeId) === nodeId)
      yield [username, usedBytes, quotaBytes];
  }
}
