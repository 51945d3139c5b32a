// /health, /ready and /metrics of the console, GET /api/version and the OpenAPI document (D12, D18).
import type { FastifyRequest } from "fastify";
import { z } from "zod";
import { constantTimeEqual } from "#base/constant-time.ts";
import { VERSION } from "#base/version.ts";
import { type ConsoleMetrics } from "#console/http/console-metrics.ts";
import { factsOf } from "#console/http/guard.ts";
import { openApiDocument } from "#console/http/openapi.ts";
import { type App, ProblemError, sendJson, viewerOf } from "#console/http/route.ts";
import { gitCommit } from "#os/git-commit.ts";
import { METRICS_FORMS, METRICS_TYPES, preferredType } from "#telemetry/accept.ts";
import { PROMETHEUS_TYPES } from "#telemetry/prometheus-form.ts";
import { versionReply } from "#wire/webapi/auth.ts";
import { type SettingsReply, settingsReply } from "#wire/webapi/settings.ts";

/** Dependencies of the routes. */
export interface StatusDeps {
  readonly metrics: ConsoleMetrics;
  /** Bearer token that also opens /metrics (T8). */
  readonly metricsToken: string | undefined;
  /** The answer of GET /api/settings. */
  readonly settings: () => SettingsReply;
  /** Reasons why the console is not ready, evaluated at each request. */
  readonly unready: readonly (() => Obstacle | undefined)[];
}

/** A reason why the console is not ready. */
export interface Obstacle {
  readonly text: string;
  /** The system's message; visitors do not get it, since it may name folders and users of this machine. */
  readonly detail?: string;
}

/** Registers /health, /ready, /metrics, /metrics/prometheus, /api/version and /api/openapi.json. */
export function statusRoutes(app: App, deps: StatusDeps): void {
  const anybody = { config: { auth: "public" as const } };
  app.get("/health", anybody, () => ({ status: "ok" }));
  app.get("/ready", anybody, (request, reply) => {
    const isReader = mayRead(deps, request);
    const reasons = deps.unready.flatMap((obstacle) => {
      const { text, detail } = obstacle() ?? {};
      return text === undefined ? [] : [detail === undefined || !isReader ? text : `${text}: ${detail}`];
    });
    reply.header("cache-control", "no-store");
    return reply.code(reasons.length === 0 ? 200 : 503).send({ ready: reasons.length === 0, reasons });
  });
  app.get("/metrics", anybody, (request, reply) => {
    requireReader(deps, request);
    reply.header("cache-control", "no-store").header("vary", "Accept, Cookie, Authorization");
    const form = METRICS_FORMS[preferredType(request.headers.accept, METRICS_TYPES)];
    if (form === undefined) return deps.metrics.document();
    return reply.type(PROMETHEUS_TYPES[form]).send(deps.metrics.prometheus(form));
  });
  app.get("/metrics/prometheus", anybody, (request, reply) => {
    requireReader(deps, request);
    reply.header("cache-control", "no-store");
    return reply.type(PROMETHEUS_TYPES.text).send(deps.metrics.prometheus("text"));
  });
  app.get(
    "/api/version",
    {
      config: { auth: "public" },
      schema: {
        operationId: "getVersion",
        summary: "Version of the console and of this interface",
        tags: ["about"],
        response: { 200: versionReply },
      },
    },
    () => ({ version: VERSION, git_commit: gitCommit(), api: "1" as const, min_client: OLDEST_CLIENT }),
  );
  app.get(
    "/api/settings",
    {
      config: { auth: "operator" },
      schema: {
        operationId: "getSettings",
        summary: "What the console runs with",
        tags: ["about"],
        response: { 200: settingsReply },
      },
    },
    () => deps.settings(),
  );
  describeRoute(app);
}

/** Clients one minor version behind are served (decision D18). */
const OLDEST_CLIENT: string = VERSION.replace(
  /^(\d+)\.(\d+)\..*$/,
  (_all, major: string, minor: string) => `${major}.${Math.max(0, Number(minor) - 1)}.0`,
);

function describeRoute(app: App): void {
  let kept: Buffer | undefined;
  app.get(
    "/api/openapi.json",
    {
      config: { auth: "public" },
      schema: {
        operationId: "getOpenApi",
        summary: "This description",
        tags: ["about"],
        response: { 200: z.record(z.string(), z.unknown()) },
      },
    },
    (_request, reply) => {
      kept ??= Buffer.from(JSON.stringify(openApiDocument(app)));
      sendJson(reply, kept);
    },
  );
}

/**
 * True for operators, this machine's processes and the nodes' metrics token; visitors learn nothing of
 * sessions.
 */
function mayRead(deps: StatusDeps, request: FastifyRequest): boolean {
  const bearer = request.credential?.from === "header" ? request.credential.token : "";
  const hasToken = deps.metricsToken !== undefined && constantTimeEqual(bearer, deps.metricsToken);
  return hasToken || factsOf(request).isLoopback || viewerOf(request).kind === "operator";
}

function requireReader(deps: StatusDeps, request: FastifyRequest): void {
  if (mayRead(deps, request)) return;
  throw new ProblemError(
    "AUTH_REQUIRED",
    "for operators, for this machine, and with the bearer token in SVC_METRICS_TOKEN",
  );
}
