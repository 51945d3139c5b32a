// Fake nodes for tests: a metrics listener that answers honestly or lies in every way (M-05).
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { Socket } from "node:net";
import { stringify64 } from "./json64.ts";
import { METRICS_PORT_OFFSET } from "./metrics-port.ts";

/** One user on a fake node. */
export interface FakeUser {
  readonly name: string;
  readonly usedBytes?: bigint | number;
  readonly quotaBytes?: bigint | number;
  readonly lastActiveUnix?: number | null;
  readonly quotaExplicit?: boolean;
}

/** Answers a request; `text` is the document of an honest node. */
export type Behaviour = (request: IncomingMessage, response: ServerResponse, text: string) => void;

/** A fake node. */
export interface FakeNode {
  readonly id: string;
  /** The gRPC address of its metrics listener; it has no listener of its own. */
  readonly address: string;
  readonly metricsUrl: string;
  /** Requests so far, such as "GET /metrics", newest last. */
  readonly requests: readonly string[];
  /** Fields of its document that differ from a healthy node's; undefined leaves one out. */
  fields: Readonly<Record<string, unknown>>;
  users: readonly FakeUser[];
  /** Its answer to /security-events. */
  events: readonly unknown[];
  /** `security_events_total` in its document; undefined for a node that does not count them. */
  eventsTotal: number | undefined;
  /** Never answers /security-events. */
  hangsOnEvents: boolean;
  /** Its answer to /metrics; undefined for an honest one. */
  behaviour: Behaviour | undefined;
  /** Token that requests need to see users. */
  token: string | undefined;
  close(): Promise<void>;
}

/** Starts a fake node on 127.0.0.1, at a port to which a gRPC port belongs. */
export async function startFakeNode(id: string, users: readonly FakeUser[] = []): Promise<FakeNode> {
  const requests: string[] = [];
  const node = {
    id,
    requests,
    fields: {} as Readonly<Record<string, unknown>>,
    users,
    events: [] as readonly unknown[],
    eventsTotal: undefined as number | undefined,
    hangsOnEvents: false,
    behaviour: undefined as Behaviour | undefined,
    token: undefined as string | undefined,
  };
  const sockets = new Set<Socket>();
  const server = createServer((request, response) => {
    requests.push(`${request.method} ${request.url}`);
    answer(node, request, response);
  });
  server.on("connection", (socket) => {
    sockets.add(socket);
    socket.once("close", () => sockets.delete(socket));
    socket.on("error", () => undefined);
  });
  const port = await listenLow(server);
  return Object.assign(node, {
    address: `127.0.0.1:${port + METRICS_PORT_OFFSET}`,
    metricsUrl: `http://127.0.0.1:${port}`,
    async close() {
      const closed = new Promise((resolve) => server.close(resolve));
      for (const socket of sockets) socket.destroy();
      await closed;
    },
  });
}

function answer(
  node: Pick<
    FakeNode,
    "fields" | "users" | "events" | "eventsTotal" | "hangsOnEvents" | "behaviour" | "token"
  >,
  request: IncomingMessage,
  response: ServerResponse,
): void {
  const mayKnow = node.token === undefined || request.headers.authorization === `Bearer ${node.token}`;
  if (request.url === "/security-events") {
    if (node.hangsOnEvents) return;
    if (!mayKnow) return send(response, 401, '{"error":"a bearer token is needed"}');
    return send(response, 200, stringify64({ events: node.events }));
  }
  const text = documentText({
    fields: node.fields,
    users: mayKnow ? node.users : undefined,
    eventsTotal: node.eventsTotal,
  });
  if (node.behaviour === undefined) send(response, 200, text);
  else node.behaviour(request, response, text);
}

/** Sends JSON as a node does. */
export function send(response: ServerResponse, status: number, body: string | Buffer): void {
  response.writeHead(status, {
    "content-type": "application/json; charset=utf-8",
    "content-length": Buffer.byteLength(body),
    "cache-control": "no-store",
  });
  response.end(body);
}

