// The upgrades of the two WebSockets: /ws/cluster for everybody, /ws/actions for operators (spec 5.8.3, D8).
import type { IncomingMessage } from "node:http";
import type { FastifyRequest } from "fastify";
import { networkOf } from "#base/network.ts";
import { factsOf, isForeign } from "#console/http/guard.ts";
import {
  type App,
  type OperatorSession,
  operatorOf,
  ProblemError,
  type RouteAuth,
  viewerOf,
} from "#console/http/route.ts";
import type { Hub, LiveArrival, LiveEndpoint } from "#console/live/hub.ts";
import { LIVE_PROTOCOL, TICKET_PREFIX } from "#wire/webapi/live.ts";

/** Largest message that a browser may send over a WebSocket (decision D8): 4 KiB. */
const LIVE_REQUEST_MAX_BYTES = 4_096;

/** Dependencies of the routes. */
export interface LiveRoutesDeps {
  readonly hub: Hub;
  /** The session of a ticket, which is single-use and lasts 30 s. */
  readonly redeemTicket: (ticket: string) => OperatorSession | undefined;
}

/** WebSocket options: no compression, no message above 4 KiB, RFC 6455 close codes for broken frames (D8). */
export const LIVE_SERVER = {
  options: {
    maxPayload: LIVE_REQUEST_MAX_BYTES,
    perMessageDeflate: false,
    handleProtocols: chooseProtocol,
  },
  // ws has sent the answer; ending the connection here would truncate it.
  errorHandler(): void {},
  // The hub ends all sockets before, and the library would leave upgrades that are on their way without an answer.
  preClose: (done: () => void): void => done(),
} as const;

/**
 * True for a WebSocket upgrade of a known address. Other upgrades, such as clients' offers of HTTP/2, are
 * ignored as HTTP allows.
 */
export function isLiveUpgrade({ url, headers }: IncomingMessage): boolean {
  return url?.startsWith("/ws/") === true && headers.upgrade?.toLowerCase() === "websocket";
}

/** Selects our subprotocol; a ticket among the offers is never echoed. */
function chooseProtocol(offered: ReadonlySet<string>): string | false {
  return offered.has(LIVE_PROTOCOL) ? LIVE_PROTOCOL : false;
}

/**
 * Registers the addresses. Refused before the upgrade with a problem document: requests without one, a socket
 * beyond the limit, and callers without a session where only operators listen.
 */
export function liveRoutes(app: App, deps: LiveRoutesDeps): void {
  addSocket(app, deps, "cluster", "public");
  addSocket(app, deps, "actions", "operator");
}

/** The caller, determined before the upgrade and used after it. */
type Arrival = Pick<LiveArrival, "session" | "isForeign" | "isTicketWrong">;

function addSocket(app: App, deps: LiveRoutesDeps, endpoint: LiveEndpoint, auth: RouteAuth): void {
  const arrivals = new WeakMap<FastifyRequest, Arrival>();
  app.route({
    method: "GET",
    url: `/ws/${endpoint}`,
    // The gate knows no tickets: access is checked below.
    config: { auth: "public" },
    schema: { hide: true },
    exposeHeadRoute: false,
    preHandler: (request, _reply, done) => {
      if (request.ws) arrivals.set(request, admitted(request, deps, auth));
      done();
    },
    handler: (request) => {
      if (auth === "operator") operatorOf(request);
      throw new ProblemError("BAD_REQUEST", "this address speaks WebSocket: ask for an upgrade");
    },
    wsHandler: (socket, request) => {
      const arrival = arrivals.get(request);
      if (arrival === undefined) throw new TypeError("a socket came past the door");
      const address = placeOf(request);
      deps.hub.accept(socket, { ...arrival, endpoint, address, connection: request.raw.socket });
    },
  });
}

function admitted(request: FastifyRequest, deps: LiveRoutesDeps, auth: RouteAuth): Arrival {
  const arrival = arrivalOf(request, deps);
  if (auth === "operator" && arrival.session === undefined && !showsSomethingToForeigners(request, arrival)) {
    throw new ProblemError(
      "AUTH_REQUIRED",
      arrival.isTicketWrong
        ? "the ticket is not valid"
        : "sign in as an operator first: POST /api/auth/login",
    );
  }
  const isOperator = arrival.session !== undefined;
  const obstacle = deps.hub.obstacle(isOperator ? undefined : placeOf(request));
  if (obstacle === undefined) return arrival;
  if (obstacle === "stopping")
    throw new ProblemError("STARTING", "the console stops", { retryAfterSeconds: 5 });
  const whose = obstacle === "address" ? " of this address" : "";
  throw new ProblemError("RATE_LIMITED", `too many sockets${whose} are open`, { retryAfterSeconds: 30 });
}

/**
 * True for a cross-site page with a session or an unchecked ticket: only an open socket can send it the
 * reason.
 */
function showsSomethingToForeigners(request: FastifyRequest, { isForeign: isForeignPage }: Arrival): boolean {
  return isForeignPage && (viewerOf(request).kind === "operator" || ticketOf(request) !== undefined);
}

/** A ticket decides, also a wrong one; one from a cross-site page is not consumed. */
function arrivalOf(request: FastifyRequest, deps: LiveRoutesDeps): Arrival {
  if (isForeign(request, false)) return { session: undefined, isForeign: true, isTicketWrong: false };
  const ticket = ticketOf(request);
  if (ticket !== undefined) {
    const session = deps.redeemTicket(ticket);
    return { session, isForeign: false, isTicketWrong: session === undefined };
  }
  const viewer = viewerOf(request);
  const session = viewer.kind === "operator" ? viewer.session : undefined;
  return { session, isForeign: false, isTicketWrong: false };
}

/** Key for counting sockets: an IPv4 address, or the /64 of an IPv6 one, which is one customer's. */
function placeOf(request: FastifyRequest): string {
  return networkOf(factsOf(request).address);
}

function ticketOf(request: FastifyRequest): string | undefined {
  const offered = request.headers["sec-websocket-protocol"]?.split(",") ?? [];
  const found = offered
    .map((protocol) => protocol.trim())
    .find((protocol) => protocol.startsWith(TICKET_PREFIX));
  return found?.slice(TICKET_PREFIX.length);
}
