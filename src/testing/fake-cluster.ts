// Answers of a console for tests and benchmarks, with any number of nodes, users and alerts.

/** Content of such a console. */
export interface FakeCluster {
  isOperator: boolean;
  nodes: Record<string, unknown>[];
  users: Record<string, unknown>[];
  alerts: Record<string, unknown>[];
  /** Open alerts that visitors see only as a number. */
  forOperators?: number;
}

/** The sums over all nodes. */
export function totalsOf({ nodes }: FakeCluster): object {
  return {
    nodes_total: nodes.length,
    nodes_online: nodes.filter((node) => node["status"] !== "offline").length,
    nodes_unknown: nodes.filter((node) => node["unknown"] === true).length,
    disk_total_bytes: nodes.length * 1e12,
    disk_used_bytes: nodes.length * 4e11,
  };
}

/** The console's answer to a GET; undefined for unknown paths. */
export function replyTo(cluster: FakeCluster, path: string, search: URLSearchParams): object | undefined {
  const { isOperator, nodes, users, alerts } = cluster;
  switch (path) {
    case "/api/auth/status":
      return {
        authenticated: isOperator,
        mode: isOperator ? "operator" : "public",
        expires_at: isOperator ? Math.floor(Date.now() / 1_000) + 43_200 : null,
        default_password: false,
        version: "0",
      };
    case "/api/cluster":
      return {
        generated_at: Math.floor(Date.now() / 1_000),
        poll_interval_seconds: 5,
        cluster: totalsOf(cluster),
        redacted: !isOperator,
        nodes,
        users: {},
        total_users: isOperator ? users.length : 0,
      };
    case "/api/alerts":
      return alertsOf(alerts, search);
    case "/api/alerts/summary":
      return { ...summaryOf(alerts), ...(isOperator ? {} : { for_operators: cluster.forOperators ?? 0 }) };
    case "/api/silences":
      return { silences: [] };
    case "/api/performance":
      return {
        nodes: nodes.map((node) => ({
          ...(node["status"] === "offline" ? { status: "offline", unknown: node["unknown"] === true } : node),
          node_id: node["id"],
          node_name: node["name"],
        })),
        cluster_write_mbps: sumOf(nodes, "write_mbps"),
        cluster_read_mbps: sumOf(nodes, "read_mbps"),
        cluster_write_iops: 1,
        cluster_read_iops: 1,
        cluster_error_rate_pct: 0,
      };
    case "/api/auth/sessions":
      return { sessions: [] };
    case "/api/actions/history":
      return { records: [], total: 0 };
    case "/api/actions/nodes":
      return {
        nodes: nodes.map((node) => ({
          node_id: node["id"],
          node_name: node["name"],
          enrolled: node["unknown"] !== true,
          ...(node["unknown"] === true
            ? {
                enrol_command: `grove node add ${String(node["id"])} USER@10.0.0.5 -meta sqlite:/srv/grove/metadata.db`,
              }
            : {}),
        })),
      };
    case "/api/rollouts":
      return { rollouts: [], total: 0 };
    case "/api/actions/presets":
      return [];
    case "/api/audit":
      return { entries: [], next_cursor: null };
    case "/api/users":
      return pageOf(users, search);
    default:
      if (!path.startsWith("/api/history/")) return undefined;
      return { node_id: "x", interval_seconds: 5, from: 0, to: 0, columns: ["ts"], points: [] };
  }
}

function sumOf(nodes: readonly Record<string, unknown>[], field: string): number {
  return nodes.reduce((sum, node) => sum + Number(node[field] ?? 0), 0);
}

function summaryOf(alerts: readonly Record<string, unknown>[]): object {
  const open = alerts.filter((alert) => alert["resolved"] === false);
  const of = (severity: string): number => open.filter((alert) => alert["severity"] === severity).length;
  return { critical: of("critical"), warning: of("warning"), info: of("info"), total: open.length };
}

function alertsOf(alerts: readonly Record<string, unknown>[], search: URLSearchParams): object {
  const fitting = alerts.filter(
    (alert) =>
      (search.get("unresolved") !== "true" || alert["resolved"] === false) &&
      (search.get("resolved") !== "true" || alert["resolved"] !== false) &&
      (search.get("severity") ?? String(alert["severity"])).includes(String(alert["severity"])) &&
      ["node_id", "type"].every((name) => !search.has(name) || search.get(name) === alert[name]),
  );
  return { alerts: fitting.slice(0, Number(search.get("limit") ?? 1_000)), total: fitting.length };
}

