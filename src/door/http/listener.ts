// A door's port: HTTP/1.1 and HTTP/2 over TLS, or HTTP/1.1 alone where a proxy or this machine is the client.
import { createServer, type Server } from "node:http";
import { createServer as createHttp2Server, type ServerHttp2Session } from "node:http2";
import { createServer as createHttpsServer, type Server as HttpsServer } from "node:https";
import type { Socket } from "node:net";
import type { TLSSocket } from "node:tls";
import type { Clock } from "#base/clock.ts";
import type { HostPort } from "#base/node-id.ts";
import { TLS_LISTENER_POLICY } from "#base/tls-policy.ts";
import { waitAtMost } from "#base/waiting.ts";
import { isWithinAnswer } from "#os/begun-answer.ts";
import { listenWithRetries } from "#os/listen-retry.ts";
import { stopListening } from "#os/stop-listening.ts";
import type { Connections } from "./connections.ts";
import {
  DOOR_HANDSHAKE_MS,
  DOOR_HEADERS_MAX,
  DOOR_HEADERS_MAX_BYTES,
  DOOR_HEADERS_MS,
  DOOR_IDLE_MS,
  DOOR_RESETS_AT_ONCE,
  DOOR_RESETS_PER_SECOND,
  DOOR_STOP_LINGER_MS,
  DOOR_STREAMS_PER_CONNECTION,
} from "./door-limits.ts";
import type { Front } from "./front.ts";

/** Certificate chain and key, PEM. */
export interface DoorCertificate {
  readonly cert: string;
  readonly key: string;
}

/** Parts of a listener. */
export interface ListenerDeps {
  readonly front: Front;
  readonly connections: Connections;
  /** Undefined for plain HTTP. */
  readonly tls: DoorCertificate | undefined;
  readonly clock: Clock;
}

/** A door that listens. */
export interface DoorListener {
  readonly port: number;
  /** Later handshakes use this certificate. */
  updateCertificate(tls: DoorCertificate): void;
  /** Takes no more connections; those that are open end with the answers under way, at last by force. */
  stop(graceMs: number): Promise<void>;
}

/** Listens. Rejects with BAD_ARGUMENT when the port is not available. */
export async function startListener(deps: ListenerDeps, place: HostPort): Promise<DoorListener> {
  const { front, connections, tls } = deps;
  const sessions = new Set<ServerHttp2Session>();
  const secure = tls === undefined ? undefined : createSecureServer(deps, tls, sessions);
  const server = secure ?? createServer(HTTP1_OPTIONS);
  server.on("connection", (socket: Socket) => connections.add(socket));
  answerHttp1(server, front);
  await listenWithRetries(place, {
    listen: () => listenOnce(server, place),
    otherwise: "choose another with -listen",
  });
  const bound = server.address();
  return {
    port: typeof bound === "object" && bound !== null ? bound.port : place.port,
    updateCertificate: (next) => secure?.setSecureContext({ ...next, ...TLS_LISTENER_POLICY }),
    stop: (graceMs) => stop(deps, server, sessions, graceMs),
  };
}

const HTTP1_OPTIONS = {
  // Node's own answer to a request without a host has no sentence.
  requireHostHeader: false,
  maxHeaderSize: DOOR_HEADERS_MAX_BYTES,
  headersTimeout: DOOR_HEADERS_MS,
  // A body may take hours; its pace is watched instead.
  requestTimeout: 0,
  connectionsCheckingInterval: DOOR_HEADERS_MS / 5,
  keepAliveTimeout: DOOR_IDLE_MS,
} as const;

function answerHttp1(server: Server, front: Front): void {
  server.on("request", (request, response) => front.answer(request, response, false));
  server.on("checkContinue", (request, response) => front.answer(request, response, true));
  server.on("checkExpectation", (_request, response) => {
    const text = "a request expects 100-continue or nothing\n";
    const type = "text/plain; charset=utf-8";
    response.writeHead(417, { connection: "close", "content-type": type, "content-length": text.length });
    response.end(text);
  });
  server.on("clientError", (error: NodeJS.ErrnoException, socket: Socket) => {
    if (error.code === "ECONNRESET" || !socket.writable || isWithinAnswer(socket)) socket.destroy();
    else socket.end(rawRefusal(error.code), () => socket.destroy());
  });
}

