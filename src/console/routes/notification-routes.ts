// The routes of the notification layer: silences and notifications; operators only (decision D11).
import { z } from "zod";
import type { AuditSink } from "#base/audit-act.ts";
import { isGroveError } from "#base/errors.ts";
import type { Notifier } from "#console/alerts/notifier.ts";
import { type App, operatorOf, ProblemError } from "#console/http/route.ts";
import {
  type NotificationReceiver,
  noticesReply,
  type Silence,
  silence,
  silenceList,
  silenceRequest,
} from "#wire/webapi/notification.ts";

/** Dependencies of the routes. */
export interface NotificationRoutesDeps {
  readonly notifier: Notifier;
  /** Receivers of notices to users; default none. */
  readonly userReceivers?: () => readonly NotificationReceiver[];
  /** Receives a line for each change (D24). */
  readonly audit: AuditSink;
  /** Resolves when the earlier audit lines are on stable storage. */
  readonly flushAudit: () => Promise<void>;
}

const tags = ["alerts"];

/** Registers the routes. */
export function notificationRoutes(app: App, deps: NotificationRoutesDeps): void {
  const { notifier, audit, flushAudit } = deps;
  noticesRoute(app, deps);

  app.get(
    "/api/silences",
    {
      config: { auth: "operator" },
      schema: {
        operationId: "listSilences",
        summary: "All silences, those that have not ended first",
        tags,
        response: { 200: silenceList },
      },
    },
    () => ({ silences: notifier.silences.list() }),
  );

  app.post(
    "/api/silences",
    {
      config: { auth: "operator", invalidBody: "SILENCE_INVALID" },
      schema: {
        operationId: "addSilence",
        summary: "Keep notices of matching alerts from being sent for a while",
        tags,
        body: silenceRequest,
        response: { 201: silence },
      },
    },
    async (request, reply) => {
      const actor = operatorOf(request).id;
      const added = await notifier.silences.add(request.body, `operator:${actor}`).catch(refuse);
      const detail = { matchers: matchersText(added), ends_at: added.ends_at, comment: added.comment };
      audit({ act: "silence.add", actor, subject: added.id, request: request.id, detail });
      await flushAudit();
      return reply.code(201).send(added);
    },
  );

  app.delete(
    "/api/silences/:id",
    {
      config: { auth: "operator" },
      schema: {
        operationId: "endSilence",
        summary: "End a silence now, or take back one that has not begun",
        tags,
        params: z.object({ id: z.string() }),
        response: { 200: silence },
      },
    },
    async (request) => {
      const actor = operatorOf(request).id;
      const ended = await notifier.silences.end(request.params.id);
      if (ended === undefined) throw new ProblemError("NO_SUCH_SILENCE", "there is no silence of that id");
      audit({ act: "silence.end", actor, subject: ended.id, request: request.id });
      await flushAudit();
      return ended;
    },
  );
}

function matchersText({ matchers }: Silence): string {
  return matchers
    .map(({ name, value, is_regex }) => `${name}${is_regex ? "=~" : "="}${JSON.stringify(value)}`)
    .join(" ");
}

function refuse(error: unknown): never {
  if (!isGroveError(error, "BAD_ARGUMENT", "OVERLOADED")) throw error;
  const pointer = error.metadata["pointer"] ?? "";
  const errors = [{ pointer, code: "not_possible", detail: error.message }];
  throw new ProblemError("SILENCE_INVALID", error.message, pointer === "" ? {} : { errors });
}

function noticesRoute(app: App, { notifier, userReceivers = () => [] }: NotificationRoutesDeps): void {
  app.get(
    "/api/notices",
    {
      config: { auth: "operator" },
      schema: {
        operationId: "listNotices",
        summary: "What was told to whom, what waits, and what is muted",
        tags,
        response: { 200: noticesReply },
      },
    },
    () => {
      const view = notifier.view();
      return { ...view, receivers: [...view.receivers, ...userReceivers()] };
    },
  );
}
