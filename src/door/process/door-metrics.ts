// A door's own HTTP listener: /health, /ready, and /metrics with its load; plain, for its operator.
import type { IncomingMessage, ServerResponse } from "node:http";
import type { Clock } from "#base/clock.ts";
import { errorText, type Logger } from "#base/log.ts";
import type { HostPort } from "#base/node-id.ts";
import { VERSION } from "#base/version.ts";
import type { Connections } from "#door/http/connections.ts";
import type { Front } from "#door/http/front.ts";
import { type StatusServer, serveStatus } from "#os/status-server.ts";

/** Sources of the answers. */
export interface DoorMetricsDeps {
  readonly front: Front;
  readonly connections: Connections;
  /** Whole days until the certificates end; null without one. */
  readonly daysLeft: () => { readonly public: number | null; readonly cluster: number | null };
  /** False once it stops. */
  readonly isReady: () => boolean;
  readonly clock: Clock;
  readonly log: Logger;
}

/** Listens. Rejects with BAD_ARGUMENT when the port is not available. */
export function startDoorMetrics(deps: DoorMetricsDeps, address: HostPort): Promise<StatusServer> {
  const startedMs = deps.clock.steadyMs();
  return serveStatus(
    {
      clock: deps.clock,
      otherwise: "choose another with -metrics",
      failed: (error, response) => {
        deps.log.warn("metrics_failed", { error: errorText(error) });
        send(response, 500, { error: "an error of the door; its log tells more" });
      },
      answer: async (request, response) => answer(deps, startedMs, request, response),
    },
    address,
  );
}

function answer(
  deps: DoorMetricsDeps,
  startedMs: number,
  request: IncomingMessage,
  response: ServerResponse,
): void {
  if (request.method !== "GET" && request.method !== "HEAD") {
    response.setHeader("allow", "GET, HEAD");
    return send(response, 405, { error: "only GET and HEAD" });
  }
  const { front, connections, clock } = deps;
  switch ((request.url ?? "").split("?", 1)[0]) {
    case "/health":
      return send(response, 200, { status: "ok" });
    case "/ready":
      return send(response, deps.isReady() ? 200 : 503, { ready: deps.isReady() });
    case "/metrics": {
      const days = deps.daysLeft();
      return send(response, 200, {
        version: VERSION,
        uptime_seconds: Math.floor((clock.steadyMs() - startedMs) / 1_000),
        cert_days_left: days.cluster,
        public_cert_days_left: days.public,
        connections: connections.size,
        connections_turned_away: connections.turnedAway,
        requests: front.load.underWay,
        requests_waiting: front.load.waiting,
        bytes_received: front.traffic.in,
        bytes_sent: front.traffic.out,
        answers: Object.fromEntries([...front.answered].sort(([a], [b]) => a - b)),
      });
    }
    default:
      return send(response, 404, { error: "no such path" });
  }
}

function send(response: ServerResponse, status: number, document: unknown): void {
  const body = JSON.stringify(document);
  response.writeHead(status, {
    "content-type": "application/json; charset=utf-8",
    "content-length": Buffer.byteLength(body),
    "cache-control": "no-store",
  });
  response.end(body);
}
