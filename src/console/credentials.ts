// Which token a request shows: the first of header, cookie and query that is there decides, even when it is wrong (spec 4.2, T12).
import type { FastifyRequest } from "fastify";

/** Name of the cookie (spec 2.4). */
export const COOKIE_NAME = "svc_admin_token";
/** Name of the query parameter (decision T12). */
export const QUERY_NAME = "token";

/** A token and the place that it was shown in. */
export interface Credential {
  readonly token: string;
  readonly from: "header" | "cookie" | "query";
}

/**
 * The token that a request shows; undefined when it shows none. Afterwards the query has no token any more, so that neither a schema nor
 * a log meets it (D-08).
 */
export function takeCredential(request: FastifyRequest, allowQuery: boolean): Credential | undefined {
  const query = (request.query ?? {}) as Record<string, unknown>;
  const fromQuery = query[QUERY_NAME];
  if (fromQuery !== undefined) delete query[QUERY_NAME];
  const { authorization, cookie } = request.headers;
  const bearer = authorization === undefined ? null : /^bearer(?:\s+(.*))?$/is.exec(authorization);
  if (bearer !== null) return { token: bearer[1]?.trim() ?? "", from: "header" };
  const kept = cookie === undefined ? undefined : request.server.parseCookie(cookie)[COOKIE_NAME];
  if (kept !== undefined) return { token: kept, from: "cookie" };
  if (!allowQuery || fromQuery === undefined) return undefined;
  // Two of them are none that is right.
  return { token: typeof fromQuery === "string" ? fromQuery : "", from: "query" };
}
