// Whether a request that changes something was sent by a page of ours: what stands between a cookie and other people's pages (D2, W-06).
import type { IncomingHttpHeaders } from "node:http";

/** Methods that change nothing. */
const SAFE_METHODS: ReadonlySet<string> = new Set(["GET", "HEAD", "OPTIONS"]);

/** True for a method that may change something. */
export function changesState(method: string): boolean {
  return !SAFE_METHODS.has(method);
}

/** What the headers say of the page behind a request: ours, somebody else's, or nothing at all, as from a program. */
export type Sender = "own" | "foreign" | "untold";

/**
 * Who sent a request, by `Sec-Fetch-Site`, which no page can forge, else by `Origin` against the host that was asked. The scheme counts too
 * where it is known: a page over plain HTTP is not a page of ours over HTTPS.
 */
export function senderOf(headers: IncomingHttpHeaders, isSecure: boolean): Sender {
  const site = headers["sec-fetch-site"];
  if (site !== undefined) return site === "same-origin" || site === "none" ? "own" : "foreign";
  const { origin, host } = headers;
  if (origin === undefined) return "untold";
  return host !== undefined &&
    origin.toLowerCase() === `${isSecure ? "https" : "http"}://${host.toLowerCase()}`
    ? "own"
    : "foreign";
}
