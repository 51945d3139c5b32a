// GET /api/users, and PUT or POST of one user's quota: operators only (spec 4.1, 4.3; decisions D5, D6).
import type { FastifyRequest } from "fastify";
import { z } from "zod";
import { isGroveError } from "#base/errors.ts";
import { parseU64 } from "#base/json64.ts";
import { IDS_PER_ROOT } from "#base/limits.ts";
import { canonicalUsername } from "#base/names.ts";
import type { UserList } from "#console/cluster/user-list.ts";
import { usersQuery } from "#console/cluster/user-query.ts";
import { factsOf } from "#console/http/guard.ts";
import { sendReady } from "#console/http/response-cache.ts";
import { type App, operatorOf, ProblemError, sendJson } from "#console/http/route.ts";
import type { QuotaChanged, QuotaService } from "#console/services/quota-service.ts";
import { quotaChanged, userList } from "#wire/webapi/user.ts";

/** Dependencies of the routes. */
export interface UserRoutesDeps {
  readonly users: UserList;
  readonly quotas: QuotaService;
}

const QUOTA_TEXT =
  "quota_bytes must be an integer from 0 to 18446744073709551615, as a number or a decimal string";

const INODES_TEXT = `inode_limit must be an integer from 0 to ${IDS_PER_ROOT}`;

/** The body of a change: any 64-bit integer, also as a string where JSON loses digits. */
const quotaBody = z
  .object({
    quota_bytes: z
      .custom<unknown>((value) => parseU64(value) !== undefined, QUOTA_TEXT)
      .meta({
        anyOf: [
          { type: "integer", minimum: 0 },
          { type: "string", pattern: "^(0|[1-9][0-9]{0,19})$" },
        ],
      }),
    inode_limit: z
      .int(INODES_TEXT)
      .min(0, INODES_TEXT)
      .max(IDS_PER_ROOT, INODES_TEXT)
      .optional()
      .describe(
        "Files and folders, those in the trash included; 0 goes back to the default, absent: as it is",
      ),
  })
  .strict();

/** Registers the routes. */
export function userRoutes(app: App, deps: UserRoutesDeps): void {
  const tags = ["users"];
  app.get(
    "/api/users",
    {
      config: { auth: "operator" },
      schema: {
        operationId: "listUsers",
        summary: "All users with their quotas, a page at a time",
        tags,
        querystring: usersQuery,
        response: { 200: userList },
      },
    },
    (request, reply) => {
      const { query } = request;
      if (sendReady(request, reply, () => deps.users.kept(query))) return;
      void deps.users.page(query).then(
        (body) => sendJson(reply, body),
        (error: unknown) => reply.send(error as never),
      );
    },
  );
  for (const method of ["PUT", "POST"] as const) {
    app.route({
      method,
      url: "/api/users/:username/quota",
      config: { auth: "operator", invalidBody: "QUOTA_INVALID" },
      schema: {
        operationId: method === "PUT" ? "setQuota" : "setQuotaByPost",
        summary:
          "Set a user's quota in bytes and, where it is named, the inode limit; 0 goes back to the default",
        tags,
        params: z.object({ username: z.string() }),
        body: quotaBody,
        response: { 200: quotaChanged },
      },
      handler: (request) => change(deps, request, request.params.username, request.body),
    });
  }
}

async function change(
  deps: UserRoutesDeps,
  request: FastifyRequest,
  username: string,
  body: z.infer<typeof quotaBody>,
): Promise<QuotaChanged> {
  const quotaBytes = parseU64(body.quota_bytes);
  if (quotaBytes === undefined) throw new ProblemError("QUOTA_INVALID", QUOTA_TEXT);
  return deps.quotas.change({
    username: usernameOf(username),
    quotaBytes,
    inodeLimit: body.inode_limit,
    operator: operatorOf(request),
    address: factsOf(request).address,
    requestId: request.id,
  });
}

/** The canonical username of a path. Throws ProblemError USERNAME_INVALID. */
export function usernameOf(text: string): string {
  try {
    return canonicalUsername(text);
  } catch (error) {
    if (!isGroveError(error, "BAD_ARGUMENT")) throw error;
    throw new ProblemError("USERNAME_INVALID", `a username is an e-mail address: ${error.message}`);
  }
}
