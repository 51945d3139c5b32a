// Conditional requests (RFC 9110, section 13): what their headers say of a resource.
import { GroveError } from "#base/errors.ts";
import { readHttpDate } from "./date-text.ts";
import type { DavResource } from "./resource.ts";

/** Headers of a request, names in lower case. */
export type RequestHeaders = Readonly<Record<string, string | string[] | undefined>>;

/** One header as text; undefined where it is absent. */
export function headerOf(headers: RequestHeaders, name: string): string | undefined {
  const value = headers[name];
  return Array.isArray(value) ? value.join(", ") : value;
}

/** True where a change's headers speak of the version of what is there, or of whether it is there. */
export function hasConditions(headers: RequestHeaders): boolean {
  return ["if-match", "if-none-match", "if-unmodified-since"].some((name) => headers[name] !== undefined);
}

/** True for a GET of a whole file in any version: a small one comes with its attributes, in one call. */
export function wantsWhole(request: {
  readonly method?: string | undefined;
  readonly headers: RequestHeaders;
}): boolean {
  const { method, headers } = request;
  return method === "GET" && headers["range"] === undefined && !hasConditions(headers);
}

/** What the conditions say: go on, 304, or 412. */
export type ConditionVerdict = "go" | "not-modified" | "failed";

/** Judges If-Match, If-None-Match, If-Modified-Since and If-Unmodified-Since in the order of the RFC. */
export function judgeConditions(
  headers: RequestHeaders,
  resource: DavResource | undefined,
  isRead: boolean,
): ConditionVerdict {
  const ifMatch = headerOf(headers, "if-match");
  if (ifMatch !== undefined) {
    if (!namesTag(ifMatch, resource, "strong")) return "failed";
  } else {
    const since = dateOf(headerOf(headers, "if-unmodified-since"));
    if (since !== undefined && (resource === undefined || secondsOf(resource) > since)) return "failed";
  }
  const ifNoneMatch = headerOf(headers, "if-none-match");
  if (ifNoneMatch !== undefined) {
    if (namesTag(ifNoneMatch, resource, "weak")) return isRead ? "not-modified" : "failed";
  } else if (isRead && resource !== undefined) {
    const since = dateOf(headerOf(headers, "if-modified-since"));
    if (since !== undefined && secondsOf(resource) <= since) return "not-modified";
  }
  return "go";
}

/**
 * True where a Range header may be used: If-Range is absent or is this version's tag. A date is no strong validator
 * here, since programs set it (RFC 9110, section 13.1.5): the part would be joined to that of another version.
 */
export function isRangeUsable(headers: RequestHeaders, resource: DavResource): boolean {
  const condition = headerOf(headers, "if-range")?.trim();
  return condition === undefined || condition === `"${resource.etag}"`;
}

/** A weak tag names no version in a strong comparison (RFC 9110, section 8.8.3.2). */
function namesTag(header: string, resource: DavResource | undefined, comparison: "strong" | "weak"): boolean {
  if (resource === undefined) return false;
  const written = header
    .slice(0, 8192)
    .split(",")
    .map((tag) => tag.trim());
  const tags = comparison === "strong" ? written : written.map((tag) => tag.replace(/^W\//u, ""));
  return tags.includes("*") || tags.includes(`"${resource.etag}"`);
}

/** Throws BAD_ARGUMENT for a PUT of a part, which would stand for the whole file (RFC 9110, section 14.5). */
export function requireWhole(headers: RequestHeaders): void {
  if (headers["content-range"] === undefined) return;
  throw new GroveError("BAD_ARGUMENT", "a PUT replaces the whole file: Content-Range is not supported");
}

function dateOf(header: string | undefined): number | undefined {
  const ms = header === undefined ? undefined : readHttpDate(header.trim());
  return ms === undefined ? undefined : ms / 1000;
}

function secondsOf(resource: DavResource): number {
  return Math.floor(resource.changedMs / 1000);
}
