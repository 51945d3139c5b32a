// Finds a request's token: the first of header, cookie and query decides, even when wrong (spec 4.2, T12).
import type { IncomingHttpHeaders } from "node:http";
import { fastifyCookie as cookies } from "@fastify/cookie";
import { COOKIE_NAME } from "./session-cookie.ts";

/** Name of the query parameter (decision T12). */
export const QUERY_NAME = "token";

/** A token and the place it came from. */
export interface Credential {
  readonly token: string;
  readonly from: "header" | "cookie" | "query";
}

/** Removes the token from a query and returns it, so that no schema and no log sees it (W-08). */
export function takeQueryToken(query: Record<string, unknown>): unknown {
  const token = query[QUERY_NAME];
  if (token !== undefined) delete query[QUERY_NAME];
  return token;
}

/**
 * The token of a request; undefined without one. `fromQuery` is undefined where tokens in queries are off.
 */
export function shownCredential(headers: IncomingHttpHeaders, fromQuery: unknown): Credential | undefined {
  const { authorization, cookie } = headers;
  const bearer = authorization === undefined ? null : /^bearer(?:\s+(.*))?$/is.exec(authorization);
  if (bearer !== null) return { token: bearer[1]?.trim() ?? "", from: "header" };
  const kept = cookie === undefined ? undefined : cookies.parse(cookie)[COOKIE_NAME];
  if (kept !== undefined) return { token: kept, from: "cookie" };
  if (fromQuery === undefined) return undefined;
  // A token given twice counts as a wrong one.
  return { token: typeof fromQuery === "string" ? fromQuery : "", from: "query" };
}
