// Makes the console's Fastify application: JSON in 64 bits, problem documents, the gate, headers, limits; route modules plug in (D2, D17).
import { createServer as createHttpServer, type RequestListener, type Server } from "node:http";
import { createServer as createHttpsServer } from "node:https";
import { isDeepStrictEqual } from "node:util";
import cookie from "@fastify/cookie";
import websocket from "@fastify/websocket";
import fastify, { type FastifyReply, type FastifyRequest } from "fastify";
import { validatorCompiler } from "fastify-type-provider-zod";
import type { $ZodType } from "zod/v4/core";
import { safeParse } from "zod/v4/core";
import { parse64, stringify64 } from "#base/json64.ts";
import type { Logger } from "#base/log.ts";
import { isLoopbackAddress, networkOf } from "#base/network.ts";
import { makeRequestId, REQUEST_ID_HEADER } from "#base/request-scope.ts";
import { TLS_LISTENER_POLICY } from "#base/tls-policy.ts";
import { peerAddress } from "#console/http/client-address.ts";
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

/** Body of a request to the console (D17). */
const CONSOLE_BODY_MAX_BYTES = 65_536;
/** Head of a request to the console: all headers and the path (D17). */
const CONSOLE_HEADERS_MAX_BYTES = 16_384;
/** Connections to the console: its 2,000 WebSockets and as many browsers again. */
const CONSOLE_CONNECTIONS_MAX = 4_096;
/** Connections to the console from one address that is neither this machine nor a trusted proxy: one holder cannot take them all. */
const CONSOLE_CONNECTIONS_PER_ADDRESS = 256;
/** Time for a request's head and body to arrive at the console: whoever dawdles holds a connection. */
const CONSOLE_REQUEST_TIMEOUT_MS = 30_000;
/** How long the console keeps a connection on which nothing happens: longer than proxies do, so that they close first. */
const CONSOLE_KEEP_ALIVE_MS = 72_000;

/** Longest value in a path: a user name of 254 characters, percent-encoded. */
const PATH_PARAMETER_MAX_LENGTH = 1_024;

/** What the application needs. */
export interface AppDeps extends Omit<GuardDeps, "isTls"> {
  readonly log: Logger;
  /** Certificate chain and key, PEM; undefined for plain HTTP. */
  readonly tls: { readonly cert: string; readonly key: string } | undefined;
  /** Also checks every answer against its schema, field by field; for tests, since it costs more than most answers. */
  readonly checkReplies?: boolean;
  /** Told of each answer's status. */
  readonly onAnswered?: (status: number) => void;
}

/** Makes the application; route modules register their routes with it before it listens. */
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
      // Hooks do not run for a path that cannot be decoded.
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
      if (error.code === "ECONNRESET" || !socket.writable) {
        socket.destroy();
        return;
      }
      const isTooLarge = error.code === "HPE_HEADER_OVERFLOW";
      const detail = isTooLarge ? "the headers may have at most 16,384 bytes in all" : "this is not HTTP";
      socket.end(rawProblem(isTooLarge ? "HEADERS_TOO_LARGE" : "BAD_REQUEST", detail, makeRequestId()));
    },
  }) as unknown as App;
  app.setValidatorCompiler(validatorCompiler);
  // Answers are not checked as they go out: the schemas' types are, and every answer of the tests.
  app.setSerializerCompiler(() => stringify64);
  app.setReplySerializer((payload) => stringify64(payload));
  app.setErrorHandler((error, request, reply) => replyProblem(error, request, reply, log));
  readJson(app);
  // Cookies are parsed where the gate looks for one, and only there.
  await app.register(cookie, { hook: false });
  await app.register(websocket, LIVE_SERVER);
  app.websocketServer.on("wsClientError", ({ message }, socket) => {
    // The versions that there are, as RFC 6455 wants it (4.4).
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
  if (deps.checkReplies === true) {
    checkReplies(app);
    responseCache.close();
  }
  answerUnknownPaths(app);
  tellAnswered(app, answered);
  return app;
}

/** Routes may say which of their answers lie ready. What is answered while the server closes tells so, which is the framework's to do. */
function plugKept(app: App, responseCache: ResponseCache): void {
  app.decorate("responseCache", responseCache);
  app.addHook("preClose", (done) => {
    responseCache.close();
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

function makeServer(deps: AppDeps, handler: RequestListener): Server {
  const options = {
    maxHeaderSize: CONSOLE_HEADERS_MAX_BYTES,
    requestTimeout: CONSOLE_REQUEST_TIMEOUT_MS,
    headersTimeout: CONSOLE_REQUEST_TIMEOUT_MS,
    shouldUpgradeCallback: isLiveUpgrade,
    // The gate does, with an answer like every other.
    requireHostHeader: false,
  };
  const server =
    deps.tls === undefined
      ? createHttpServer(options, handler)
      : (createHttpsServer(
          { ...options, ...deps.tls, ...TLS_LISTENER_POLICY },
          handler,
        ) as unknown as Server);
  server.maxConnections = CONSOLE_CONNECTIONS_MAX;
  limitAddresses(server, deps);
  server.keepAliveTimeout = CONSOLE_KEEP_ALIVE_MS;
  return server;
}

/** One holder of connections cannot take them all; a proxy that is trusted holds those of many. */
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

/** Bodies are JSON in UTF-8, and nothing else is read; integers keep all their digits (T17). */
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
    // A field that no schema names is a field that nobody has decided to show.
    if (isDeepStrictEqual(result.data, plain)) return payload;
    throw new TypeError("an answer has a field that its schema does not name");
  });
}

/** 404 for a path without a route, 405 for one that has a route by another method. */
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
    // A route of this very method has looked and found nothing.
    if (methods.size === 0 || methods.has(request.method))
      throw new ProblemError("NO_SUCH_ROUTE", "there is nothing here; /api/openapi.json lists what there is");
    reply.header("allow", [...methods].sort().join(", "));
    const { title } = PROBLEMS.METHOD_NOT_ALLOWED;
    throw new ProblemError(
      "METHOD_NOT_ALLOWED",
      `${title.toLowerCase()} here; allowed: ${[...methods].sort().join(", ")}`,
    );
  };
  // Before the body: of a method that nothing here knows nobody can say what a body means.
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