/** One port for both: the handshake says which of them a client speaks. */
function createSecureServer(
  { front, clock }: ListenerDeps,
  tls: DoorCertificate,
  sessions: Set<ServerHttp2Session>,
): HttpsServer {
  const server = createHttpsServer({
    ...HTTP1_OPTIONS,
    ...TLS_LISTENER_POLICY,
    ...tls,
    ALPNProtocols: ["h2", "http/1.1"],
    handshakeTimeout: DOOR_HANDSHAKE_MS,
  });
  const http2 = createHttp2Server({
    settings: {
      maxConcurrentStreams: DOOR_STREAMS_PER_CONNECTION,
      maxHeaderListSize: DOOR_HEADERS_MAX_BYTES,
    },
    maxHeaderListPairs: DOOR_HEADERS_MAX,
    maxSessionMemory: SESSION_MEMORY_MB,
    streamResetBurst: DOOR_RESETS_AT_ONCE,
    streamResetRate: DOOR_RESETS_PER_SECOND,
  });
  http2.on("request", (request, response) => front.answer(request, response, false));
  http2.on("checkContinue", (request, response) => front.answer(request, response, true));
  http2.on("session", (session) => {
    sessions.add(session);
    session.setTimeout(DOOR_IDLE_MS, () => session.close());
    // One that asks for nothing is not kept as long as one that has.
    const cancel = clock.after(DOOR_HEADERS_MS, () => session.close());
    session.once("stream", cancel);
    session.once("close", () => {
      cancel();
      sessions.delete(session);
    });
    session.on("error", () => session.destroy());
  });
  http2.on("sessionError", () => undefined);
  const listeners = server.listeners("secureConnection") as ((socket: TLSSocket) => void)[];
  server.removeAllListeners("secureConnection");
  server.on("secureConnection", (socket: TLSSocket) => {
    if (socket.alpnProtocol === "h2") http2.emit("connection", socket);
    else for (const listener of listeners) listener.call(server, socket);
  });
  server.on("tlsClientError", (_error, socket) => socket.destroy());
  return server;
}

/** Megabytes that Node keeps for one HTTP/2 connection. */
const SESSION_MEMORY_MB = 4;

function listenOnce(server: Server, { host, port }: HostPort): Promise<void> {
  return new Promise((resolve, reject) => {
    server.once("error", reject);
    server.listen({ host, port }, () => {
      server.off("error", reject);
      resolve();
    });
  });
}

async function stop(
  { front, connections, clock }: ListenerDeps,
  server: Server,
  sessions: ReadonlySet<ServerHttp2Session>,
  graceMs: number,
): Promise<void> {
  const closed = stopListening(server);
  for (const session of sessions) session.close();
  const ended = (async () => {
    // From now on each answer ends its connection.
    void front.drain();
    if (graceMs > 0) await waitAtMost(clock, Math.min(graceMs, DOOR_STOP_LINGER_MS), closed);
    server.close();
    await front.drain();
  })();
  await waitAtMost(clock, graceMs, ended);
  connections.closeAll();
  await closed;
}

/** An answer to what is no request of HTTP, or one with too large headers. */
function rawRefusal(code: string | undefined): string {
  const [status, text] =
    code === "HPE_HEADER_OVERFLOW"
      ? [
          "431 Request Header Fields Too Large",
          `all headers together have at most ${DOOR_HEADERS_MAX_BYTES} bytes`,
        ]
      : code === "ERR_HTTP_REQUEST_TIMEOUT"
        ? ["408 Request Timeout", "the request came too slowly"]
        : ["400 Bad Request", "this is not HTTP as it is specified"];
  const body = `${text}\n`;
  return `HTTP/1.1 ${status}\r\nconnection: close\r\ncontent-type: text/plain; charset=utf-8\r\ncontent-length: ${body.length}\r\n\r\n${body}`;
}
