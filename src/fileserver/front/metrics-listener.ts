// A node's HTTP listener: /metrics, /health, /ready, /security-events, /audit (spec 4.4, D12, D22, D25, T8).
import type { IncomingMessage, ServerResponse } from "node:http";
import type { Clock } from "#base/clock.ts";
import { constantTimeEqual } from "#base/constant-time.ts";
import { errorText, type Logger } from "#base/log.ts";
import type { HostPort } from "#base/node-id.ts";
import { type StatusServer, serveStatus } from "#os/status-server.ts";
import type { AuditPage } from "#security/audit/audit-log.ts";
import { METRICS_FORMS, METRICS_TYPES, type MetricsTypes, preferredType } from "#telemetry/accept.ts";
import { metricsDifference, metricsJson } from "#telemetry/metrics-json.ts";
import { PROMETHEUS_TYPES } from "#telemetry/prometheus-form.ts";
import { prometheusText } from "#telemetry/prometheus-text.ts";
import type { SecurityEvent } from "#telemetry/security-events.ts";
import type { KnownHost } from "./known-host.ts";
import type { NodeReadings } from "./node-metrics.ts";

/** Sources of the listener's answers. */
export interface MetricsListenerDeps {
  readonly metrics: () => Promise<NodeReadings>;
  readonly securityEvents: () => readonly SecurityEvent[];
  /** Lines of the audit log after a number (D24). */
  readonly audit: (after: number, limit: number) => Promise<AuditPage>;
  /** Why the node is not ready; empty when it is. */
  readonly notReady: () => readonly string[];
  /** SVC_METRICS_TOKEN, required for facts about users (T8). Undefined: everything is sent to known hosts. */
  readonly token: string | undefined;
  /** The names under which facts about users are told without a token. */
  readonly isKnownHost: KnownHost;
  readonly clock: Clock;
  readonly log: Logger;
}

/** Listens. Rejects with BAD_ARGUMENT when the port is not available. */
export function startMetricsListener(deps: MetricsListenerDeps, address: HostPort): Promise<StatusServer> {
  const { clock, log } = deps;
  const failed = (error: unknown, response: ServerResponse): void => {
    log.error("metrics_failed", { error: errorText(error) });
    sendJson(response, 500, '{"error":"internal"}');
  };
  return serveStatus(
    {
      clock,
      failed,
      answer: (request, response) => answer(deps, request, response),
      otherwise: "choose another gRPC port, which is this one plus 41000",
    },
    address,
  );
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
    case "/metrics":
      return sendMetrics(deps, request, response, METRICS_TYPES);
    case "/metrics/prometheus":
      return sendMetrics(deps, request, response, ["text/plain", "application/openmetrics-text"]);
    case "/health":
      return sendJson(response, 200, '{"status":"ok"}');
    case "/ready": {
      const reasons = deps.notReady();
      const isReady = reasons.length === 0;
      return sendJson(response, isReady ? 200 : 503, JSON.stringify({ ready: isReady, reasons }));
    }
    case "/audit":
      if (!mayKnowUsers(deps, request)) return refuseUnknown(deps, response);
      return sendAudit(deps, request, response);
    case "/security-events":
      if (!mayKnowUsers(deps, request)) return refuseUnknown(deps, response);
      return sendJson(response, 200, JSON.stringify({ events: deps.securityEvents() }));
    default:
      return sendJson(response, 404, '{"error":"no such path"}');
  }
}

function refuseUnknown({ token }: MetricsListenerDeps, response: ServerResponse): void {
  if (token === undefined) return sendJson(response, 421, '{"error":"the node is not known as this host"}');
  response.setHeader("www-authenticate", "Bearer");
  sendJson(response, 401, '{"error":"a bearer token is needed"}');
}

/** `?after=` is the last known line number, `&limit=` at most 1,000. The answer has the lines as written. */
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

const JSON_TYPE = "application/json";
async function sendMetrics(
  deps: MetricsListenerDeps,
  request: IncomingMessage,
  response: ServerResponse,
  types: MetricsTypes,
): Promise<void> {
  const readings = await deps.metrics();
  const { node, users } = readings;
  const mayKnow = mayKnowUsers(deps, request);
  response.setHeader("vary", "Accept, Authorization");
  const form = METRICS_FORMS[preferredType(request.headers.accept, types)];
  if (form !== undefined) {
    return send(
      response,
      200,
      PROMETHEUS_TYPES[form],
      prometheusText(node, form, mayKnow ? users : undefined),
    );
  }
  const pieces = mayKnow ? documentSince(readings, sinceOf(request)) : metricsJson(node);
  if (mayKnow) response.setHeader("etag", `"${users.takeVersion()}"`);
  send(response, 200, `${JSON_TYPE}; charset=utf-8`, pieces);
}

/** The difference to the answer of that version, the whole document for an unknown one (D25). */
function documentSince({ node, users, guarded }: NodeReadings, version: string | null): readonly Buffer[] {
  const answer = users.answerOf(version);
  return answer === undefined || version === null
    ? metricsJson(node, users, guarded)
    : metricsDifference(node, users, guarded, { version, answer });
}

function sinceOf(request: IncomingMessage): string | null {
  return new URLSearchParams((request.url ?? "").split("?", 2)[1]).get("since");
}

function pathOf(request: IncomingMessage): string {
  return (request.url ?? "").split("?", 1)[0] ?? "";
}

function mayKnowUsers(deps: MetricsListenerDeps, request: IncomingMessage): boolean {
  if (deps.token === undefined) return deps.isKnownHost(request.headers.host, request.socket.localAddress);
  const match = /^bearer +(.+)$/i.exec(request.headers.authorization ?? "");
  return match?.[1] !== undefined && constantTimeEqual(match[1], deps.token);
}

function sendJson(response: ServerResponse, status: number, body: string): void {
  send(response, status, `${JSON_TYPE}; charset=utf-8`, [Buffer.from(body)]);
}

function send(response: ServerResponse, status: number, type: string, pieces: readonly Buffer[]): void {
  let length = 0;
  for (const piece of pieces) length += piece.length;
  response.writeHead(status, { "content-type": type, "content-length": length, "cache-control": "no-store" });
  // One system call for many pieces. Node drops the body of an answer to HEAD by itself.
  response.cork();
  for (const piece of pieces) response.write(piece);
  response.end();
  response.uncork();
}
