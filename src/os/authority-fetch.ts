// A fetch that trusts one given authority, for identity providers with a certificate of a private authority.
import { Agent, request as httpsRequest } from "node:https";
import { Readable } from "node:stream";
import { request as httpRequest } from "./http.ts";

/** The part of `fetch` that Grove uses. */
export type Fetch = (url: string | URL, init?: RequestInit) => Promise<Response>;

const NO_BODY_STATUSES: readonly number[] = [101, 204, 205, 304];
const SOCKETS_MAX = 16;

/**
 * Makes a fetch whose HTTPS connections trust only the given PEM certificates. It follows no redirects and
 * returns the redirect itself. Bodies are text, URLSearchParams or bytes.
 */
export function createAuthorityFetch(ca: string): Fetch {
  const agent = new Agent({ ca, keepAlive: true, maxSockets: SOCKETS_MAX });
  return (url, init = {}) => {
    const target = new URL(url);
    const isHttps = target.protocol === "https:";
    if (!isHttps && target.protocol !== "http:") return Promise.reject(new TypeError("only http and https"));
    const headers = new Headers(init.headers);
    const body = bodyBytes(init.body, headers);
    const { promise, resolve, reject } = Promise.withResolvers<Response>();
    const settings = {
      method: init.method ?? "GET",
      headers: Object.fromEntries(headers),
      ...(init.signal ? { signal: init.signal } : {}),
    };
    const outgoing = isHttps ? httpsRequest(target, { ...settings, agent }) : httpRequest(target, settings);
    outgoing.once("error", (cause) => reject(new TypeError("fetch failed", { cause })));
    outgoing.once("response", (incoming) => {
      const status = incoming.statusCode ?? 500;
      const hasBody = !NO_BODY_STATUSES.includes(status);
      if (!hasBody) incoming.resume();
      const answerHeaders = new Headers();
      for (let at = 0; at + 1 < incoming.rawHeaders.length; at += 2) {
        answerHeaders.append(incoming.rawHeaders[at] ?? "", incoming.rawHeaders[at + 1] ?? "");
      }
      const stream = hasBody ? (Readable.toWeb(incoming) as ReadableStream<Uint8Array>) : null;
      resolve(new Response(stream, { status, headers: answerHeaders }));
    });
    outgoing.end(body);
    return promise;
  };
}

function bodyBytes(body: RequestInit["body"], headers: Headers): Uint8Array | undefined {
  if (body == null) return undefined;
  if (body instanceof URLSearchParams) {
    if (!headers.has("content-type")) {
      headers.set("content-type", "application/x-www-form-urlencoded;charset=UTF-8");
    }
    return Buffer.from(body.toString());
  }
  if (typeof body === "string") return Buffer.from(body);
  if (body instanceof Uint8Array) return body;
  throw new TypeError("a body is text, URLSearchParams or bytes");
}
