// A console with the built pages that plays an hour on demand: each snapshot is five seconds after the last.
import { readFile } from "node:fs/promises";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { extname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { WebSocketServer } from "ws";
import { serveTasks } from "#bench/tasks.ts";
import { type FakeCluster, fakeAlert, fakeNode, fakeUser, replyTo, totalsOf } from "#testing/fake-cluster.ts";
import { HISTORY_COLUMNS } from "#wire/webapi/performance.ts";

const BUILT = fileURLToPath(new URL("../../dist/web/", import.meta.url));
const TYPES: Readonly<Record<string, string>> = {
  ".html": "text/html",
  ".js": "text/javascript",
  ".css": "text/css",
  ".svg": "image/svg+xml",
};
const STEP_SECONDS = 5;
const POINTS = 720;
const ALERTS = 20;
/** One user in this many has written since the snapshot before. */
const WRITING_SHARE = 20;

let nowSeconds = 0;
let seq = 0;
let cluster: FakeCluster = { isOperator: true, nodes: [], users: [], alerts: [] };
const sockets = new WebSocketServer({ noServer: true });

function message(type: string, data: object): string {
  return JSON.stringify({ v: 1, type, seq: ++seq, ts: nowSeconds, data });
}

const snapshot = (): string =>
  message("metrics.snapshot", { nodes: cluster.nodes, cluster: totalsOf(cluster) });

/** Advances each node and user by five seconds. */
function pass(): void {
  nowSeconds += STEP_SECONDS;
  const turn = nowSeconds / STEP_SECONDS;
  for (const [index, node] of cluster.nodes.entries()) {
    node["last_seen"] = nowSeconds;
    node["uptime_seconds"] = Number(node["uptime_seconds"]) + STEP_SECONDS;
    node["write_mbps"] = (index + turn) % 90;
    node["read_mbps"] = (index * 3 + turn) % 40;
    node["cpu_usage_percent"] = (index + turn) % 100;
    node["load_avg_1m"] = ((index + turn) % 40) / 10;
    node["bytes_written_total"] = Number(node["bytes_written_total"]) + 1e6 * turn;
  }
  for (let index = turn % WRITING_SHARE; index < cluster.users.length; index += WRITING_SHARE) {
    const user = cluster.users[index];
    if (user === undefined) continue;
    user["used_bytes"] = Number(user["used_bytes"]) + 4_096;
    user["last_active"] = nowSeconds;
  }
}

function historyOf(id: string): object {
  const points = Array.from({ length: POINTS }, (_, index) => {
    const ts = nowSeconds - (POINTS - 1 - index) * STEP_SECONDS;
    return HISTORY_COLUMNS.map((column, place) => (column === "ts" ? ts : (index * place) % 90));
  });
  const span = { from: nowSeconds - POINTS * STEP_SECONDS, to: nowSeconds };
  return { node_id: id, interval_seconds: STEP_SECONDS, ...span, columns: HISTORY_COLUMNS, points };
}

const server = createServer((request, response) => {
  const { pathname, searchParams } = new URL(request.url ?? "/", "http://localhost");
  if (pathname.startsWith("/api/")) {
    const reply = pathname.startsWith("/api/history/")
      ? historyOf(pathname.slice("/api/history/".length))
      : replyTo(cluster, pathname, searchParams);
    response.writeHead(reply === undefined ? 404 : 200, { "content-type": "application/json" });
    response.end(JSON.stringify(reply ?? {}));
    return;
  }
  const name = /^\/(?:assets\/[\w.-]+|icon\.svg)$/.test(pathname) ? pathname : "/index.html";
  void readFile(join(BUILT, name)).then(
    (bytes) => response.writeHead(200, { "content-type": TYPES[extname(name)] ?? "text/plain" }).end(bytes),
    () => response.writeHead(404).end(),
  );
});
server.on("upgrade", (request, socket, head) => {
  sockets.handleUpgrade(request, socket, head, (opened) => {
    opened.send(message("hello", { server_version: "0", session_expires_at: null, resume_from_seq: 0 }));
    if (request.url?.startsWith("/ws/cluster") === true) opened.send(snapshot());
  });
});

serveTasks(
  {
    // Input: numbers of nodes and users and the start of the hour; answers the port.
    serve: async (input) => {
      const { nodes, users, fromSeconds } = input as { nodes: number; users: number; fromSeconds: number };
      nowSeconds = fromSeconds;
      cluster = {
        isOperator: true,
        nodes: Array.from({ length: nodes }, (_, index) => fakeNode(index)),
        users: Array.from({ length: users }, (_, index) => fakeUser(index)),
        alerts: Array.from({ length: ALERTS }, (_, index) => fakeAlert(index, { timestamp: fromSeconds })),
      };
      await new Promise<void>((resolve) => {
        server.listen({ port: 0, host: "127.0.0.1" }, resolve);
      });
      return (server.address() as AddressInfo).port;
    },
    // Five seconds later.
    step: () => {
      pass();
      const text = snapshot();
      for (const socket of sockets.clients) socket.send(text);
      return null;
    },
  },
  () => {
    for (const socket of sockets.clients) socket.terminate();
    server.closeAllConnections();
    server.close();
  },
);
