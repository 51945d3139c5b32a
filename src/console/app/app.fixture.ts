// A real application on a real listener for tests of routes: requests by node:http, as visitor or operator.
import { type Agent, request as httpRequest, type IncomingHttpHeaders } from "node:http";
import type { AddressInfo } from "node:net";
import { ManualClock } from "#base/clock.ts";
import { silentLogger } from "#base/log.ts";
import { systemRandom } from "#base/random.ts";
import type { App, OperatorSession } from "#console/http/route.ts";
import { OperatorSessions } from "#console/operators/operator-sessions.ts";
import { TrustedProxies } from "#os/client-address.ts";
import { adminPasswordHash } from "#security/identity/admin-password.ts";
import type { Problem } from "#wire/webapi/problem.ts";
import { type AppDeps, makeApp } from "./app.ts";
import { API_OPERATOR_RATE, API_VISITOR_RATE } from "./console.ts";

/** The fixture's operator password. */
export const FIXTURE_PASSWORD = "a password of the tests";

/** An answer as received. */
export interface Answer {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly text: string;
  /** The parsed body; undefined when it is not JSON. */
  readonly json: unknown;
  /** The body, where it is a problem document. */
  readonly problem: Problem | undefined;
}

/** A request of a test. */
export interface Ask {
  readonly method?: string;
  readonly headers?: Readonly<Record<string, string>>;
  /** Sent as JSON, unless it is text or bytes. */
  readonly body?: unknown;
  /** A pooling agent; default: a connection per request. */
  readonly agent?: Agent;
}

/** An application under test. */
export interface AppUnderTest {
  readonly app: App;
  readonly url: string;
  readonly clock: ManualClock;
  readonly sessions: OperatorSessions;
  /** A request as a visitor. */
  ask(path: string, ask?: Ask): Promise<Answer>;
  /** A request as an operator, with the bearer token of `token`. */
  askAsOperator(path: string, ask?: Ask): Promise<Answer>;
  readonly token: string;
  readonly session: OperatorSession;
  close(): Promise<void>;
}

/** Starts an application with the routes of `plug`, reply checks on and rate limits off. */
export async function startApp(
  plug: (app: App, parts: { clock: ManualClock; sessions: OperatorSessions }) => void | Promise<void>,
  options: Partial<AppDeps> = {},
): Promise<AppUnderTest> {
  const clock = new ManualClock();
  const sessions = new OperatorSessions({ clock, random: systemRandom });
  const boundless = { perSecond: 1e6, burst: 1e6 };
  const app = await makeApp({
    sessions,
    clock,
    proxies: new TrustedProxies(),
    allowQueryToken: true,
    rates: {
      visitor: { ...API_VISITOR_RATE, ...boundless },
      operator: { ...API_OPERATOR_RATE, ...boundless },
    },
    onQueryToken() {},
    log: silentLogger,
    tls: undefined,
    checkReplies: true,
    ...options,
  });
  await plug(app, { clock, sessions });
  await app.listen({ host: "127.0.0.1", port: 0 });
  const { port } = app.server.address() as AddressInfo;
  const url = `http://127.0.0.1:${port}`;
  const { token, session } = sessions.create(adminPasswordHash(FIXTURE_PASSWORD));
  return {
    app,
    url,
    clock,
    sessions,
    token,
    session,
    ask: (path, ask) => askHttp(`${url}${path}`, ask),
    askAsOperator: (path, ask) =>
      askHttp(`${url}${path}`, { ...ask, headers: { ...ask?.headers, authorization: `Bearer ${token}` } }),
    async close() {
      sessions.close();
      await app.close();
    },
  };
}

/** Sends one request on its own connection; the URL's path is sent unchanged. */
export function askHttp(url: string, ask: Ask = {}): Promise<Answer> {
  const { promise, resolve, reject } = Promise.withResolvers<Answer>();
  const [, origin = "", path = ""] = /^(https?:\/\/[^/]+)(.*)$/.exec(url) ?? [];
  const { hostname, port } = new URL(origin);
  const body =
    ask.body === undefined || typeof ask.body === "string" || ask.body instanceof Uint8Array
      ? ask.body
      : JSON.stringify(ask.body);
  const request = httpRequest(
    {
      host: hostname.replace(/^\[|\]$/g, ""),
      port,
      path,
      method: ask.method ?? (body === undefined ? "GET" : "POST"),
      agent: ask.agent ?? false,
      headers: {
        ...(body === undefined
          ? {}
          : { "content-type": "application/json", "content-length": String(Buffer.byteLength(body)) }),
        ...ask.headers,
      },
    },
    (response) => {
      const pieces: Buffer[] = [];
      response.on("data", (piece: Buffer) => pieces.push(piece));
      response.on("error", reject);
      response.on("end", () => {
        const text = Buffer.concat(pieces).toString("utf8");
        const isJson = /^application\/(?:problem\+)?json/.test(response.headers["content-type"] ?? "");
        const json: unknown = isJson && text !== "" ? JSON.parse(text) : undefined;
        const isProblem = response.headers["content-type"]?.startsWith("application/problem+json") === true;
        resolve({
          status: response.statusCode ?? 0,
          headers: response.headers,
          text,
          json,
          problem: isProblem ? (json as Problem) : undefined,
        });
      });
    },
  );
  request.on("error", reject);
  request.end(body);
  return promise;
}
