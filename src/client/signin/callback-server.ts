// Waits on loopback for the browser's redirect: one GET, on one path, with our state (spec 5.1).
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { constantTimeEqual } from "#base/constant-time.ts";
import { ClientError } from "#client/terminal/client-error.ts";
import { CALLBACK_CONNECTIONS_MAX } from "#client/terminal/limits.ts";
import { callbackPage, PAGE_HEADERS } from "./callback-page.ts";

/** Exchanges the redirect's address for an e-mail address, for the page. The page shows rejections too. */
export type Exchange = (callback: URL) => Promise<string>;

/** Dependencies of a callback server. */
export interface CallbackOptions {
  /** The address of the provider's redirect: http on a loopback name or address. */
  readonly redirectUri: string;
  /** The state that was sent with the browser; single use. */
  readonly state: string;
}

const LOOPBACK_HOSTS = ["127.0.0.1", "::1"] as const;
const REQUEST_TIMEOUT_MS = 10_000;

/** A listener for one sign-in. */
export class CallbackServer {
  readonly #options: CallbackOptions;
  readonly #path: string;
  readonly #servers: Server[] = [];
  #port: number;
  #exchange: Exchange | undefined;
  readonly #ended: PromiseWithResolvers<void> = Promise.withResolvers();
  #isUsed = false;

  private constructor(options: CallbackOptions) {
    const url = new URL(options.redirectUri);
    this.#options = options;
    this.#path = url.pathname;
    this.#port = Number(url.port === "" ? 80 : url.port);
    // No caller may be waiting yet when the browser comes.
    this.#ended.promise.catch(() => undefined);
  }

  /**
   * Listens on 127.0.0.1 and, if present, ::1, since the redirect's `localhost` may mean either (decision
   * T19). Rejects with the system's error, EADDRINUSE when another process has the port on either.
   */
  static async listen(options: CallbackOptions): Promise<CallbackServer> {
    const callback = new CallbackServer(options);
    try {
      for (const host of LOOPBACK_HOSTS) await callback.#listenOn(host);
    } catch (error) {
      await callback.close();
      throw error;
    }
    return callback;
  }

  /** The port that it listens on. */
  get port(): number {
    return this.#port;
  }

  /** Resolves after the redirect when `exchange` has succeeded. Rejects with ClientError or its rejection. */
  async wait(exchange: Exchange, signal: AbortSignal): Promise<void> {
    this.#exchange = exchange;
    const onAbort = (): void => this.#ended.reject(signal.reason);
    signal.addEventListener("abort", onAbort, { once: true });
    try {
      await this.#ended.promise;
    } finally {
      signal.removeEventListener("abort", onAbort);
    }
  }

  /** Stops listening; answers in progress are finished. */
  async close(): Promise<void> {
    await Promise.all(
      this.#servers.map(async (server) => {
        server.closeIdleConnections();
        await new Promise<void>((resolve) => {
          server.close(() => resolve());
        });
      }),
    );
  }

  async #listenOn(host: string): Promise<void> {
    const server = createServer({ requestTimeout: REQUEST_TIMEOUT_MS, headersTimeout: REQUEST_TIMEOUT_MS });
    server.maxConnections = CALLBACK_CONNECTIONS_MAX;
    server.on("request", (request, response) => void this.#answer(request, response));
    const listening = Promise.withResolvers<void>();
    server.once("error", listening.reject);
    server.listen({ host, port: this.#port, exclusive: true }, listening.resolve);
    try {
      await listening.promise;
    } catch (error) {
      const { code } = error as NodeJS.ErrnoException;
      // A machine without IPv6 has no ::1.
      if (host === "::1" && (code === "EADDRNOTAVAIL" || code === "EAFNOSUPPORT")) return;
      throw error;
    }
    // Port 0 in the redirect means any: the second address takes the port of the first.
    this.#port = (server.address() as AddressInfo).port;
    this.#servers.push(server);
  }

  async #answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    request.resume();
    const target = URL.parse(request.url ?? "", "http://localhost");
    if (!this.#isOwnHost(request.headers.host))
      return send(response, 400, "Wrong host", "This is not the place.");
    if (target === null || target.pathname !== this.#path) {
      return send(response, 404, "Nothing here", "Grove waits for a sign-in at another path.");
    }
    if (request.method !== "GET") return send(response, 405, "Not allowed", "Only GET is answered here.");
    if (this.#isUsed || this.#exchange === undefined) {
      return send(
        response,
        410,
        "Already used",
        "This sign-in has come to its end. Start another one in the terminal.",
      );
    }
    this.#isUsed = true;
    if (!isSame(target.searchParams.getAll("state"), this.#options.state)) {
      send(
        response,
        400,
        "Sign-in refused",
        "This answer does not belong to the sign-in that was started here.",
      );
      this.#ended.reject(
        new ClientError(
          "SIGN_IN_FAILED",
          "the browser came back with another state than the one it was sent with, so its answer was refused",
        ),
      );
      return;
    }
    await this.#conclude(target, response);
  }

  async #conclude(target: URL, response: ServerResponse): Promise<void> {
    try {
      const email = await this.#exchange?.(target);
      send(response, 200, "Signed in", `You are signed in as ${email}. You can close this window.`);
      this.#ended.resolve();
    } catch (error) {
      send(response, 400, "Sign-in failed", "The terminal that you started it from says why.");
      this.#ended.reject(error);
    }
  }

  /** A page on another host that points its name at loopback sends that name (DNS rebinding). */
  #isOwnHost(host: string | undefined): boolean {
    const names = ["localhost", "127.0.0.1", "[::1]"];
    return names.some((name) => host === `${name}:${this.#port}` || (this.#port === 80 && host === name));
  }
}

/** Compares in constant time; exactly one value must have been sent. */
function isSame(values: readonly string[], expected: string): boolean {
  return constantTimeEqual(values.join(), expected) && values.length === 1;
}

function send(response: ServerResponse, status: number, title: string, sentence: string): void {
  response.writeHead(status, PAGE_HEADERS);
  response.end(callbackPage(title, sentence));
}
