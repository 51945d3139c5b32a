// Whether a request comes from the door's own pages: another site's page must neither read nor change.
import type { PageExchange } from "#door/http/pages.ts";
import { DavRefusal } from "#door/webdav/status-table.ts";

/** Throws 403 for what another site's page, or a service worker, has asked for. */
export function requireOwnPage({ headers }: PageExchange): void {
  const site = headers["sec-fetch-site"];
  const isOwn = site === undefined || site === "same-origin" || site === "none";
  if (!isOwn || "service-worker" in headers) throw foreign();
}

/** The same for what changes something, which needs this door's own Origin. */
export function requireOwnChange(exchange: PageExchange): void {
  requireOwnPage(exchange);
  const { headers, host, facts } = exchange;
  const own = `${facts.isSecure ? "https" : "http"}://${host.toLowerCase()}`;
  const { origin } = headers;
  if (typeof origin !== "string" || origin.toLowerCase() !== own || headers["sec-fetch-site"] === "none")
    throw foreign();
}

function foreign(): DavRefusal {
  return new DavRefusal(403, "this came from another site's page; open the door's own address");
}
