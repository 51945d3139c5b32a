// The data of one good poll for the history, and the resulting rates (spec 2.8, decision D9).

/** One answer of a node. Missing and invalid values are null; no value here is trusted to be plausible. */
export interface NodeSample {
  readonly nodeId: string;
  /** Console's wall time of the answer, which decides its place in the history. */
  readonly wallMs: number;
  /** Console's steady time of the answer, with which rates are measured. */
  readonly steadyMs: number;
  /** The counters: totals since the node's process started. */
  readonly bytesWritten: number | null;
  readonly bytesRead: number | null;
  readonly writeOps: number | null;
  readonly readOps: number | null;
  readonly errors: number | null;
  /**
   * All operations that may end as one of these errors; null from nodes that report reads and writes only.
   */
  readonly attempts: number | null;
  /** Time of the node's start, which shows that the counters began anew. */
  readonly lastRestartUnix: number | null;
  readonly bootId: string | null;
  readonly uptimeSeconds: number | null;
  /** The gauges. */
  readonly diskUsedBytes: number | null;
  readonly diskFreeBytes: number | null;
  /** Free space that no write may use (spec 4.6.3). */
  readonly reserveBytes: number | null;
  readonly diskUsagePercent: number | null;
  readonly cpuTempCelsius: number | null;
  readonly cpuUsagePercent: number | null;
  readonly memUsagePercent: number | null;
  readonly activeConnections: number | null;
  readonly writeMsP50: number | null;
  readonly writeMsP95: number | null;
  readonly writeMsP99: number | null;
  readonly readMsP50: number | null;
  readonly readMsP95: number | null;
  readonly readMsP99: number | null;
}

/** A node's throughput. MB are 10^6 bytes; null is unknown. Never negative. */
export interface NodeRates {
  readonly writeMbps: number | null;
  readonly readMbps: number | null;
  readonly writeIops: number | null;
  readonly readIops: number | null;
  /** Failed share in the last 60 s in percent; null under 20 attempts, unless all fail for a while (T4). */
  readonly errorRatePct: number | null;
}

/** All rates unknown. */
export const NO_RATES: NodeRates = {
  writeMbps: null,
  readMbps: null,
  writeIops: null,
  readIops: null,
  errorRatePct: null,
};

/** Attempts and failures of a node within the last 60 s (T4). */
export interface ErrorWindow {
  readonly errors: number;
  readonly ops: number;
  /** Failures of the current run, when at least 5 over at least a minute came without a success; else 0. */
  readonly failingRun: number;
}

/** One user of a node: name, occupied bytes, quota in effect. */
export type UserUsage = readonly [username: string, usedBytes: bigint, quotaBytes: bigint];
