// Which token a request shows: the first of header, cookie and query that is there decides, even when it is wrong (spec 4.2, T12).
import type { IncomingHttpHeaders } from "node:http";
import { fastifyCookie as cookies } from "@fastify/cookie";

/** Name of the cookie (spec 2.4). */
export const COOKIE_NAME = "svc_admin_token";
/** Name of the query parameter (decision T12). */
export const QUERY_NAME = "token";

/** A token and the place that it was shown in. */
export interface Credential {
  readonly token: string;
  readonly from: "header" | "cookie" | "query";
}

/** What stands in a query as the token, if anything does. Afterwards it has none any more, so that neither a schema nor a log meets it (W-08). */
export function takeQueryToken(query: Record<string, unknown>): unknown {
  const token = query[QUERY_NAME];
  if (token !== undefined) delete query[QUERY_NAME];
  return token;
}

/** The token that a request shows; undefined when it shows none. `fromQuery` is undefined as well where none is read from there. */
export function shownCredential(headers: IncomingHttpHeaders, fromQuery: unknown): Credential | undefined {
  const { authorization, cookie } = headers;
  const bearer = authorization === undefined ? null : /^bearer(?:\s+(.*))?$/is.exec(authorization);
  if (bearer !== null) return { token: bearer[1]?.trim() ?? "", from: "header" };
  const kept = cookie === undefined ? undefined : cookies.parse(cookie)[COOKIE_NAME];
  if (kept !== undefined) return { token: kept, from: "cookie" };
  if (fromQuery === undefined) return undefined;
  // Two of them are none that is right.
  return { token: typeof fromQuery === "string" ? fromQuery : "", from: "query" };
}
