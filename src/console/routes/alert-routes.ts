// The routes below /api/alerts: list, count, acknowledge and resolve alerts (spec 4.1, 5.8.4, decision D11).
import type { FastifyRequest } from "fastify";
import type { AuditSink } from "#base/audit-act.ts";
import { type App, operatorOf, ProblemError, viewerOf } from "#console/http/route.ts";
import type { AlertService } from "#console/services/alert-service.ts";
import {
  alertChoice,
  alertList,
  alertQuery,
  alertSummary,
  alertsAcked,
  alertsResolved,
  allResolved,
  resolveAll,
} from "#wire/webapi/alert.ts";

/** Dependencies of the routes. */
export interface AlertRoutesDeps {
  readonly alerts: AlertService;
  /** Receives a line for each change (D24). */
  readonly audit: AuditSink;
  /** Resolves when the earlier audit lines are on stable storage. */
  readonly flushAudit: () => Promise<void>;
}

const TAGS = ["alerts"];

/** Registers the routes. */
export function alertRoutes(app: App, deps: AlertRoutesDeps): void {
  addLists(app, deps);
  addActs(app, deps);
}

function addLists(app: App, { alerts }: AlertRoutesDeps): void {
  app.get(
    "/api/alerts",
    {
      config: { auth: "public" },
      schema: {
        operationId: "getAlerts",
        summary: "Alerts, the newest first",
        description:
          "Visitors get no alert about users or attempts, nor what says where the cluster is open; of all others the fact, without a user's name or numbers.",
        tags: TAGS,
        querystring: alertQuery,
        response: { 200: alertList },
      },
    },
    (request) => {
      const { severity, type, node_id: nodeId, unresolved, resolved, limit, before } = request.query;
      return alerts.list(
        viewerOf(request).kind,
        {
          severities: severity === undefined ? undefined : new Set(severity),
          types: type === undefined ? undefined : new Set(type),
          nodeId,
          isUnresolved: unresolved === "true" || unresolved === "1",
          isResolved: resolved === "true" || resolved === "1",
        },
        { limit, ...beforeOf(before) },
      );
    },
  );

  app.get(
    "/api/alerts/summary",
    {
      config: { auth: "public" },
      schema: {
        operationId: "getAlertSummary",
        summary: "How many alerts are unresolved, by severity",
        tags: TAGS,
        response: { 200: alertSummary },
      },
    },
    (request) => alerts.summary(viewerOf(request).kind),
  );
}

/** A change is answered once its line is in the audit log. */
function addActs(app: App, { alerts, audit, flushAudit }: AlertRoutesDeps): void {
  const record = async (
    act: "alert.ack" | "alert.resolve",
    keys: readonly string[],
    request: FastifyRequest,
  ) => {
    const actor = operatorOf(request).id;
    for (const key of keys) audit({ act, actor, subject: key, request: request.id });
    await flushAudit();
  };

  app.post(
    "/api/alerts/resolve",
    {
      config: { auth: "operator", invalidBody: "ALERT_INVALID" },
      schema: {
        operationId: "resolveAlerts",
        summary: "Resolve alerts by hand; they come back when their cause was away once, or gets worse",
        tags: TAGS,
        body: alertChoice,
        response: { 200: alertsResolved },
      },
    },
    async (request) => {
      const done = await alerts.resolve(chosen(alerts, request.body));
      await record("alert.resolve", done.keys, request);
      const { resolved, alreadyResolved, inForce } = done;
      return { resolved, already_resolved: alreadyResolved, in_force: inForce };
    },
  );

  app.post(
    "/api/alerts/resolve-all",
    {
      config: { auth: "operator", invalidBody: "ALERT_INVALID" },
      schema: {
        operationId: "resolveAllAlerts",
        summary: "Resolve every open alert, or those of a severity or a node",
        tags: TAGS,
        body: resolveAll,
        response: { 200: allResolved },
      },
    },
    async (request) => {
      const { severity, node_id: nodeId } = request.body ?? {};
      const keys = await alerts.resolveAll({
        severities: severity === undefined ? undefined : new Set([severity]),
        nodeId,
      });
      await record("alert.resolve", keys, request);
      return { resolved: keys.length };
    },
  );

  app.post(
    "/api/alerts/ack",
    {
      config: { auth: "operator", invalidBody: "ALERT_INVALID" },
      schema: {
        operationId: "acknowledgeAlerts",
        summary: "Note that somebody has taken these alerts on",
        tags: TAGS,
        body: alertChoice,
        response: { 200: alertsAcked },
      },
    },
    async (request) => {
      const done = await alerts.acknowledge(chosen(alerts, request.body), operatorOf(request).id);
      await record("alert.ack", done.keys, request);
      return { acked: done.acked, already_resolved: done.resolved };
    },
  );
}

function beforeOf(before: string | undefined): { readonly beforeId?: string; readonly beforeUnix?: number } {
  if (before === undefined) return {};
  return before.length === 26 ? { beforeId: before } : { beforeUnix: Number(before) };
}

function chosen(
  alerts: AlertService,
  choice: {
    readonly id?: string | undefined;
    readonly ids?: readonly string[] | undefined;
    readonly key?: string | undefined;
  },
): string[] {
  const ids = [...(choice.id === undefined ? [] : [choice.id]), ...(choice.ids ?? [])];
  const known = alerts.idsOf({ ids, key: choice.key });
  if (known.length === 0) throw new ProblemError("NO_SUCH_ALERT", "none of these alerts is known here");
  return known;
}
