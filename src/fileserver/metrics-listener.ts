// The node's plain HTTP listener: /metrics, /health, /ready, /security-events, /audit (spec 4.4, D12, D22, D24, T8).
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AuditPage } from "#audit/audit-log.ts";
import { GroveError } from "#base/errors.ts";
import { METRICS_CONNECTIONS_MAX, METRICS_PORT_OFFSET, METRICS_REQUEST_TIMEOUT_MS } from "#base/limits.ts";
import { errorText, type Logger } from "#base/log.ts";
import { constantTimeEqual } from "#identity/constant-time.ts";
import { type FileserverMetrics, metricsJson, withoutUsers } from "#telemetry/metrics-document.ts";
import type { SecurityEvent } from "#telemetry/security-events.ts";

/** What the listener shows. */
export interface MetricsListenerDeps {
  readonly metrics: () => Promise<FileserverMetrics>;
  readonly securityEvents: () => readonly SecurityEvent[];
  /** Lines of the audit log behind a number (D24). */
  readonly audit: (after: number, limit: number) => Promise<AuditPage>;
  /** Why the node is not ready; empty when it is. */
  readonly notReady: () => readonly string[];
  /** SVC_METRICS_TOKEN: what tells of users is sent only with it (T8). Undefined: everything is sent. */
  readonly token: string | undefined;
  readonly log: Logger;
}

/** A listener that is up. */
export interface MetricsListener {
  readonly port: number;
  close(): Promise<void>;
}

/** The metrics port of a gRPC port (spec 4.4). Throws BAD_ARGUMENT for a port that leaves none (T6). */
export function metricsPortOf(grpcPort: number): number {
  const port = grpcPort - METRICS_PORT_OFFSET;
  if (port < 1) {
    throw new GroveError(
      "BAD_ARGUMENT",
      `the metrics port is the gRPC port minus ${METRICS_PORT_OFFSET}, so the gRPC port must be above ${METRICS_PORT_OFFSET} ` +
        `(42024 or above needs no privilege); ${grpcPort} is not`,
    );
  }
  return port;
}

/** Listens. Rejects with BAD_ARGUMENT when the port cannot be had. */
export async function startMetricsListener(
  deps: MetricsListenerDeps,
  address: { readonly host: string; readonly port: number },
): Promise<MetricsListener> {
  const server = createServer({ requestTimeout: METRICS_REQUEST_TIMEOUT_MS }, (request, response) => {
    answer(deps, request, response).catch((error: unknown) => {
      deps.log.error("metrics_failed", { error: errorText(error) });
      if (!response.headersSent) sendJson(response, 500, '{"error":"internal"}');
      else response.destroy();
    });
  });
  server.maxConnections = METRICS_CONNECTIONS_MAX;
  await listen(server, address);
  const bound = server.address();
  return {
    port: typeof bound === "object" && bound !== null ? bound.port : address.port,
    close: () => close(server),
  };
}

async function answer(
  deps: MetricsListenerDeps,
  request: IncomingMessage,
  response: ServerResponse,
): Promise<void> {
  if (request.method !== "GET" && request.method !== "HEAD") {
    response.setHeader("allow", "GET, HEAD");
    return sendJson(response, 405, '{"error":"only GET and HEAD"}');
  }
  switch (pathOf(request)) {
    case "/metrics": {
      const metrics = await deps.metrics();
      return sendJson(
        response,
        200,
        metricsJson(mayKnowUsers(deps, request) ? metrics : withoutUsers(metrics)),
      );
    }
    case "/health":
      return sendJson(response, 200, '{"status":"ok"}');
    case "/ready": {
      const reasons = deps.notReady();
      const isReady = reasons.length === 0;
      return sendJson(response, isReady ? 200 : 503, JSON.stringify({ ready: isReady, reasons }));
    }
    case "/audit":
      if (!mayKnowUsers(deps, request)) return refuseUnknown(response);
      return sendAudit(deps, request, response);
    case "/security-events":
      if (!mayKnowUsers(deps, request)) return refuseUnknown(response);
      return sendJson(response, 200, JSON.stringify({ events: deps.securityEvents() }));
    default:
      return sendJson(response, 404, '{"error":"no such path"}');
  }
}

function refuseUnknown(response: ServerResponse): void {
  response.setHeader("www-authenticate", "Bearer");
  sendJson(response, 401, '{"error":"a bearer token is needed"}');
}

/** `?after=` the number of the last line that is known, `&limit=` up to 1,000. The lines stand in the answer as they were written. */
async function sendAudit(
  deps: MetricsListenerDeps,
  request: IncomingMessage,
  response: ServerResponse,
): Promise<void> {
  const query = new URL(request.url ?? "", "http://node").searchParams;
  const [after, limit] = [wholeNumber(query.get("after") ?? "0"), wholeNumber(query.get("limit") ?? "1000")];
  if (after === undefined || limit === undefined || limit < 1) {
    return sendJson(response, 400, '{"error":"after and limit are whole numbers, limit from 1 up"}');
  }
  const { lines, nextAfter, headSeq } = await deps.audit(after, limit);
  const entries = lines.join(",\n");
  return sendJson(
    response,
    200,
    `{"entries":[${entries}],"next_after":${nextAfter},"head_seq":${headSeq},"complete":${nextAfter >= headSeq}}`,
  );
}

function wholeNumber(text: string): number | undefined {
  return /^\d{1,15}$/.test(text) ? Number(text) : undefined;
}

function pathOf(request: IncomingMessage): string {
  return (request.url ?? "").split("?", 1)[0] ?? "";
}

function mayKnowUsers(deps: MetricsListenerDeps, request: IncomingMessage): boolean {
  if (deps.token === undefined) return true;
  const match = /^bearer +(.+)$/i.exec(request.headers.authorization ?? "");
  return match?.[1] !== undefined && constantTimeEqual(match[1], deps.token);
}

function sendJson(response: ServerResponse, status: number, body: string): void {
  response.writeHead(status, {
    "content-type": "application/json; charset=utf-8",
    "content-length": Buffer.byteLength(body),
    "cache-control": "no-store",
  });
  // Node drops the body of an answer to HEAD by itself.
  response.end(body);
}

function listen(server: Server, address: { readonly host: string; readonly port: number }): Promise<void> {
  return new Promise((resolve, reject) => {
    server.once("error", (cause) =>
      reject(
        new GroveError("BAD_ARGUMENT", `cannot listen for metrics on ${address.host}:${address.port}`, {
          cause,
        }),
      ),
    );
    server.listen(address.port, address.host, resolve);
  });
}

function close(server: Server): Promise<void> {
  return new Promise((resolve) => {
    server.close(() => resolve());
    server.closeAllConnections();
  });
}
