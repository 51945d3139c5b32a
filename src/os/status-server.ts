// The plain HTTP server of /metrics and /health, with limits on time and connections, also per address.
import type { IncomingMessage, Server, ServerResponse } from "node:http";
import type { Socket } from "node:net";
import type { Clock } from "#base/clock.ts";
import { networkOf } from "#base/network.ts";
import type { HostPort } from "#base/node-id.ts";
import { createServer } from "./http.ts";
import { listenWithRetries } from "./listen-retry.ts";
import { UnansweredRequests } from "./unanswered-requests.ts";

/** Connections of the metrics listener at once. */
const METRICS_CONNECTIONS_MAX = 64;
/** Time in which a request to the metrics listener must arrive. */
const METRICS_REQUEST_TIMEOUT_MS = 10_000;
/** How long the metrics listener keeps an idle connection: longer than the console's poll interval. */
const METRICS_KEEP_ALIVE_MS = 15_000;
/** Connections of one address to the metrics listener, so that one visitor cannot shut the others out. */
const METRICS_CONNECTIONS_PER_ADDRESS = 16;
/** Answers of the metrics listener under way at once; more are answered 503. */
const METRICS_ANSWERS_MAX = 16;
/** Time in which a client must take an answer of the metrics listener. */
const METRICS_ANSWER_TIMEOUT_MS = 15_000;

/** Handlers and clock of the status server. */
export interface StatusServerDeps {
  readonly answer: (request: IncomingMessage, response: ServerResponse) => Promise<void>;
  /** Answers a request whose handler failed before the answer began. */
  readonly failed: (error: unknown, response: ServerResponse) => void;
  readonly clock: Clock;
  /** Ends the error about a port that stays taken. */
  readonly otherwise: string;
}

/** A running server. */
export interface StatusServer {
  /** Holds the actual port where port 0 was requested. */
  readonly address: HostPort;
  close(): Promise<void>;
}

/** Listens. Rejects with BAD_ARGUMENT when the port is not available. */
export async function serveStatus(deps: StatusServerDeps, address: HostPort): Promise<StatusServer> {
  let answering = 0;
  const unanswered = new UnansweredRequests();
  const server = createServer(SERVER_OPTIONS, (request, response) => {
    if (!unanswered.take(request, response)) return;
    if (answering >= METRICS_ANSWERS_MAX) return sendBusy(response);
    answering++;
    // A client that never reads would hold its answer, and a place, for ever.
    const giveUp = deps.clock.after(METRICS_ANSWER_TIMEOUT_MS, () => response.destroy());
    response.once("close", () => {
      answering--;
      giveUp();
    });
    deps.answer(request, response).catch((error: unknown) => {
      if (response.headersSent) response.destroy();
      else deps.failed(error, response);
    });
  });
  server.maxConnections = METRICS_CONNECTIONS_MAX;
  boundPerAddress(server);
  await listen(server, address, deps.otherwise);
  const bound = server.address();
  const port = typeof bound === "object" && bound !== null ? bound.port : address.port;
  return { address: { host: address.host, port }, close: () => close(server) };
}

const SERVER_OPTIONS = {
  requestTimeout: METRICS_REQUEST_TIMEOUT_MS,
  headersTimeout: METRICS_REQUEST_TIMEOUT_MS,
  connectionsCheckingInterval: METRICS_REQUEST_TIMEOUT_MS / 5,
  keepAliveTimeout: METRICS_KEEP_ALIVE_MS,
} as const;

const BUSY = '{"error":"too many requests at once"}';

function sendBusy(response: ServerResponse): void {
  response.writeHead(503, {
    "content-type": "application/json; charset=utf-8",
    "content-length": BUSY.length,
    "cache-control": "no-store",
    "retry-after": "1",
  });
  response.end(BUSY);
}

/** Closes connections of one address beyond its share, so that it cannot take every place. */
function boundPerAddress(server: Server): void {
  const open = new Map<string, number>();
  server.on("connection", (socket: Socket) => {
    const address = networkOf(socket.remoteAddress ?? "");
    const count = (open.get(address) ?? 0) + 1;
    if (count > METRICS_CONNECTIONS_PER_ADDRESS) {
      socket.destroy();
      return;
    }
    open.set(address, count);
    socket.once("close", () => {
      const left = (open.get(address) ?? 1) - 1;
      if (left === 0) open.delete(address);
      else open.set(address, left);
    });
  });
}

function listen(server: Server, address: HostPort, otherwise: string): Promise<void> {
  const once = (): Promise<void> =>
    new Promise((resolve, reject) => {
      server.once("error", reject);
      server.listen(address.port, address.host, () => {
        server.off("error", reject);
        resolve();
      });
    });
  return listenWithRetries(address, { listen: once, purpose: " for metrics", otherwise });
}

function close(server: Server): Promise<void> {
  return new Promise((resolve) => {
    server.close(() => resolve());
    server.closeAllConnections();
  });
}
