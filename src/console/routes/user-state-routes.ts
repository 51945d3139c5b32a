// Access of a user: GET and PUT of the state, and the end of all sessions; operators only.
import type { FastifyRequest } from "fastify";
import { z } from "zod";
import { USER_STATE_REASON_MAX_LENGTH } from "#base/limits.ts";
import { factsOf } from "#console/http/guard.ts";
import { type App, operatorOf } from "#console/http/route.ts";
import type { UserStateRequest, UserStateService } from "#console/services/user-state-service.ts";
import { userStateChanged, userStateKnown } from "#wire/webapi/user-state.ts";
import { usernameOf } from "./user-routes.ts";

const reason = z
  .string()
  .max(USER_STATE_REASON_MAX_LENGTH)
  .regex(/^\P{Cc}*$/u, "one line of text")
  .describe("For administrators and the audit log; the user is not told");
const stateBody = z
  .object({
    disabled: z.boolean(),
    close_shares: z.boolean().optional().describe("Nobody reaches what the user shares either"),
    reason,
  })
  .strict()
  .refine(({ disabled, reason: text }) => !disabled || text.trim() !== "", "locking out needs a reason");
const endBody = z.object({ reason }).strict();
const toWhom = z.string().max(320).describe("E-mail address of who gets the root");
const handOverBody = z
  .object({
    to: toWhom,
    may_delete: z.boolean().optional().describe("Delete too, and the trash; it is read and write otherwise"),
    until: z.int().min(0).describe("Unix seconds; within 400 days"),
    reason: reason.describe("Both users see it"),
  })
  .strict()
  .refine(({ reason: text }) => text.trim() !== "", "handing a root over needs a reason");
const endHandOverBody = z.object({ to: toWhom, reason }).strict();
const params = z.object({ username: z.string() });

/** Registers the routes. */
export function userStateRoutes(app: App, { service }: { readonly service: UserStateService }): void {
  const tags = ["users"];
  const config = { auth: "operator" } as const;
  app.get(
    "/api/users/:username/state",
    {
      config,
      schema: {
        operationId: "getUserState",
        summary: "Whether a user is locked out, since when, by whom and why",
        tags,
        params,
        response: { 200: userStateKnown },
      },
    },
    (request) => service.known(usernameOf(request.params.username)),
  );
  app.put(
    "/api/users/:username/state",
    {
      config,
      schema: {
        operationId: "setUserState",
        summary: "Lock a user out on every node, or let one in again; each node answers for itself",
        tags,
        params,
        body: stateBody,
        response: { 200: userStateChanged },
      },
    },
    (request) => {
      const { disabled, close_shares: closesShares = false, reason: text } = request.body;
      return service.change({ ...asked(request, request.params), disabled, closesShares, reason: text });
    },
  );
  app.post(
    "/api/users/:username/end-sessions",
    {
      config,
      schema: {
        operationId: "endUserSessions",
        summary: "End all sessions of a user on every node; each device has to sign in anew",
        tags,
        params,
        body: endBody,
        response: { 200: userStateChanged },
      },
    },
    (request) =>
      service.change({ ...asked(request, request.params), endsSessions: true, reason: request.body.reason }),
  );
  handOverRoutes(app, service);
}

function handOverRoutes(app: App, service: UserStateService): void {
  const tags = ["users"];
  const config = { auth: "operator" } as const;
  app.post(
    "/api/users/:username/hand-over",
    {
      config,
      schema: {
        operationId: "handOverRoot",
        summary: "Let another user reach all of a user's root for a time, on every node",
        tags,
        params,
        body: handOverBody,
        response: { 200: userStateChanged },
      },
    },
    (request) => {
      const { to, may_delete: mayDelete = false, until, reason: text } = request.body;
      const handsOver = { to: usernameOf(to), mayDelete, untilMs: until * 1_000 };
      return service.change({ ...asked(request, request.params), handsOver, reason: text });
    },
  );
  app.post(
    "/api/users/:username/end-hand-over",
    {
      config,
      schema: {
        operationId: "endHandOver",
        summary: "End what was handed over to a user",
        tags,
        params,
        body: endHandOverBody,
        response: { 200: userStateChanged },
      },
    },
    (request) => {
      const { to, reason: text } = request.body;
      return service.change({
        ...asked(request, request.params),
        endsHandOverTo: usernameOf(to),
        reason: text,
      });
    },
  );
}

function asked(
  request: FastifyRequest,
  { username }: { readonly username: string },
): Pick<UserStateRequest, "address" | "operator" | "requestId" | "username"> {
  return {
    username: usernameOf(username),
    operator: operatorOf(request),
    address: factsOf(request).address,
    requestId: request.id,
  };
}
