// A console that is nothing but answers, inside a browser's network: as many nodes and users as a test wants, and a socket in its hands.
import { readFile } from "node:fs/promises";
import { extname, join } from "node:path";
import { fileURLToPath } from "node:url";
import type { Page, Route, WebSocketRoute } from "playwright-core";

/** The pages as they are built. */
export const BUILT = fileURLToPath(new URL("../../dist/web/", import.meta.url));
const TYPES: Readonly<Record<string, string>> = {
  ".html": "text/html",
  ".js": "text/javascript",
  ".css": "text/css",
  ".svg": "image/svg+xml",
};
/** Where the pages stand; nothing listens there. */
export const FAKE_URL = "http://grove.test";

/** What the fake console tells. */
export interface FakeCluster {
  isOperator: boolean;
  nodes: Record<string, unknown>[];
  users: Record<string, unknown>[];
  alerts: Record<string, unknown>[];
}

/** A fake console behind one page. */
export interface FakeConsole {
  readonly cluster: FakeCluster;
  /** Paths that were asked for, the pages' own files too. */
  readonly asked: string[];
  /** How many sockets were opened so far. */
  opened(): number;
  /** What else is answered, by "METHOD /path"; a function is given the body. */
  readonly replies: Map<string, object | ((body: unknown) => object)>;
  /** What was asked on /ws/actions, the newest last. */
  readonly subscribed: unknown[];
  /** Sends a message to whoever follows something. */
  tell(type: string, seq: number, data: unknown): void;
  /** Closes the sockets that follow something; they come back. */
  cutTopics(): void;
  /** Sends a message over the open socket. */
  say(type: string, data: unknown): void;
  /** Sends a snapshot of the nodes as they are now. */
  snapshot(): void;
  /** Closes the socket, and refuses new ones until `isAway` is false again. */
  hangUp(code: number): void;
  isAway: boolean;
}

/** Puts the fake console before a page. */
export async function fakeConsole(page: Page, cluster: FakeCluster): Promise<FakeConsole> {
  let socket: WebSocketRoute | undefined;
  let opened = 0;
  let seq = 0;
  const topics = new Set<WebSocketRoute>();
  const self: FakeConsole = {
    cluster,
    asked: [],
    isAway: false,
    replies: new Map(),
    subscribed: [],
    tell(type, number, data) {
      const text = JSON.stringify({ v: 1, type, seq: number, ts: Date.now() / 1_000, data });
      for (const topic of topics) topic.send(text);
    },
    cutTopics() {
      for (const topic of topics) void topic.close({ code: 1012 });
      topics.clear();
    },
    opened: () => opened,
    say(type, data) {
      socket?.send(JSON.stringify({ v: 1, type, seq: ++seq, ts: Date.now() / 1_000, data }));
    },
    snapshot: () => self.say("metrics.snapshot", { nodes: cluster.nodes, cluster: totals(cluster) }),
    hangUp(code) {
      void socket?.close({ code });
      socket = undefined;
    },
  };
  await page.routeWebSocket(/\/ws\/cluster/, async (ws) => {
    opened++;
    if (self.isAway) return ws.close({ code: 1012 });
    socket = ws;
    self.say("hello", { server_version: "0", session_expires_at: null, resume_from_seq: 0 });
    self.snapshot();
  });
  await page.routeWebSocket(/\/ws\/actions/, (ws) => {
    topics.add(ws);
    ws.onMessage((text) => void self.subscribed.push(JSON.parse(String(text))));
    ws.onClose(() => void topics.delete(ws));
    ws.send(JSON.stringify({ v: 1, type: "hello", seq: 0, ts: 0, data: {} }));
  });
  await page.route(`${FAKE_URL}/**`, (route) => answer(self, route));
  return self;
}

async function answer(self: FakeConsole, route: Route): Promise<void> {
  const { pathname, searchParams } = new URL(route.request().url());
  self.asked.push(pathname);
  if (!pathname.startsWith("/api/")) return sendFile(route, pathname);
  if (self.isAway) return route.abort("connectionrefused");
  const own = self.replies.get(`${route.request().method()} ${pathname}`);
  const body =
    own === undefined
      ? replyTo(self.cluster, pathname, searchParams)
      : typeof own === "function"
        ? own(route.request().postDataJSON())
        : own;
  if (body === undefined) {
    return route.fulfill({
      status: 404,
      contentType: "application/problem+json",
      body: JSON.stringify({ code: "NOT_FOUND", detail: "There is nothing here.", status: 404 }),
    });
  }
  return route.fulfill({ contentType: "application/json", body: JSON.stringify(body) });
}

async function sendFile(route: Route, pathname: string): Promise<void> {
  const name = /^\/(?:assets\/|icon\.svg$)/.test(pathname) ? pathname : "index.html";
  await route.fulfill({
    contentType: TYPES[extname(name)] ?? "text/plain",
    body: await readFile(join(BUILT, name)),
  });
}

function totals({ nodes }: FakeCluster): object {
  return {
    nodes_total: nodes.length,
    nodes_online: nodes.filter((node) => node["status"] !== "offline").length,
    disk_total_bytes: nodes.length * 1e12,
    disk_used_bytes: nodes.length * 4e11,
  };
}

/** What a console answers to a GET; undefined for what it does not have. */
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
        cluster: totals(cluster),
        redacted: !isOperator,
        nodes,
        users: {},
        total_users: isOperator ? users.length : 0,
      };
    case "/api/alerts":
      return { alerts, total: alerts.length };
    case "/api/alerts/summary":
      return { critical: 0, warning: alerts.length, info: 0, total: alerts.length };
    case "/api/silences":
      return { silences: [] };
    case "/api/performance":
      return {
        nodes: nodes.map((node) => ({ ...node, node_id: node["id"], node_name: node["name"] })),
        cluster_write_mbps: 1,
        cluster_read_mbps: 1,
        cluster_write_iops: 1,
        cluster_read_iops: 1,
        cluster_error_rate_pct: 0,
      };
    case "/api/auth/sessions":
      return { sessions: [] };
    case "/api/actions/history":
      return { records: [], total: 0 };
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

function pageOf(users: readonly Record<string, unknown>[], search: URLSearchParams): object {
  const wanted = search.get("q") ?? "";
  const fitting = users.filter((user) => String(user["username"]).includes(wanted));
  const from = Number(search.get("cursor") ?? 0);
  const to = from + Number(search.get("limit") ?? 200);
  return {
    users: fitting.slice(from, to),
    total_users: fitting.length,
    next_cursor: to < fitting.length ? String(to) : null,
  };
}

/** A healthy node, but for some fields. */
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
    ...fields,
  };
}

/** A user with a tenth of the default quota used, but for some fields. */
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
    usage_percent: 10,
    level: "ok",
    home_node_id: "n1",
    home_node_name: "fs-1",
    last_active: null,
    full_in_days: null,
    ...fields,
  };
}

/** A warning that stands, but for some fields. */
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
