// A user's trash, operators only: names and restores, for a reason that the user sees and no URL has.
import type { FastifyRequest } from "fastify";
import { z } from "zod";
import { OPERATOR_REASON_MAX_LENGTH } from "#base/limits.ts";
import { factsOf } from "#console/http/guard.ts";
import { type App, operatorOf } from "#console/http/route.ts";
import type { TrashRequest, TrashService } from "#console/services/trash-service.ts";
import { userTrashPage, userTrashRestored } from "#wire/webapi/user-trash.ts";
import { usernameOf } from "./user-routes.ts";

const reason = z
  .string()
  .max(OPERATOR_REASON_MAX_LENGTH)
  .regex(/^\P{Cc}*$/u, "one line of text")
  .refine((text) => text.trim() !== "", "names are told for a reason only")
  .describe("Why; the user is shown it, and it is in the audit log");
const lookBody = z.object({ reason, page_token: z.string().max(1_024).default("") }).strict();
const restoreBody = z
  .object({
    reason,
    trash_id: z.string().min(1).max(64),
    on_conflict: z
      .enum(["fail", "rename"])
      .default("fail")
      .describe("What happens where something is in its place: nothing is replaced"),
  })
  .strict();
const params = z.object({ username: z.string() });

/** Registers the routes. */
export function trashRoutes(app: App, { service }: { readonly service: TrashService }): void {
  const shared = { tags: ["users"], params };
  const config = { auth: "operator" } as const;
  app.post(
    "/api/users/:username/trash",
    {
      config,
      schema: {
        operationId: "lookAtUserTrash",
        summary: "What is in a user's trash, with names, for a reason that the user is shown",
        ...shared,
        body: lookBody,
        response: { 200: userTrashPage },
      },
    },
    (request) => service.list(trashRequestOf(request, request.params, request.body), request.body.page_token),
  );
  app.post(
    "/api/users/:username/trash/restore",
    {
      config,
      schema: {
        operationId: "restoreFromUserTrash",
        summary: "Bring an item of a user's trash back for them, for a reason that they are shown",
        ...shared,
        body: restoreBody,
        response: { 200: userTrashRestored },
      },
    },
    (request) => {
      const { trash_id: trashId, on_conflict: conflict } = request.body;
      const requested = trashRequestOf(request, request.params, request.body);
      return service.restore(requested, { trashId, renames: conflict === "rename" });
    },
  );
}

function trashRequestOf(
  request: FastifyRequest,
  { username }: { readonly username: string },
  { reason: text }: { readonly reason: string },
): TrashRequest {
  return {
    username: usernameOf(username),
    reason: text.trim(),
    operator: operatorOf(request),
    address: factsOf(request).address,
    requestId: request.id,
  };
}
