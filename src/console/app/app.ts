// Builds the console's Fastify application: 64-bit JSON, problem documents, gate, headers, limits (D2, D17).
import {
  createServer as createHttpServer,
  type IncomingMessage,
  type RequestListener,
  type Server,
  type ServerResponse,
} from "node:http";
import { createServer as createHttpsServer, type ServerOptions } from "node:https";
import { isDeepStrictEqual } from "node:util";
import cookie from "@fastify/cookie";
import websocket from "@fastify/websocket";
import fastify, { type FastifyReply, type FastifyRequest } from "fastify";
import { validatorCompiler } from "fastify-type-provider-zod";
import type { $ZodType } from "zod/v4/core";
import { safeParse } from "zod/v4/core";
import { systemClock } from "#base/clock.ts";
import { parse64, stringify64 } from "#base/json64.ts";
import type { Logger } from "#base/log.ts";
import { isLoopbackAddress, networkOf } from "#base/network.ts";
import { makeRequestId, REQUEST_ID_HEADER } from "#base/request-scope.ts";
import { TLS_LISTENER_POLICY } from "#base/tls-policy.ts";
import { waitAtMost } from "#base/waiting.ts";
import { addGuard, Guard, type GuardDeps, requestIdOf } from "#console/http/guard.ts";
import { addOpenApi } from "#console/http/openapi.ts";
import {
  PROBLEM_TYPE,
  problemDocument,
  rawProblem,
  replyProblem,
  routeOf,
} from "#console/http/problem-reply.ts";
import { PROBLEMS } from "#console/http/problem-table.ts";
import { type Answered, ResponseCache } from "#console/http/response-cache.ts";
import { type App, ProblemError } from "#console/http/route.ts";
import { isLiveUpgrade, LIVE_SERVER } from "#console/routes/live-routes.ts";
import { isWithinAnswer } from "#os/begun-answer.ts";
import { peerAddress } from "#os/client-address.ts";
import { stopListening } from "#os/stop-listening.ts";
import { UnansweredRequests } from "#os/unanswered-requests.ts";

/** Body size of a request (D17). */
const CONSOLE_BODY_MAX_BYTES = 65_536;
/** Header size of a request: all headers and the path (D17). */
const CONSOLE_HEADERS_MAX_BYTES = 16_384;
/** Connections to the console: 2,000 WebSockets and as many browsers again. */
const CONSOLE_CONNECTIONS_MAX = 4_096;
/**
 * Connections from one address, this machine and trusted proxies excepted, so that one client cannot hold
 * them all.
 */
const CONSOLE_CONNECTIONS_PER_ADDRESS = 256;
/** Time for a TLS handshake, as at a door: Node's own limit is two minutes, and that of a request begins later. */
const CONSOLE_HANDSHAKE_MS = 10_000;
/** Time limit for a request's head and body, against clients that hold connections by sending slowly. */
const CONSOLE_REQUEST_TIMEOUT_MS = 30_000;
/** Time in which an answer must be made and taken: who never reads would hold it for ever. */
const CONSOLE_ANSWER_TIMEOUT_MS = 300_000;
/** Idle time of a kept connection: longer than that of proxies, so that they close first. */
const CONSOLE_KEEP_ALIVE_MS = 72_000;
/** How long connections without a request stay open at a stop, for those that are on their way. */
const CONSOLE_STOP_LINGER_MS = 500;
/** Time for requests under way at a stop: half a request would hold it, since Node's own limits end first. */
const CONSOLE_STOP_MS = 5_000;

/** Longest value in a path: a percent-encoded user name of 254 characters. */
const PATH_PARAMETER_MAX_LENGTH = 1_024;

/** Dependencies of the application. */
export interface AppDeps extends Omit<GuardDeps, "isTls"> {
  readonly log: Logger;
  /** Certificate chain and key, PEM; undefined for plain HTTP. */
  readonly tls: { readonly cert: string; readonly key: string } | undefined;
  /** Time for a TLS handshake. */
  readonly handshakeMs?: number;
  /** Also checks every answer against its schema; for tests, since that costs more than most answers. */
  readonly checkReplies?: boolean;
  /** Called with each answer's status. */
  readonly onAnswered?: (status: number) => void;
}

