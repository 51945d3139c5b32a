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
  delete query[QUERY_NAME];
  const bearer = /^bearer(?:\s+(.*))?$/is.exec(request.headers.authorization ?? "");
  if (bearer !== null) return { token: bearer[1]?.trim() ?? "", from: "header" };
  const cookie = request.cookies[COOKIE_NAME];
  if (cookie !== undefined) return { token: cookie, from: "cookie" };
  if (!allowQuery || fromQuery === undefined) return undefined;
  // Two of them are none that is right.
  return { token: typeof fromQuery === "string" ? fromQuery : "", from: "query" };
}
