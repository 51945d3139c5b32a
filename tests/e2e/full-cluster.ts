// A cluster with problems: nodes, users and alerts of every kind, with names of maximal length.
import { type FakeCluster, fakeAlert, fakeNode, fakeUser } from "#testing/fake-cluster.ts";

const GIB = 2 ** 30;
const TIB = 2 ** 40;
/** A user near the quota. */
export const BOB = "bob@people.example";
/** A user who is locked out. */
export const LOCKED = "carol@people.example";
/** The current commit of its machines, and the one before. */
export const COMMITS = [
  "4f2a9c81d07be35612f9a3c4d5e6f708192a3b4c",
  "9b1d44e02c7a5f6e8d9c0b1a2f3e4d5c6b7a8990",
] as const;

/** Fields that are unknown for a node that has not answered. */
const NOT_TOLD = [
  "write_mbps",
  "read_mbps",
  "error_rate_pct",
  "disk_total_bytes",
  "disk_used_bytes",
  "disk_free_bytes",
  "disk_usage_percent",
  "reserve_bytes",
  "cpu_temp_celsius",
  "load_avg_1m",
  "load_avg_5m",
  "uptime_seconds",
  "last_restart_unix",
  "users_assigned_count",
] as const;

/** A cluster with problems. Times are unix seconds. */
export function fullCluster(now: number, isOperator: boolean): FakeCluster {
  const node = (index: number, name: string, fields: Record<string, unknown>): Record<string, unknown> =>
    fakeNode(index, {
      name,
      last_seen: now,
      uptime_seconds: 3_542_400,
      last_restart_unix: now - 3_542_400,
      ...fields,
    });
  const nodes = [
    node(1, "fs-x86-1", {
      users_assigned_count: 31,
      write_mbps: 80.4,
      read_mbps: 11,
      cpu_temp_celsius: 52,
      reserve_bytes: GIB,
      git_commit: COMMITS[0],
    }),
    node(2, "fs-x86-2", {
      status: "warning",
      disk_usage_percent: 83.2,
      disk_total_bytes: 2 * TIB,
      disk_used_bytes: Math.trunc(1.66 * TIB),
      disk_free_bytes: Math.trunc(0.34 * TIB),
      disk_full_in_days: 12.3,
      write_mbps: 12.25,
      read_mbps: 140.7,
      users_assigned_count: 1_204,
      drained: true,
    }),
    node(3, "fs-pi4", {
      status: "offline",
      stale: true,
      last_seen: now - 372,
      write_mbps: null,
      read_mbps: null,
    }),
    node(4, "fs-a-node-with-a-rather-long-name-in-the-cellar", {
      status: "degraded",
      cpu_temp_celsius: 78.5,
      load_avg_1m: 17.25,
      maintenance_until: now + 5_400,
      maintenance: {
        node_id: "n4",
        starts_at: now - 1_800,
        ends_at: now + 5_400,
        created_by: "operator:5f3c9a10",
        comment: "a new fan",
        placement_paused: true,
      },
      locked_by: "x1",
      write_mbps: 0.03,
      read_mbps: 0,
    }),
  ];
  const unheard = fakeNode(5, {
    name: "fs-new",
    status: "offline",
    unknown: true,
    stale: true,
    last_seen: 0,
    ...Object.fromEntries(NOT_TOLD.map((name) => [name, null])),
    poll_error: "10.9.8.7 is in no block that -allow_nodes names; naming 10.9.8.7 there allows it",
  });
  nodes.push(unheard);
  return {
    isOperator,
    forOperators: 2,
    nodes: isOperator ? nodes : nodes.map(publicOf),
    users: isOperator ? users(now) : [],
    alerts: alerts(now, isOperator),
  };
}

function publicOf({
  users_assigned_count: _users,
  locked_by: _lock,
  drained: _drained,
  maintenance: _maintenance,
  address: _address,
  poll_error: _why,
  ...rest
}: Record<string, unknown>): Record<string, unknown> {
  return rest;
}

