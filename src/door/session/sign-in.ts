// Signing in at a door with a browser: to the identity provider and back, or by a name alone in mock mode.
import type { Clock } from "#base/clock.ts";
import { isGroveError } from "#base/errors.ts";
import { errorText, type Logger } from "#base/log.ts";
import { SlidingWindow } from "#base/sliding-window.ts";
import { tooManyFromNetwork } from "#door/http/network-refusal.ts";
import type { OwnHosts } from "#door/http/own-hosts.ts";
import type { PageExchange } from "#door/http/pages.ts";
import { DavRefusal } from "#door/webdav/status-table.ts";
import type { CodeFlow } from "#security/identity/code-flow-types.ts";
import type { SessionKeeper } from "./browser-people.ts";
import { cookieOf, setCookie } from "./cookies.ts";
import { FLOW_MS, localPath, readFlow, writeFlow } from "./flow-cookie.ts";
import type { KnownSessions } from "./known-sessions.ts";
import { requireOwnChange, requireOwnPage } from "./own-page.ts";
import { FORM_HEADERS, MOCK_FORM } from "./sign-in-page.ts";

/** Where the identity provider sends browsers back to. */
export const CALLBACK_PATH = "/sign-in/callback";
/** Sign-ins begun, or finished, from one network in the window below. */
export const SIGN_INS_PER_NETWORK = 60;
/** The window of the limit above. */
export const SIGN_IN_WINDOW_MS: number = 5 * 60_000;
/** Bytes of the form in mock mode. */
const FORM_MAX_BYTES = 4_096;

/** Why somebody is back without a session; the page has a sentence for each. */
type Refused = "away" | "failed" | "limited" | "locked" | "not_set_up";

/** Parts of it. */
export interface SignInDeps {
  /** To the identity provider; undefined where none is set up. */
  readonly flow: CodeFlow | undefined;
  readonly mock: boolean;
  readonly hosts: OwnHosts;
  readonly keeper: SessionKeeper;
  readonly sessions: KnownSessions;
  readonly clock: Clock;
  readonly log: Logger;
}

/** The addresses below /sign-in, and /sign-out. */
export class BrowserSignIn {
  readonly #deps: SignInDeps;
  readonly #acts: SlidingWindow;

  constructor(deps: SignInDeps) {
    this.#deps = deps;
    this.#acts = new SlidingWindow(deps.clock, { count: SIGN_INS_PER_NETWORK, windowMs: SIGN_IN_WINDOW_MS });
  }

  /** Answers a request; false for other addresses. */
  async answer(exchange: PageExchange): Promise<boolean> {
    try {
      return await this.#answer(exchange);
    } catch (error) {
      // A person reads the page's sentence; programs, which navigate nowhere, read the status.
      const isPerson = exchange.headers["sec-fetch-mode"] === "navigate";
      if (!isPerson || !isGroveError(error, "RATE_LIMITED")) throw error;
      back(exchange, "limited");
      return true;
    }
  }

  async #answer(exchange: PageExchange): Promise<boolean> {
    const { path, method } = exchange;
    if (path === "/sign-in" && (method === "GET" || method === "HEAD")) await this.#begin(exchange);
    else if (path === "/sign-in" && method === "POST" && this.#deps.mock) await this.#takeName(exchange);
    else if (path === CALLBACK_PATH && method === "GET") await this.#finish(exchange);
    else if (path === "/sign-out" && method === "POST") await this.#end(exchange);
    else return false;
    return true;
  }

