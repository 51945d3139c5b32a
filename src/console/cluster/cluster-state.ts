// What the console knows of the cluster: each node's last reading, its state, and who is told after a poll (spec 3.2, 4.4, 6).
import type { SecurityEventType } from "#base/security-event.ts";
import type { NodeStatus } from "#wire/webapi/cluster.ts";
import type { NodeMaintenance } from "#wire/webapi/maintenance.ts";

/** Nodes that the console shows, those that vanished included; beyond them the one that vanished first is forgotten. */
export const CONSOLE_NODES_MAX = 2_000;
/** Users that the console keeps of all nodes together; a node that says it has more than is left counts as if it had told of none. */
export const CONSOLE_USERS_MAX = 300_000;

/** One user on a node, from `per_user_detail` (decision D12). What the node did not say validly is null. */
export interface UserDetail {
  readonly liveBytes: bigint | null;
  readonly trashBytes: bigint | null;
  readonly stagingBytes: bigint | null;
  readonly fileCount: number | null;
  /** Files and directories, those in the trash included; null from nodes of before inode limits, as are both below. */
  readonly inodeCount: number | null;
  readonly inodeLimit: number | null;
  readonly inodeLimitExplicit: boolean | null;
  /** Unix seconds; null for a user who has not been seen. */
  readonly lastActiveUnix: number | null;
  /** True when the quota was set for this user, false for the default. */
  readonly quotaExplicit: boolean | null;
}

/**
 * A node's document after the check (spec 2.7, decision D12): what the node did not know, or said in no valid form, is null. All of it
 * was said by the node and may be a lie within these types.
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
  /** What may end as an error: reads, writes and calls that are neither; null from Grove 0.1.0. */
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
  /** 0 of a filesystem that makes inodes as they are needed; null from nodes of before. */
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
  /** Grows whenever the node's list of security events does; null from nodes that do not count them, and without the right token (T8). */
  readonly securityEventsTotal: number | null;
  /** True when the node has more users than its maps list. */
  readonly usersTruncated: boolean | null;
  /** True when the document has no maps of users, as without the right SVC_METRICS_TOKEN (decision T8). */
  readonly usersWithheld: boolean;
  /** Bytes that each user occupies, trash and unfinished uploads included. The same object as before while nothing has changed. */
  readonly perUserStorage: ReadonlyMap<string, bigint>;
  /** Quota in effect of each user. The same object as before while nothing has changed. */
  readonly perUserQuota: ReadonlyMap<string, bigint>;
  /** The same object as before while nothing has changed. */
  readonly perUserDetail: ReadonlyMap<string, UserDetail>;
  /** Used and allowed bytes of the users at 95 % of their quota or above, whichever the maps list; null of a node that does not tell. */
  readonly nearQuota: {
    readonly storage: ReadonlyMap<string, bigint>;
    readonly limit: ReadonlyMap<string, bigint>;
  } | null;
  /** Names of the document's fields that were missing or invalid, without those that may be missing (M-05). */
  readonly invalidFields: readonly string[];
}

/** One security event of a node (decision D22). Everything in it was said by the node. */
export interface SecurityEvent {
  readonly id: string;
  /** Unix seconds on the node's clock. */
  readonly ts: number;
  readonly type: SecurityEventType;
  readonly fatal: boolean;
  readonly username: string | undefined;
  readonly ipBound: string | undefined;
  readonly ipSeen: string | undefined;
  /** Attempts that it stands for; grows while the same id comes again. */
  readonly count: number;
}

/** The states of spec 3.2, and the one before them: of a node that has not answered yet nothing is known, for 30 s at most. */
export type KnownStatus = NodeStatus | "unknown";

/**
 * A node as the console sees it now. A new object whenever anything in it has changed. Before its first good poll it is unknown and
 * stale, and after 30 s without one offline (decision D24): what nobody has heard of is not healthy.
 */
export interface NodeState {
  readonly id: string;
  readonly name: string;
  /** gRPC address, host:port. */
  readonly address: string;
  /** Base of the node's metrics listener (spec 4.4). */
  readonly metricsUrl: string;
  /** Version as it registered; what runs is `lastGood.version`. */
  readonly softwareVersion: string;
  readonly status: KnownStatus;
  /** True while the last poll got no valid answer, and before the first. */
  readonly stale: boolean;
  /** What the node said last; undefined before its first good poll. */
  readonly lastGood: NodeReading | undefined;
  /** Wall time of the last good poll; 0 before the first. */
  readonly lastGoodWallMs: number;
  /** Why the last poll counts as none, for operators; undefined while all is well. */
  readonly pollError: string | undefined;
  readonly maintenanceUntilWallMs?: number;
  /** What an operator has put it into. */
  readonly maintenance?: NodeMaintenance;
  /** Id of the action that holds the node. */
  readonly lockedBy?: string;
}

/** What one poll of one node came to. */
export interface PollOutcome {
  /** The node's state after this poll. */
  readonly node: NodeState;
  /** What the node said; undefined when it counts as no answer. */
  readonly reading: NodeReading | undefined;
  readonly wallMs: number;
  readonly steadyMs: number;
  /** Events that the node has not shown before, or with a lower count. */
  readonly securityEvents: readonly SecurityEvent[];
}

/** When a listener is called: the first turn is for those who keep what the others then ask them. Within a turn there is no order. */
export type ListenerTurn = "first" | "second";

/** The cluster as everybody in the console reads it. */
export interface ClusterState {
  /** All nodes by id, those that vanished from the store within the last 24 h included (decision D19). */
  nodes(): readonly NodeState[];
  node(id: string): NodeState | undefined;
  /** True until every node has been polled once, at most for the first 30 s (decision D24). */
  isStarting(): boolean;
  /** Called after each node's poll, all of the first turn before all others; the returned function ends that. Listeners must not throw. */
  onPoll(listener: (outcome: PollOutcome) => void, turn?: ListenerTurn): () => void;
  /** Called every 5 s, in the same turns; the returned function ends that. Listeners must not throw. */
  onRound(listener: (atWallMs: number) => void, turn?: ListenerTurn): () => void;
}
