// Checks that a page of our own sent a request, so that other sites cannot use its cookie (D2, W-06).
import type { IncomingHttpHeaders } from "node:http";

/** Methods that change no state. */
const SAFE_METHODS: ReadonlySet<string> = new Set(["GET", "HEAD", "OPTIONS"]);

/** True for a method that may change state. */
export function changesState(method: string): boolean {
  return !SAFE_METHODS.has(method);
}

/** The origin of the page behind a request: our own, another site, or unknown, as for programs. */
export type Sender = "own" | "foreign" | "untold";

/**
 * The origin of a request, by `Sec-Fetch-Site`, which no page can forge, else by `Origin` against the
 * requested host. Where the scheme is known it counts too: an HTTP page is foreign to HTTPS.
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