function users(now: number): Record<string, unknown>[] {
  const home = { home_node_id: "n2", home_node_name: "fs-x86-2" };
  const some = [
    fakeUser(1, {
      username: BOB,
      used_bytes: Math.trunc(15.6 * GIB),
      live_bytes: Math.trunc(11.4 * GIB),
      trash_bytes: Math.trunc(4.1 * GIB),
      staging_bytes: Math.trunc(0.1 * GIB),
      usage_percent: 97.5,
      level: "red",
      quota_limit: 16 * GIB,
      full_in_days: 2.2,
      last_active: now - 40,
      file_count: 12_345,
      inode_count: 18_500,
      inode_limit: 20_000,
      inode_limit_source: "explicit",
      ...home,
    }),
    fakeUser(2, {
      username: "a.very.long.name.of.somebody@department.university.example",
      used_bytes: 34 * GIB,
      live_bytes: 34 * GIB,
      usage_percent: 85,
      level: "yellow",
      locked: true,
      quota_limit: 40 * GIB,
      quota_source: "explicit",
      last_active: now - 7_300,
      ...home,
    }),
    fakeUser(3, {
      username: LOCKED,
      used_bytes: 0,
      live_bytes: 0,
      usage_percent: 0,
      locked: true,
      quota_source: "pending",
      file_count: 0,
      inode_count: null,
      inode_limit: null,
      inode_limit_source: null,
    }),
  ];
  return [
    ...some,
    ...Array.from({ length: 20 }, (_, index) => fakeUser(index + 10, { last_active: now - index * 86_400 })),
  ];
}

function alerts(now: number, isOperator: boolean): Record<string, unknown>[] {
  const of = (index: number, fields: Record<string, unknown>): Record<string, unknown> =>
    fakeAlert(index, { timestamp: now - index * 371, ...fields });
  const all = [
    of(1, {
      severity: "critical",
      type: "node_offline",
      title: "fs-pi4 is offline",
      message: "fs-pi4 has not answered for 6 min: nobody whose files are there can reach them.",
      node_id: "n3",
      node_name: "fs-pi4",
    }),
    of(2, {
      severity: "critical",
      type: "quota_exceeded",
      title: `${BOB} used 97 % of the quota`,
      message: `${BOB} used 97 % of 16 GiB (15.6 GiB, 4.1 GiB of it is trash).`,
      username: BOB,
      node_id: "n2",
      node_name: "fs-x86-2",
      value: 97.5,
      threshold: 95,
    }),
    of(3, {
      type: "storage_warning",
      title: "The disk of fs-x86-2 is 83 % full",
      message:
        "The disk of fs-x86-2 is 83 % full, above its limit of 80 %; it is full in 12 days at the pace of the last days.",
      node_id: "n2",
      node_name: "fs-x86-2",
      value: 83.2,
      threshold: 80,
      raised_count: 3,
      acked_by: "operator",
      acked_at: now - 600,
    }),
    of(4, {
      type: "temp_warning",
      title: "The processor of fs-a-node-with-a-rather-long-name-in-the-cellar is hot",
      message:
        "The processor of fs-a-node-with-a-rather-long-name-in-the-cellar is at 78.5 °C, above its limit of 75 °C.",
      node_id: "n4",
      node_name: "fs-a-node-with-a-rather-long-name-in-the-cellar",
      value: 78.5,
      threshold: 75,
    }),
    of(5, {
      type: "node_restored",
      severity: "critical",
      title: "fs-x86-1 was restored from 2026-11-22 20:28 UTC",
      message:
        "fs-x86-1 was restored from its backup of 2026-11-22 20:28 UTC (000012-20261122T202800Z): whatever came after that is not there. " +
        "Its audit log goes on behind line 40; 3 later lines are kept here. Roots that are gone: dave@people.example. " +
        "Roots that are older than they were: user10@people.example, user11@people.example. " +
        "Users whose root is gone are told so when they sign in; an empty one is made once you confirm it with grove node lost-root.",
      command: "grove node lost-root dave@people.example -meta sqlite:/var/lib/grove/metadata.db",
      node_id: "n1",
      node_name: "fs-x86-1",
    }),
    of(90, {
      type: "service_restart",
      severity: "info",
      title: "fs-x86-1 was restarted",
      message: "The FileServer of fs-x86-1 was restarted.",
      node_id: "n1",
      node_name: "fs-x86-1",
      resolved: true,
      resolved_at: now - 30_000,
      resolved_by: "auto",
    }),
    of(200, {
      type: "error_spike",
      title: "4.2 % of the operations of fs-x86-1 failed",
      message: "4.2 % of the operations of fs-x86-1 failed within a minute, above the limit of 1 %.",
      node_id: "n1",
      node_name: "fs-x86-1",
      value: 4.2,
      threshold: 1,
      resolved: true,
      resolved_at: now - 60_000,
      resolved_by: "operator",
    }),
  ];
  return isOperator
    ? all
    : all.filter((alert) => alert["username"] === undefined && alert["command"] === undefined);
}
