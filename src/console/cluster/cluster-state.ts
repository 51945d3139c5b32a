// The console's view of the cluster: each node's last reading and state, and poll events (spec 3.2, 4.4, 6).
import type { SecurityEventType } from "#base/security-event.ts";
import type { NodeStatus } from "#wire/webapi/cluster.ts";
import type { NodeMaintenance } from "#wire/webapi/maintenance.ts";

/** Nodes that the console shows; beyond the limit the node that was removed first is forgotten. */
export const CONSOLE_NODES_MAX = 2_000;
/**
 * Users that the console keeps of all nodes together. A node with more users than room is left counts as one
 * that lists none.
 */
export const CONSOLE_USERS_MAX = 300_000;

/** One user on a node, from `per_user_detail` (decision D12). Missing or invalid values are null. */
export interface UserDetail {
  readonly liveBytes: bigint | null;
  readonly trashBytes: bigint | null;
  readonly stagingBytes: bigint | null;
  readonly fileCount: number | null;
  /** Files and directories, also in the trash; null without inode limits, as are both below. */
  readonly inodeCount: number | null;
  readonly inodeLimit: number | null;
  readonly inodeLimitExplicit: boolean | null;
  /** Unix seconds; null for a user without activity. */
  readonly lastActiveUnix: number | null;
  /** True for a quota set for this user, false for the default. */
  readonly quotaExplicit: boolean | null;
  /** Unix seconds at which the oldest item of the trash is deleted; null for none, and from older nodes. */
  readonly trashExpiresUnix: number | null;
}

/**
 * A node's document after the check (spec 2.7, decision D12). Missing, unknown and invalid values are null. A
 * node may report any value of these types, also a false one.
 */
export interface NodeReading {
  readonly diskTotalBytes: bigint | null;
  readonly diskUsedBytes: bigint | null;
  readonly diskFreeBytes: bigint | null;
  /** 0 to 100. */
  readonly diskUsagePercent: number | null;
  readonly usersAssignedCount: number | null;
  readonly activeUsers: number | null;
  readonly cpuTempCelsius: number | null;
  /** 0 to 100. */
  readonly cpuUsagePercent: number | null;
  readonly memUsedBytes: bigint | null;
  readonly memTotalBytes: bigint | null;
  /** 0 to 100. */
  readonly memUsagePercent: number | null;
  readonly loadAvg1m: number | null;
  readonly loadAvg5m: number | null;
  readonly uptimeSeconds: number | null;
  readonly lastRestartUnix: number | null;
  readonly chunkCount: bigint | null;
  readonly activeConnections: number | null;
  readonly bytesWrittenTotal: bigint | null;
  readonly bytesReadTotal: bigint | null;
  readonly writeOpsTotal: bigint | null;
  readonly readOpsTotal: bigint | null;
  readonly errorsTotal: bigint | null;
  /** Operations that may end as an error: reads, writes and other calls; null from Grove 0.1.0. */
  readonly attemptsTotal: bigint | null;
  readonly failedWritesTotal: bigint | null;
  readonly failedReadsTotal: bigint | null;
  readonly refusedTotal: bigint | null;
  readonly opLatencyWriteMsP50: number | null;
  readonly opLatencyWriteMsP95: number | null;
  readonly opLatencyWriteMsP99: number | null;
  readonly opLatencyWriteSamples: number | null;
  readonly opLatencyReadMsP50: number | null;
  readonly opLatencyReadMsP95: number | null;
  readonly opLatencyReadMsP99: number | null;
  readonly opLatencyReadSamples: number | null;
  readonly version: string | null;
  readonly gitCommit: string | null;
  readonly bootId: string | null;
  readonly inodeFree: bigint | null;
  /** 0 on a filesystem that makes inodes as they are needed; null from older nodes. */
  readonly inodeTotal: bigint | null;
  readonly reserveBytes: bigint | null;
  readonly trashBytes: bigint | null;
  readonly stagingBytes: bigint | null;
  /** May be below zero. */
  readonly quotaDriftBytes: bigint | null;
  readonly driftedCounters: number | null;
  readonly certDaysLeft: number | null;
  readonly clockSkewMs: number | null;
  /** True when the node accepts mock tokens. */
  readonly authMock: boolean | null;
  readonly storageFailed: boolean | null;
  readonly damagedFileCount: number | null;
  readonly damageFoundTotal: number | null;
  /**
   * Grows with the node's list of security events; null from nodes that do not count them, and without the
   * right token (T8).
   */
  readonly securityEventsTotal: number | null;
  /** True when the node has more users than its maps list. */
  readonly usersTruncated: boolean | null;
  /** True when the document has no maps of users, as without the right SVC_METRICS_TOKEN (decision T8). */
  readonly usersWithheld: boolean;
  /** Bytes that each user occupies, with trash and unfinished uploads. The same object while unchanged. */
  readonly perUserStorage: ReadonlyMap<string, bigint>;
  /** Quota in effect of each user. The same object as before while unchanged. */
  readonly perUserQuota: ReadonlyMap<string, bigint>;
  /** The same object as before while unchanged. */
  readonly perUserDetail: ReadonlyMap<string, UserDetail>;
  /**
   * Used and allowed bytes of all users at 95 % of their quota or above, also those the maps leave out; null
   * from nodes without the list.
   */
  readonly nearQuota: {
    readonly storage: ReadonlyMap<string, bigint>;
    readonly limit: ReadonlyMap<string, bigint>;
  } | null;
  /** Fields of the document that were missing or invalid, optional ones aside (M-05). */
  readonly invalidFields: readonly string[];
}

