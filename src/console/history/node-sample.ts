// What one good poll of a node gives the history, and the rates that come of it (spec 2.8, decision D9).

/** One answer of a node. What it did not say, or said in no valid form, is null; no figure here is trusted to be sane. */
export interface NodeSample {
  readonly nodeId: string;
  /** Console's wall time of the answer: it decides the place in the history. */
  readonly wallMs: number;
  /** Console's steady time of the answer: rates are measured with it. */
  readonly steadyMs: number;
  /** The counters: totals since the node's process started. */
  readonly bytesWritten: number | null;
  readonly bytesRead: number | null;
  readonly writeOps: number | null;
  readonly readOps: number | null;
  readonly errors: number | null;
  /** All that may end as one of these errors; null from nodes that tell of reads and writes alone. */
  readonly attempts: number | null;
  /** How one tells that the counters began anew. */
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

/** What a node moves. MB are 10^6 bytes; null is what is not known yet. Never negative. */
export interface NodeRates {
  readonly writeMbps: number | null;
  readonly readMbps: number | null;
  readonly writeIops: number | null;
  readonly readIops: number | null;
  /** Failed share of what was attempted in the last 60 s in percent; null under 20 attempts, unless all has failed for a while (T4). */
  readonly errorRatePct: number | null;
}

/** No rate is known. */
export const NO_RATES: NodeRates = {
  writeMbps: null,
  readMbps: null,
  writeIops: null,
  readIops: null,
  errorRatePct: null,
};

/** What a node attempted and failed at within the last 60 s (T4). */
export interface ErrorWindow {
  readonly errors: number;
  readonly ops: number;
  /** Failures of late, when there were at least 5 over at least a minute and nothing went well since the first of them; else 0. */
  readonly failingRun: number;
}

/** One user of a node: name, occupied bytes, quota in force. */
export type UserUsage = readonly [username: string, usedBytes: bigint, quotaBytes: bigint];
