// One HTTP exchange with a WebDAV server: bounded in silence, with kept connections, no redirects followed.
import {
  type ClientRequest,
  type IncomingMessage,
  Agent as PlainAgent,
  request as plainRequest,
} from "node:http";
import { Agent as SecureAgent, request as secureRequest } from "node:https";
import { isIP } from "node:net";
import { ClientError } from "#client/terminal/client-error.ts";

/** Longest silence of a server, also until its first byte. */
const SILENCE_MS = 120_000;
const CONNECTIONS_MAX = 16;

/** Who asks. Never log it. */
export interface BasicCredentials {
  readonly user: string;
  readonly password: string;
}

/** A request. */
export interface HttpWish {
  readonly method: "PROPFIND" | "GET";
  readonly url: URL;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string;
}

/** The kept connections to one server. Every method rejects with ClientError. */
export class HttpConnections {
  readonly #agent: PlainAgent | SecureAgent;
  readonly #isSecure: boolean;
  readonly #authorization: string | undefined;
  readonly #signal: AbortSignal;

  constructor(
    base: URL,
    options: { credentials: BasicCredentials | undefined; ca: string | undefined; signal: AbortSignal },
  ) {
    const { credentials, ca, signal } = options;
    const settings = { keepAlive: true, maxSockets: CONNECTIONS_MAX };
    this.#isSecure = base.protocol === "https:";
    this.#agent = this.#isSecure
      ? new SecureAgent({ ...settings, ...(ca === undefined ? {} : { ca }) })
      : new PlainAgent(settings);
    const pair = credentials === undefined ? undefined : `${credentials.user}:${credentials.password}`;
    this.#authorization = pair === undefined ? undefined : `Basic ${Buffer.from(pair).toString("base64")}`;
    this.#signal = signal;
  }

  /** Ends all connections. */
  close(): void {
    this.#agent.destroy();
  }

  /** Sends a request; resolves with the answer's head, whose body must be read or destroyed. */
  async send({ method, url, headers, body }: HttpWish): Promise<IncomingMessage> {
    const { promise, resolve, reject } = Promise.withResolvers<IncomingMessage>();
    const options = {
      method,
      agent: this.#agent,
      signal: this.#signal,
      headers: {
        "user-agent": "grove-import",
        ...(this.#authorization === undefined ? {} : { authorization: this.#authorization }),
        ...(body === undefined ? {} : { "content-length": String(Buffer.byteLength(body)) }),
        ...headers,
      },
    };
    const request: ClientRequest = this.#isSecure ? secureRequest(url, options) : plainRequest(url, options);
    request.setTimeout(SILENCE_MS, () => request.destroy(new Error("no answer in two minutes")));
    request.once("response", resolve).once("error", reject);
    request.end(body);
    try {
      return await promise;
    } catch (error) {
      this.#signal.throwIfAborted();
      throw unreachable(url, error);
    }
  }
}

/** The failure of a server that gives no whole answer. */
export function unreachable(url: URL, cause: unknown): ClientError {
  const { code, message } = cause as NodeJS.ErrnoException;
  return new ClientError("SOURCE_FAILED", `${url.host} does not answer: ${code ?? message}`, { cause });
}

/** True for an address whose bytes stay on this machine. */
export function isLoopback(host: string): boolean {
  return host === "localhost" || host === "[::1]" || (isIP(host) === 4 && host.startsWith("127."));
}
