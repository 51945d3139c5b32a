// Whether a user may come in: GET and PUT of the state, and the end of all sessions; operators only.
import type { FastifyRequest } from "fastify";
import { z } from "zod";
import { USER_STATE_REASON_MAX_LENGTH } from "#base/limits.ts";
import { userStateChanged, userStateKnown } from "#webapi/user-state.ts";
import { factsOf } from "./guard.ts";
import { type App, operatorOf } from "./route.ts";
import { usernameOf } from "./user-routes.ts";
import type { UserStateDesk, UserStateWish } from "./user-state-desk.ts";

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
const params = z.object({ username: z.string() });

/** Registers the routes. */
export function userStateRoutes(app: App, { desk }: { readonly desk: UserStateDesk }): void {
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
    (request) => desk.known(usernameOf(request.params.username)),
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
      return desk.change({ ...asked(request, request.params), disabled, closesShares, reason: text });
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
      desk.change({ ...asked(request, request.params), endsSessions: true, reason: request.body.reason }),
  );
}

function asked(
  request: FastifyRequest,
  { username }: { readonly username: string },
): Pick<UserStateWish, "address" | "operator" | "requestId" | "username"> {
  return {
    username: usernameOf(username),
    operator: operatorOf(request),
    address: factsOf(request).address,
    requestId: request.id,
  };
}