function pageOf(users: readonly Record<string, unknown>[], search: URLSearchParams): object {
  const wanted = search.get("q") ?? "";
  const node = search.get("node");
  const isLockedAlone = search.get("locked") === "true";
  const fitting = users.filter(
    (user) =>
      String(user["username"]).includes(wanted) &&
      (!search.has("username") || search.get("username") === user["username"]) &&
      (node === null || user["home_node_id"] === node) &&
      (!isLockedAlone || user["locked"] === true),
  );
  const from = Number(search.get("cursor") ?? 0);
  const to = from + Number(search.get("limit") ?? 200);
  return {
    users: fitting.slice(from, to),
    total_users: fitting.length,
    next_cursor: to < fitting.length ? String(to) : null,
  };
}

/** Further counters of a node that pages show in detail views. */
const COUNTS = {
  address: "127.0.0.1:50051",
  boot_id: "0123456789abcdef",
  mem_used_bytes: 2e9,
  mem_total_bytes: 8e9,
  chunk_count: 12_345,
  inode_free: 1e8,
  inode_total: 1.2e8,
  bytes_written_total: 9e11,
  bytes_read_total: 8e11,
  write_ops_total: 7e6,
  read_ops_total: 6e6,
  errors_total: 12,
  failed_writes_total: 7,
  failed_reads_total: 5,
  op_latency_write_ms_p50: 1.5,
  op_latency_write_ms_p95: 4.25,
  op_latency_write_ms_p99: 12.5,
  op_latency_read_ms_p50: 1.25,
  op_latency_read_ms_p95: 3.5,
  op_latency_read_ms_p99: 9.75,
  storage_failed: false,
  active_users: 4,
  trash_bytes: 1e9,
  staging_bytes: 0,
  quota_drift_bytes: 0,
  damaged_file_count: 0,
};

/** A healthy node with some fields changed. */
export function fakeNode(index: number, fields: Record<string, unknown> = {}): Record<string, unknown> {
  return {
    id: `n${index}`,
    name: `fs-${index}`,
    status: "online",
    stale: false,
    last_seen: 1_790_000_000,
    version: "0.1.0",
    git_commit: null,
    write_mbps: index % 90,
    read_mbps: index % 40,
    write_iops: 5,
    read_iops: 6,
    error_rate_pct: 0,
    disk_total_bytes: 1e12,
    disk_used_bytes: 4e11,
    disk_free_bytes: 6e11,
    disk_usage_percent: 40,
    reserve_bytes: 21_474_836_480,
    cpu_temp_celsius: 45,
    cpu_usage_percent: 12,
    mem_usage_percent: 25,
    load_avg_1m: 0.5,
    load_avg_5m: 0.4,
    uptime_seconds: 3_600,
    last_restart_unix: 1_790_000_000,
    cert_days_left: 80,
    clock_skew_ms: 3,
    users_assigned_count: 10,
    active_connections: 3,
    ...COUNTS,
    ...fields,
  };
}

/** A user with a tenth of the default quota used, with some fields changed. */
export function fakeUser(index: number, fields: Record<string, unknown> = {}): Record<string, unknown> {
  return {
    username: `user${index}@people.example`,
    quota_limit: 17_179_869_184,
    quota_source: "default",
    used_bytes: 1_717_986_918,
    live_bytes: 1_717_986_918,
    trash_bytes: 0,
    staging_bytes: 0,
    file_count: 3,
    inode_count: 5,
    inode_limit: 10_000_000,
    inode_limit_source: "default",
    usage_percent: 10,
    level: "ok",
    locked: false,
    home_node_id: "n1",
    home_node_name: "fs-1",
    last_active: null,
    full_in_days: null,
    ...fields,
  };
}

/** An open warning with some fields changed. */
export function fakeAlert(index: number, fields: Record<string, unknown> = {}): Record<string, unknown> {
  return {
    id: `a${index}`,
    timestamp: Math.floor(Date.now() / 1_000) - 60,
    severity: "warning",
    type: "clock_skew",
    title: `Alert ${index}`,
    message: `What alert ${index} says.`,
    resolved: false,
    key: `k${index}`,
    raised_count: 1,
    ...fields,
  };
}