/** A document in the layout of real nodes: single fields, then maps of users, if there are `users` (T8). */
export function documentText(options: {
  readonly fields?: Readonly<Record<string, unknown>>;
  readonly users?: readonly FakeUser[] | undefined;
  /** Number of recorded security events; undefined for a node that does not count them. */
  readonly eventsTotal?: number | undefined;
  /** Users that the node lists as near their quota; undefined for a node that does not list any. */
  readonly near?: readonly FakeUser[];
}): string {
  const head = stringify64({ ...HEALTHY, ...options.fields });
  if (options.users === undefined) return head;
  const counted = options.eventsTotal === undefined ? "" : `,"security_events_total":${options.eventsTotal}`;
  const entries = (valueOf: (user: FakeUser) => unknown, users = options.users): string =>
    stringify64(Object.fromEntries(users?.map((user) => [user.name, valueOf(user)]) ?? []));
  const near =
    options.near === undefined
      ? ""
      : `,"near_quota_storage":${entries((user) => user.usedBytes ?? 0, options.near)}` +
        `,"near_quota_limit":${entries((user) => user.quotaBytes ?? 17_179_869_184, options.near)}`;
  return (
    `${head.slice(0, -1)}${counted},"damaged_files":[]${near}` +
    `,"per_user_storage":${entries((user) => user.usedBytes ?? 0)}` +
    `,"per_user_quota":${entries((user) => user.quotaBytes ?? 17_179_869_184)}` +
    `,"per_user_detail":${entries((user) => ({
      live_bytes: user.usedBytes ?? 0,
      trash_bytes: 0,
      staging_bytes: 0,
      file_count: 1,
      inode_count: 2,
      inode_limit: 10_000_000,
      inode_limit_explicit: false,
      last_active_unix: user.lastActiveUnix ?? null,
      quota_explicit: user.quotaExplicit ?? user.quotaBytes !== undefined,
    }))}}`
  );
}

/** Users with names of a usual length. */
export function fakeUsers(count: number, prefix = "user"): FakeUser[] {
  return Array.from({ length: count }, (_, index) => ({
    name: `${prefix}${index}@people.example`,
    usedBytes: index * 1_000_003,
    lastActiveUnix: 1_790_000_000 + index,
  }));
}

const HEALTHY: Readonly<Record<string, unknown>> = {
  disk_total_bytes: 1_000_000_000_000,
  disk_used_bytes: 400_000_000_000,
  disk_free_bytes: 600_000_000_000,
  disk_usage_percent: 40,
  users_assigned_count: 0,
  active_users: 0,
  cpu_temp_celsius: 45.5,
  cpu_usage_percent: 12.5,
  mem_used_bytes: 2_000_000_000,
  mem_total_bytes: 8_000_000_000,
  mem_usage_percent: 25,
  load_avg_1m: 0.5,
  load_avg_5m: 0.25,
  uptime_seconds: 3_600,
  last_restart_unix: 1_789_996_400,
  chunk_count: 1_000,
  active_connections: 3,
  bytes_written_total: 10_000_000,
  bytes_read_total: 20_000_000,
  write_ops_total: 1_000,
  read_ops_total: 2_000,
  errors_total: 0,
  failed_writes_total: 0,
  failed_reads_total: 0,
  refused_total: 0,
  op_latency_write_ms_p50: 2.25,
  op_latency_write_ms_p95: 5,
  op_latency_write_ms_p99: 9,
  op_latency_write_samples: 1_000,
  op_latency_write_ms_sum: 2_500,
  op_latency_read_ms_p50: 1,
  op_latency_read_ms_p95: 3,
  op_latency_read_ms_p99: 7,
  op_latency_read_samples: 1_024,
  op_latency_read_ms_sum: 2_400,
  version: "0.1.0",
  git_commit: "0123456789abcdef0123456789abcdef01234567",
  boot_id: "6f9e3c3e-0000-4000-8000-000000000001",
  inode_free: 1_000_000,
  inode_total: 1_200_000,
  reserve_bytes: 21_474_836_480,
  trash_bytes: 0,
  staging_bytes: 0,
  quota_drift_bytes: 0,
  cert_days_left: 80,
  clock_skew_ms: 3,
  auth_mock: false,
  storage_failed: false,
  damaged_file_count: 0,
  damage_found_total: 0,
  scrub_running: false,
  scrub_part: null,
  scrub_pass_started_unix: null,
  scrub_pass_read_bytes: 0,
  scrub_pass_found: 0,
  scrub_last_pass_unix: null,
  scrub_last_pass_bytes: 0,
  scrub_last_pass_found: 0,
  users_truncated: false,
};

/** Ports that need no privilege and have a gRPC port. */
const LOWEST_PORT = 1_024;
const HIGHEST_PORT = 65_535 - METRICS_PORT_OFFSET;
const TRIES_MAX = 100;

async function listenLow(server: Server): Promise<number> {
  for (let tries = 0; tries < TRIES_MAX; tries++) {
    const port = LOWEST_PORT + Math.floor(Math.random() * (HIGHEST_PORT - LOWEST_PORT));
    const isListening = await new Promise<boolean>((resolve) => {
      server.once("error", () => resolve(false));
      server.listen(port, "127.0.0.1", () => resolve(true));
    });
    server.removeAllListeners("error");
    if (isListening) return port;
  }
  throw new Error("no free port for a fake node");
}
