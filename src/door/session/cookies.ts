// Cookies of browsers at a door: sent to this host alone where the connection is safe.
import type { PageExchange } from "#door/http/pages.ts";

/** What a cookie holds: a session's secret, or the state of a sign-in under way. */
export type CookieUse = "session" | "flow";

/** Characters of a cookie that is looked at. */
const COOKIE_MAX_LENGTH = 2_048;

/** The value of a cookie; undefined without one, and where it stands there twice. */
export function cookieOf({ headers, facts }: PageExchange, use: CookieUse): string | undefined {
  const header = headers["cookie"];
  if (typeof header !== "string") return undefined;
  const name = `${nameOf(use, facts.isSecure)}=`;
  const found = header
    .split(";")
    .map((pair) => pair.trim())
    .filter((pair) => pair.startsWith(name));
  const value = found[0]?.slice(name.length);
  return found.length === 1 && value !== undefined && value.length <= COOKIE_MAX_LENGTH ? value : undefined;
}

/** The header that sets a cookie for some seconds; 0 removes it. */
export function setCookie(exchange: PageExchange, use: CookieUse, value: string, seconds: number): string {
  const { isSecure } = exchange.facts;
  const secure = isSecure ? "; Secure" : "";
  return `${nameOf(use, isSecure)}=${value}; Path=/; HttpOnly; SameSite=Lax; Max-Age=${seconds}${secure}`;
}

/** The prefix binds a cookie to this host; browsers take it over HTTPS only. */
function nameOf(use: CookieUse, isSecure: boolean): string {
  return `${isSecure ? "__Host-" : ""}grove-door-${use}`;
}
