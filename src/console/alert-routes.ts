// The routes below /api/alerts: what is wrong, how much of it, and what operators do about it (spec 4.1, 5.8.4, decision D11).
import type { Audience } from "#alerts/alert-list.ts";
import type { AuditAct } from "#base/audit-act.ts";
import {
  alertChoice,
  alertList,
  alertQuery,
  alertSummary,
  alertsAcked,
  alertsResolved,
  allResolved,
  resolveAll,
} from "#webapi/alert.ts";
import type { AlertDesk } from "./alert-desk.ts";
import { type App, operatorOf, ProblemError, type Viewer, viewerOf } from "./route.ts";

/** What the routes need. */
export interface AlertRoutesDeps {
  readonly desk: AlertDesk;
  /** Takes a line about each act (D24). */
  readonly onAct: (act: AuditAct) => void;
}

/** Registers the routes. */
export function alertRoutes(app: App, { desk, onAct }: AlertRoutesDeps): void {
  app.get(
    "/api/alerts",
    { config: { auth: "public" }, schema: { querystring: alertQuery, response: { 200: alertList } } },
    (request) => {
      const { severity, type, node_id: nodeId, unresolved, limit, before } = request.query;
      return desk.list(
        audienceOf(viewerOf(request)),
        {
          severities: severity === undefined ? undefined : new Set(severity),
          types: type === undefined ? undefined : new Set(type),
          nodeId,
          isUnresolved: unresolved === "true" || unresolved === "1",
        },
        { limit, ...beforeOf(before) },
      );
    },
  );

  app.get(
    "/api/alerts/summary",
    { config: { auth: "public" }, schema: { response: { 200: alertSummary } } },
    (request) => desk.summary(audienceOf(viewerOf(request))),
  );

  app.post(
    "/api/alerts/resolve",
    {
      config: { auth: "operator", invalidBody: "ALERT_INVALID" },
      schema: { body: alertChoice, response: { 200: alertsResolved } },
    },
    async (request) => {
      const operator = operatorOf(request).id;
      const ids = chosen(desk, request.body);
      const { resolved, alreadyResolved, inForce } = await desk.resolve(ids);
      for (const id of resolved)
        onAct({ act: "alert.resolve", actor: actorOf(operator), subject: desk.keyOf(id) });
      return { resolved, already_resolved: alreadyResolved, in_force: inForce };
    },
  );

  app.post(
    "/api/alerts/resolve-all",
    {
      config: { auth: "operator", invalidBody: "ALERT_INVALID" },
      schema: { body: resolveAll, response: { 200: allResolved } },
    },
    async (request) => {
      const operator = operatorOf(request).id;
      const { severity, node_id: nodeId } = request.body ?? {};
      const ids = await desk.resolveAll({
        severities: severity === undefined ? undefined : new Set([severity]),
        nodeId,
      });
      for (const id of ids)
        onAct({ act: "alert.resolve", actor: actorOf(operator), subject: desk.keyOf(id) });
      return { resolved: ids.length };
    },
  );

  app.post(
    "/api/alerts/ack",
    {
      config: { auth: "operator", invalidBody: "ALERT_INVALID" },
      schema: { body: alertChoice, response: { 200: alertsAcked } },
    },
    async (request) => {
      const operator = operatorOf(request).id;
      const { acked, resolved } = await desk.acknowledge(chosen(desk, request.body), operator);
      for (const id of acked) onAct({ act: "alert.ack", actor: actorOf(operator), subject: desk.keyOf(id) });
      return { acked, already_resolved: resolved };
    },
  );
}

function audienceOf(viewer: Viewer): Audience {
  return viewer.kind;
}

/** How audit lines name an operator: by the session, which is all that is known of who it is. */
function actorOf(session: string): string {
  return `operator:${session}`;
}

function beforeOf(before: string | undefined): { readonly beforeId?: string; readonly beforeUnix?: number } {
  if (before === undefined) return {};
  return before.length === 26 ? { beforeId: before } : { beforeUnix: Number(before) };
}

function chosen(
  desk: AlertDesk,
  choice: {
    readonly id?: string | undefined;
    readonly ids?: readonly string[] | undefined;
    readonly key?: string | undefined;
  },
): string[] {
  const ids = [...(choice.id === undefined ? [] : [choice.id]), ...(choice.ids ?? [])];
  const known = desk.idsOf({ ids, key: choice.key });
  if (known.length === 0) throw new ProblemError("NO_SUCH_ALERT", "none of these alerts is known here");
  return known;
}
