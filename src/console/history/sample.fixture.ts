// Samples of a healthy node for tests, with changes as requested.
import type { NodeSample } from "./node-sample.ts";

/** A sample; counters stand at zero. */
export function nodeSample(overrides: Partial<NodeSample> = {}): NodeSample {
  return { ...PLAIN, ...overrides };
}

const PLAIN: NodeSample = {
  nodeId: "a",
  wallMs: 1_790_000_000_000,
  steadyMs: 1_000,
  bytesWritten: 0,
  bytesRead: 0,
  writeOps: 0,
  readOps: 0,
  errors: 0,
  attempts: null,
  lastRestartUnix: 1_789_990_000,
  bootId: "boot",
  uptimeSeconds: 10_000,
  diskUsedBytes: 500e9,
  diskFreeBytes: 500e9,
  reserveBytes: 20e9,
  diskUsagePercent: 50,
  cpuTempCelsius: 45,
  cpuUsagePercent: 12,
  memUsagePercent: 40,
  activeConnections: 3,
  writeMsP50: 2,
  writeMsP95: 5,
  writeMsP99: 9,
  readMsP50: 1,
  readMsP95: 3,
  readMsP99: 7,
};