  async #begin(exchange: PageExchange): Promise<void> {
    const { flow, mock, hosts, clock, log } = this.#deps;
    const own = new URL(hosts.publicUrl);
    const returnTo = localPath(exchange.query.get("to"));
    // The cookie has to belong to the host to which the provider sends the browser back.
    if (exchange.host.toLowerCase() !== own.host)
      return redirect(exchange, `${hosts.publicUrl}/sign-in?to=${encodeURIComponent(returnTo)}`);
    if (mock) return sendForm(exchange);
    if (flow === undefined) return back(exchange, "not_set_up");
    this.#count(exchange);
    try {
      const { url, secrets } = await flow.begin();
      const text = writeFlow({ secrets, returnTo }, clock.wallMs());
      exchange.setHeader("set-cookie", setCookie(exchange, "flow", text, FLOW_MS / 1_000));
      redirect(exchange, url);
    } catch (error) {
      if (!isGroveError(error, "IDP_UNAVAILABLE")) throw error;
      log.warn("sign_in_unavailable", { error: errorText(error) });
      back(exchange, "away");
    }
  }

  async #finish(exchange: PageExchange): Promise<void> {
    const { flow, clock } = this.#deps;
    this.#count(exchange);
    const dropFlow = setCookie(exchange, "flow", "", 0);
    const underWay = readFlow(cookieOf(exchange, "flow"), clock.wallMs());
    // Another browser's sign-in, or one that has ended: the provider is not asked.
    if (flow === undefined || underWay === undefined) return back(exchange, "failed", [dropFlow]);
    const callback = new URL(`${exchange.path}?${exchange.query.toString()}`, "http://door");
    let idToken: string | undefined;
    try {
      idToken = await flow.finish(callback, underWay.secrets);
    } catch (error) {
      if (!isGroveError(error, "IDP_UNAVAILABLE")) throw error;
      return back(exchange, "away", [dropFlow]);
    }
    if (idToken === undefined) return back(exchange, "failed", [dropFlow]);
    await this.#open(exchange, { idToken, returnTo: underWay.returnTo, cookies: [dropFlow] });
  }

  async #takeName(exchange: PageExchange): Promise<void> {
    requireOwnChange(exchange);
    this.#count(exchange);
    const email = new URLSearchParams(await textOf(exchange)).get("email")?.trim().toLowerCase() ?? "";
    // The form is sent to its own address, which says where the person was.
    const returnTo = localPath(exchange.query.get("to"));
    if (!/^[^\s@.]+(?:\.[^\s@.]+)*@[^\s@]{1,200}$/u.test(email))
      return redirect(exchange, `/sign-in?to=${encodeURIComponent(returnTo)}`);
    await this.#open(exchange, { idToken: `mock-jwt.${email}`, returnTo, cookies: [] });
  }

  /** Opens a session in the place of the browser's former one. */
  async #open(
    exchange: PageExchange,
    signIn: { readonly idToken: string; readonly returnTo: string; readonly cookies: readonly string[] },
  ): Promise<void> {
    const { keeper, sessions, clock, log } = this.#deps;
    const { address } = exchange.facts;
    try {
      const { "user-agent": agent } = exchange.headers;
      const browser = { address, userAgent: typeof agent === "string" ? agent : "" };
      const { secret, username, endsMs } = await keeper.openSession(signIn.idToken, browser);
      sessions.opened(secret);
      const seconds = Math.max(0, Math.floor((endsMs - clock.wallMs()) / 1_000));
      const former = cookieOf(exchange, "session");
      if (former !== undefined) await this.#endQuietly(former, false, address);
      log.info("signed_in", { user: username, address });
      exchange.setHeader("set-cookie", [...signIn.cookies, setCookie(exchange, "session", secret, seconds)]);
      redirect(exchange, signIn.returnTo);
    } catch (error) {
      const why = refusedOf(error);
      log.info("sign_in_refused", { address, why, error: isGroveError(error) ? error.code : "NETWORK" });
      back(exchange, why, signIn.cookies);
    }
  }

  async #end(exchange: PageExchange): Promise<void> {
    requireOwnChange(exchange);
    const secret = cookieOf(exchange, "session");
    const everywhere = exchange.query.get("everywhere") === "1";
    if (secret !== undefined) await this.#endKnown(secret, everywhere, exchange.facts.address);
    // Not before: without its cookie nobody could end a session that goes on.
    exchange.setHeader("set-cookie", setCookie(exchange, "session", "", 0));
    exchange.setHeader("clear-site-data", '"cache"');
    exchange.setHeader("content-length", 0);
    exchange.setHeader("cache-control", "no-store");
    exchange.statusCode = 204;
    exchange.end();
  }

  /** Ends a session, and is quiet about one that has ended. Unknown ones count as guesses here too. */
  async #endKnown(secret: string, everywhere: boolean, address: string): Promise<void> {
    const { keeper, sessions } = this.#deps;
    try {
      await sessions.judge(secret, address, () => keeper.endSession(secret, everywhere, address));
    } catch (error) {
      if (!isGroveError(error, "TOKEN_REJECTED")) throw error;
    }
  }

  async #endQuietly(secret: string, everywhere: boolean, address: string): Promise<void> {
    try {
      await this.#deps.keeper.endSession(secret, everywhere, address);
    } catch (error) {
      this.#deps.log.debug("former_session_kept", { error: errorText(error) });
    }
  }

  #count(exchange: PageExchange): void {
    requireOwnOrProvider(exchange);
    const waitMs = this.#acts.take(exchange.facts.address);
    if (waitMs > 0) throw tooManyFromNetwork("sign-ins", waitMs);
  }
}

/** Pages of other sites may send somebody here, as the provider does, but may not load it. */
function requireOwnOrProvider(exchange: PageExchange): void {
  const mode = exchange.headers["sec-fetch-mode"];
  if (mode !== undefined && mode !== "navigate") requireOwnPage(exchange);
}

function refusedOf(error: unknown): Refused {
  if (isGroveError(error, "CLIENT_ID_UNSET")) return "not_set_up";
  if (isGroveError(error, "USER_DISABLED")) return "locked";
  return isGroveError(error, "TOKEN_REJECTED", "MOCK_TOKEN", "BAD_ARGUMENT") ? "failed" : "away";
}

function back(exchange: PageExchange, why: Refused, cookies: readonly string[] = []): void {
  if (cookies.length > 0) exchange.setHeader("set-cookie", cookies);
  redirect(exchange, `/?refused=${why}`);
}

function redirect(exchange: PageExchange, to: string): void {
  exchange.statusCode = 303;
  exchange.setHeader("location", to);
  exchange.setHeader("cache-control", "no-store");
  exchange.setHeader("referrer-policy", "no-referrer");
  exchange.setHeader("content-length", 0);
  exchange.end();
}

function sendForm(exchange: PageExchange): void {
  for (const [name, value] of Object.entries(FORM_HEADERS)) exchange.setHeader(name, value);
  exchange.setHeader("content-length", Buffer.byteLength(MOCK_FORM));
  exchange.statusCode = 200;
  exchange.end(exchange.method === "HEAD" ? undefined : MOCK_FORM);
}

async function textOf(exchange: PageExchange): Promise<string> {
  const parts: Uint8Array[] = [];
  let bytes = 0;
  for await (const part of exchange) {
    bytes += part.length;
    if (bytes > FORM_MAX_BYTES) throw new DavRefusal(413, "that is too much for a sign-in");
    parts.push(part);
  }
  return Buffer.concat(parts).toString("utf8");
}
