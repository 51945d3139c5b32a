// Where a request goes: its host and path, refused where its headers contradict one another.
import type { IncomingMessage } from "node:http";
import type { Http2ServerRequest } from "node:http2";
import { DavRefusal } from "#door/webdav/status-table.ts";
import { DOOR_HEADERS_MAX } from "./door-limits.ts";

/** A request of HTTP/1.1 or HTTP/2. */
export type DoorRequest = IncomingMessage | Http2ServerRequest;

/** Headers of which a second one would leave open which counts. */
const ONCE: ReadonlySet<string> = new Set([
  "authorization",
  "content-length",
  "depth",
  "destination",
  "host",
  "if",
  "lock-token",
  "overwrite",
  "range",
  "timeout",
  "transfer-encoding",
]);

/** Host and path of a request. */
export interface RequestTarget {
  /** Undefined where the request names none. */
  readonly host: string | undefined;
  /** As it was written, without the query; "*" for OPTIONS of the whole server. */
  readonly path: string;
}

/** Throws DavRefusal (400, 415, 431, 501) for headers that could be read in two ways, too many, or an unknown coding. */
export function readTarget(request: DoorRequest): RequestTarget {
  const { rawHeaders, headers } = request;
  if (rawHeaders.length > 2 * DOOR_HEADERS_MAX) {
    throw new DavRefusal(431, `a request has at most ${DOOR_HEADERS_MAX} headers`);
  }
  const seen = new Set<string>();
  for (let index = 0; index < rawHeaders.length; index += 2) {
    const name = (rawHeaders[index] ?? "").toLowerCase();
    if (!ONCE.has(name)) continue;
    if (seen.has(name)) throw new DavRefusal(400, `the header ${name} stands there twice`);
    seen.add(name);
  }
  const coding = headers["transfer-encoding"];
  // Node takes "gzip, chunked" as well, and hands the body on as it was packed.
  if (coding !== undefined && coding.trim().toLowerCase() !== "chunked") {
    throw new DavRefusal(
      501,
      "a body comes with its length or in plain chunks: no other coding is known here",
    );
  }
  const encoding = headers["content-encoding"]?.trim().toLowerCase() ?? "";
  // Packed bytes are not kept as a file's own: a later GET could not say that they are packed.
  if (encoding !== "" && encoding !== "identity") {
    throw new DavRefusal(415, "bodies are taken as they are: send this one without Content-Encoding");
  }
  if (headers.host === undefined && request.httpVersion === "1.1") {
    throw new DavRefusal(400, "the request names no host: HTTP/1.1 wants a Host header");
  }
  const authority = headers[":authority"];
  const named = typeof authority === "string" ? authority : undefined;
  if (named !== undefined && headers.host !== undefined && headers.host !== named) {
    throw new DavRefusal(400, "the request names two hosts");
  }
  const url = request.url ?? "";
  const absolute = /^https?:\/\/([^/?#]*)(\/[^?#]*)?/iu.exec(url);
  if (absolute !== null) return { host: absolute[1], path: absolute[2] ?? "/" };
  return { host: named ?? headers.host, path: url.split(/[?#]/u, 1)[0] ?? "" };
}