/** Builds the application; route modules register before it listens. */
export async function makeApp(deps: AppDeps): Promise<App> {
  const { log } = deps;
  const answered = ({ route, status, ms, address }: Answered): void => {
    deps.onAnswered?.(status);
    log.debug("request", { route, status, ms, address });
  };
  const guard = new Guard({ ...deps, isTls: deps.tls !== undefined });
  const responseCache = new ResponseCache({ guard, clock: deps.clock, onAnswered: answered });
  const app = fastify({
    serverFactory: (handler) =>
      makeServer(deps, (request, response) => {
        if (!responseCache.answer(request, response)) handler(request, response);
      }),
    genReqId: requestIdOf,
    bodyLimit: CONSOLE_BODY_MAX_BYTES,
    routerOptions: { maxParamLength: PATH_PARAMETER_MAX_LENGTH },
    return503OnClosing: false,
    forceCloseConnections: "idle",
    frameworkErrors: (error, request, reply) => {
      // Hooks do not run for an undecodable path.
      const problem = problemDocument(
        new ProblemError("BAD_REQUEST", "the path is not valid percent-encoding"),
        request.id,
      );
      log.debug("bad_request", { error: error.code });
      const answer = reply as FastifyReply;
      answer.code(problem.status).header(REQUEST_ID_HEADER, request.id).type(PROBLEM_TYPE);
      void answer.send(JSON.stringify(problem));
    },
    clientErrorHandler: (error, socket) => {
      if (error.code === "ECONNRESET" || !socket.writable || isWithinAnswer(socket)) {
        socket.destroy();
        return;
      }
      const isTooLarge = error.code === "HPE_HEADER_OVERFLOW";
      const detail = isTooLarge ? "the headers may have at most 16,384 bytes in all" : "this is not HTTP";
      socket.end(rawProblem(isTooLarge ? "HEADERS_TOO_LARGE" : "BAD_REQUEST", detail, makeRequestId()));
    },
  }) as unknown as App;
  app.setValidatorCompiler(validatorCompiler);
  // Answers are checked by their types and in tests, not at run time.
  app.setSerializerCompiler(() => stringify64);
  app.setReplySerializer((payload) => stringify64(payload));
  app.setErrorHandler((error, request, reply) => replyProblem(error, request, reply, log));
  readJson(app);
  // Only the gate parses cookies, on demand.
  await app.register(cookie, { hook: false });
  await app.register(websocket, LIVE_SERVER);
  app.websocketServer.on("wsClientError", ({ message }, socket) => {
    // The supported versions, as RFC 6455 requires (4.4).
    const headers = { "Sec-WebSocket-Version": "13, 8" };
    const text = rawProblem(
      "BAD_REQUEST",
      `this is no WebSocket handshake: ${message}`,
      makeRequestId(),
      headers,
    );
    socket.end(text, () => socket.destroy());
  });
  await addOpenApi(app);
  addGuard(app, guard);
  plugKept(app, responseCache);
  endGently(app, deps);
  if (deps.checkReplies === true) {
    checkReplies(app);
    responseCache.close();
  }
  answerUnknownPaths(app);
  tellAnswered(app, answered);
  return app;
}

/** Lets routes cache answers, until the server closes: then the framework marks each answer itself. */
function plugKept(app: App, responseCache: ResponseCache): void {
  app.decorate("responseCache", responseCache);
  app.addHook("preClose", (done) => {
    responseCache.close();
    done();
  });
}

/**
 * Answers requests that are on their way at a stop, and ends all connections within CONSOLE_STOP_MS. The
 * framework ends connections with the answers to later requests, and would cut those without one at once.
 */
function endGently(app: App, { clock }: AppDeps): void {
  const open = new Set<IncomingMessage["socket"]>();
  /** The last answer of each connection that is still to come. */
  const last = new Map<IncomingMessage["socket"], ServerResponse>();
  app.server.on("connection", (socket) => {
    open.add(socket);
    socket.once("close", () => open.delete(socket));
  });
  let isStopping = false;
  app.server.on("request", ({ socket }, response) => {
    const before = last.get(socket);
    // The end of the connection comes with the answer to this one.
    if (isStopping && before?.headersSent === false) before.setHeader("connection", "keep-alive");
    last.set(socket, response);
    response.once("close", () => {
      if (last.get(socket) === response) last.delete(socket);
    });
  });
  let cancel = (): void => undefined;
  app.addHook("preClose", async () => {
    isStopping = true;
    cancel = clock.after(CONSOLE_STOP_MS, () => {
      for (const socket of open) socket.destroy();
    });
    for (const answer of last.values()) if (!answer.headersSent) answer.setHeader("connection", "close");
    // What is on its way over a network takes real time, whatever a test's clock says.
    await waitAtMost(systemClock, CONSOLE_STOP_LINGER_MS, stopListening(app.server));
  });
  app.addHook("onClose", (_app, done) => {
    cancel();
    done();
  });
}

function tellAnswered(app: App, answered: (answered: Answered) => void): void {
  app.addHook("onResponse", (request, reply, done) => {
    const route = routeOf(request);
    const ms = Math.round(reply.elapsedTime);
    answered({ route, status: reply.statusCode, ms, address: request.client?.address });
    done();
  });
}

/** Ends connections that send many requests at once, or do not take an answer. */
function boundRequests({ clock }: AppDeps, handler: RequestListener): RequestListener {
  const unanswered = new UnansweredRequests();
  return (request, response) => {
    if (!unanswered.take(request, response)) return;
    response.once(
      "close",
      clock.after(CONSOLE_ANSWER_TIMEOUT_MS, () => request.socket.destroy()),
    );
    handler(request, response);
  };
}

