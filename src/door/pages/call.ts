// One call of the pages' interface: what it asks for, and the ways to answer.
import { GroveError } from "#base/errors.ts";
import type { PageExchange } from "#door/http/pages.ts";
import { DavRefusal } from "#door/webdav/status-table.ts";
import type { BrowserPerson } from "./browser-person.ts";

/** Bytes of a JSON body. */
export const JSON_MAX_BYTES = 65_536;

/** A call by somebody who is signed in. */
export interface PageCall {
  readonly exchange: PageExchange;
  readonly person: BrowserPerson;
  /** Of the door, as people are told. */
  readonly publicUrl: string;
}

/** A place in a root; an empty root is the person's own. */
export interface PagePlace {
  readonly root: string;
  readonly path: string;
}

/** What checks a value and returns it; schemas of the interface do. */
interface Shape<T> {
  safeParse(value: unknown): { readonly success: true; readonly data: T } | { readonly success: false };
}

/** The place that an address names. */
export function placeOf({ query }: PageExchange): PagePlace {
  return { root: query.get("root") ?? "", path: query.get("path") ?? "/" };
}

/** The JSON body of a call. Throws BAD_ARGUMENT, and 413 and 415. */
export async function bodyOf<T>(exchange: PageExchange, shape: Shape<T>): Promise<T> {
  const type = exchange.headers["content-type"];
  if (typeof type !== "string" || !/^application\/json\b/iu.test(type))
    throw new DavRefusal(415, "the body has to be JSON");
  const parts: Uint8Array[] = [];
  let bytes = 0;
  for await (const part of exchange) {
    bytes += part.length;
    if (bytes > JSON_MAX_BYTES) throw new DavRefusal(413, "the body is too long");
    parts.push(part);
  }
  let value: unknown;
  try {
    value = JSON.parse(Buffer.concat(parts).toString("utf8"));
  } catch {
    throw new GroveError("BAD_ARGUMENT", "the body is not JSON");
  }
  const read = shape.safeParse(value);
  if (!read.success) throw new GroveError("BAD_ARGUMENT", "the body is not what this call takes");
  return read.data;
}

/** Headers of every answer of the interface: nothing in it is a page. */
const JSON_HEADERS: Readonly<Record<string, string>> = {
  "content-type": "application/json; charset=utf-8",
  "content-security-policy": "default-src 'none'; frame-ancestors 'none'",
  "cross-origin-resource-policy": "same-origin",
  "referrer-policy": "no-referrer",
  "x-content-type-options": "nosniff",
  "cache-control": "no-store",
};

/** Answers with JSON. */
export function sendJson(exchange: PageExchange, value: unknown, status = 200): void {
  const text = JSON.stringify(value);
  for (const [name, header] of Object.entries(JSON_HEADERS)) exchange.setHeader(name, header);
  exchange.setHeader("content-length", Buffer.byteLength(text));
  exchange.statusCode = status;
  exchange.end(exchange.method === "HEAD" ? undefined : text);
}

/** Answers without a body. */
export function sendNothing(exchange: PageExchange, status = 204): void {
  exchange.setHeader("cache-control", "no-store");
  if (status !== 204) exchange.setHeader("content-length", 0);
  exchange.statusCode = status;
  exchange.end();
}