/** One security event of a node (decision D22). All values come from the node. */
export interface SecurityEvent {
  readonly id: string;
  /** Unix seconds on the node's clock. */
  readonly ts: number;
  readonly type: SecurityEventType;
  readonly fatal: boolean;
  readonly username: string | undefined;
  readonly ipBound: string | undefined;
  readonly ipSeen: string | undefined;
  /** Attempts that the event stands for; grows while the same id repeats. */
  readonly count: number;
}

/** The states of spec 3.2, and "unknown" for a node before its first answer, for 30 s at most. */
export type KnownStatus = NodeStatus | "unknown";

/**
 * A node as the console sees it now, a new object after every change. Before its first good poll it is
 * unknown and stale, and after 30 s without one offline (decision D24).
 */
export interface NodeState {
  readonly id: string;
  readonly name: string;
  /** gRPC address, host:port. */
  readonly address: string;
  /** Base URL of the node's metrics listener (spec 4.4). */
  readonly metricsUrl: string;
  /** Version from its registration; the running version is `lastGood.version`. */
  readonly softwareVersion: string;
  readonly status: KnownStatus;
  /** True before the first valid answer, and after a poll without one. */
  readonly stale: boolean;
  /** The node's last valid answer; undefined before its first good poll. */
  readonly lastGood: NodeReading | undefined;
  /** Wall time of the last good poll; 0 before the first. */
  readonly lastGoodWallMs: number;
  /** Why the last poll failed, for operators; undefined after a good one. */
  readonly pollError: string | undefined;
  readonly maintenanceUntilWallMs?: number;
  /** The maintenance that an operator began. */
  readonly maintenance?: NodeMaintenance;
  /** Id of the action that holds the node. */
  readonly lockedBy?: string;
  /** True when it is taken out of service. */
  readonly drained?: true;
}

/** The outcome of one poll of one node. */
export interface PollOutcome {
  /** The node's state after this poll. */
  readonly node: NodeState;
  /** The node's answer; undefined when the poll failed. */
  readonly reading: NodeReading | undefined;
  readonly wallMs: number;
  readonly steadyMs: number;
  /** Events that are new, or have a higher count than before. */
  readonly securityEvents: readonly SecurityEvent[];
}

/**
 * When a listener is called. Listeners that keep what others read take the first turn; within a turn the
 * order is undefined.
 */
export type ListenerTurn = "first" | "second";

/** Read access to the cluster's state. */
export interface ClusterState {
  /** All nodes by id, including those that left the metadata store within the last 24 h (decision D19). */
  nodes(): readonly NodeState[];
  node(id: string): NodeState | undefined;
  /** True until every node has been polled once, at most for the first 30 s (decision D24). */
  isStarting(): boolean;
  /** Calls the listener, which must not throw, after each node's poll; returns the unsubscription. */
  onPoll(listener: (outcome: PollOutcome) => void, turn?: ListenerTurn): () => void;
  /**
   * Calls the listener every 5 s, in its turn; the returned function unsubscribes. Listeners must not throw.
   */
  onRound(listener: (atWallMs: number) => void, turn?: ListenerTurn): () => void;
}