function makeServer(deps: AppDeps, unbound: RequestListener): Server {
  const handler = boundRequests(deps, unbound);
  const options = {
    maxHeaderSize: CONSOLE_HEADERS_MAX_BYTES,
    requestTimeout: CONSOLE_REQUEST_TIMEOUT_MS,
    headersTimeout: CONSOLE_REQUEST_TIMEOUT_MS,
    shouldUpgradeCallback: isLiveUpgrade,
    // The gate checks the host, with a problem document.
    requireHostHeader: false,
  };
  const server =
    deps.tls === undefined
      ? createHttpServer(options, handler)
      : makeSecureServer(
          {
            ...options,
            ...deps.tls,
            ...TLS_LISTENER_POLICY,
            handshakeTimeout: deps.handshakeMs ?? CONSOLE_HANDSHAKE_MS,
          },
          handler,
        );
  server.maxConnections = CONSOLE_CONNECTIONS_MAX;
  limitAddresses(server, deps);
  server.keepAliveTimeout = CONSOLE_KEEP_ALIVE_MS;
  return server;
}

function makeSecureServer(options: ServerOptions, handler: RequestListener): Server {
  const server = createHttpsServer(options, handler);
  // Node would have it answered in HTTP, which waits for the end of the handshake, and so for ever.
  server.on("tlsClientError", (_error, socket) => socket.destroy());
  return server;
}

/** Bounds connections per address; trusted proxies are exempt, since they carry many clients. */
function limitAddresses(server: Server, { proxies }: AppDeps): void {
  const open = new Map<string, number>();
  server.on("connection", (socket) => {
    const address = peerAddress(socket);
    if (isLoopbackAddress(address) || proxies.has(address)) return;
    const place = networkOf(address);
    const count = (open.get(place) ?? 0) + 1;
    if (count > CONSOLE_CONNECTIONS_PER_ADDRESS) {
      socket.destroy();
      return;
    }
    open.set(place, count);
    socket.once("close", () => {
      const left = (open.get(place) ?? 1) - 1;
      if (left === 0) open.delete(place);
      else open.set(place, left);
    });
  });
}

/** Reads bodies of UTF-8 JSON only, with all digits of integers (T17). */
function readJson(app: App): void {
  const utf8 = new TextDecoder("utf-8", { fatal: true });
  app.removeAllContentTypeParsers();
  app.addContentTypeParser("application/json", { parseAs: "buffer" }, (_request, body, done) => {
    if (body.length === 0) return done(null, undefined);
    try {
      done(null, parse64(utf8.decode(body as Buffer)));
    } catch {
      done(new ProblemError("BAD_JSON", "the body is not JSON in UTF-8"), undefined);
    }
  });
}

/** Refuses to send an answer that its route's schema does not describe. */
function checkReplies(app: App): void {
  app.addHook("onSend", async (request, reply, payload) => {
    const schemas = request.routeOptions.schema?.response as Record<string, $ZodType> | undefined;
    const schema = schemas?.[reply.statusCode] ?? schemas?.["2xx"];
    const isJson = String(reply.getHeader("content-type")).startsWith("application/json");
    if (schema === undefined || !isJson || reply.statusCode >= 300) return payload;
    const plain: unknown = JSON.parse(String(payload));
    const result = safeParse(schema, plain);
    if (!result.success)
      throw new TypeError("an answer is not what its schema says", { cause: result.error });
    // A field outside the schema was never meant to be sent.
    if (isDeepStrictEqual(result.data, plain)) return payload;
    throw new TypeError("an answer has a field that its schema does not name");
  });
}

/** 404 for a path without a route, 405 for a path with a route of another method. */
function answerUnknownPaths(app: App): void {
  const known = new Map<string, { readonly form: RegExp; readonly methods: Set<string> }>();
  app.addHook("onRoute", ({ url, method }) => {
    const source = url
      .split(/:[A-Za-z]+/)
      .map((part) => part.replaceAll(/[.*+?^${}()|[\]\\]/g, "\\$&"))
      .join("[^/]+");
    const entry = known.get(url) ?? { form: new RegExp(`^${source}$`), methods: new Set<string>() };
    for (const one of [method].flat()) entry.methods.add(one);
    known.set(url, entry);
  });
  const refuse = (request: FastifyRequest, reply: FastifyReply): never => {
    const path = request.url.split("?", 1)[0] ?? "";
    const methods = new Set(
      [...known.values()].flatMap(({ form, methods }) => (form.test(path) ? [...methods] : [])),
    );
    // A route of this method has answered 404 itself.
    if (methods.size === 0 || methods.has(request.method))
      throw new ProblemError("NO_SUCH_ROUTE", "there is nothing here; /api/openapi.json lists what there is");
    reply.header("allow", [...methods].sort().join(", "));
    const { title } = PROBLEMS.METHOD_NOT_ALLOWED;
    throw new ProblemError(
      "METHOD_NOT_ALLOWED",
      `${title.toLowerCase()} here; allowed: ${[...methods].sort().join(", ")}`,
    );
  };
  // Before the body, which has no meaning for an unknown method.
  app.addHook("onRequest", (request, reply, done) => {
    if (!request.is404) return done();
    try {
      refuse(request, reply);
    } catch (error) {
      done(error as Error);
    }
  });
  app.setNotFoundHandler(refuse);
}
