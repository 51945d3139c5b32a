// GET /api/logs/tail: the last lines of a service's log on a node (spec 4.1, decision D10).
import { LOG_LINES_DEFAULT } from "#base/limits.ts";
import { type App, ProblemError } from "#console/http/route.ts";
import type { ActionService } from "#console/services/action-service.ts";
import { logTail, logTailQuery } from "#wire/webapi/log-tail.ts";
import { refusing } from "./action-routes.ts";

/** Registers the route. */
export function logRoutes(app: App, actionService: ActionService): void {
  app.get(
    "/api/logs/tail",
    {
      config: { auth: "operator" },
      schema: {
        operationId: "getLogTail",
        summary: "The last lines of a service's log on a node; as text with Accept: text/plain",
        tags: ["logs"],
        querystring: logTailQuery,
        response: { 200: logTail },
      },
    },
    async (request, reply) => {
      const { node, service, lines } = request.query;
      const { tail, result } = await refusing(actionService.tail(node, service, lines ?? LOG_LINES_DEFAULT));
      if (result.state === "unreachable")
        throw new ProblemError("NODE_OFFLINE", result.message ?? "not reached");
      if (result.state === "timed_out")
        throw new ProblemError("NODE_TIMEOUT", "the log was not read in time");
      if (result.state !== "succeeded" && tail.lines.length === 0) {
        throw new ProblemError("NODE_ERROR", result.message ?? "the log could not be read");
      }
      if (/^text\/plain\b/.test(request.headers.accept ?? "")) {
        reply.type("text/plain; charset=utf-8").serializer((text: string) => text);
        reply.send(tail.text as never);
        return reply;
      }
      return tail;
    },
  );
}
