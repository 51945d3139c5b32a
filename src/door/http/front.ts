// Every request of a door: which host and path it names, who sends it, and a place to be answered in.
import type { IncomingMessage } from "node:http";
import type { Socket } from "node:net";
import type { Clock } from "#base/clock.ts";
import { GroveError, isGroveError } from "#base/errors.ts";
import { errorText, type Logger } from "#base/log.ts";
import { LogSampler } from "#base/log-sampler.ts";
import { networkOf } from "#base/network.ts";
import { requestIdFrom, withRequestId } from "#base/request-scope.ts";
import { answerDav } from "#door/webdav/methods.ts";
import { DAV_STATUS, DavRefusal, refusalHeaders } from "#door/webdav/status-table.ts";
import { type ClientFacts, clientFacts, type TrustedProxies } from "#os/client-address.ts";
import { readBasic } from "./basic-credentials.ts";
import type { Connections } from "./connections.ts";
import { CredentialGate } from "./credential-gate.ts";
import {
  DOOR_LISTINGS_PER_USER,
  DOOR_REQUESTS,
  DOOR_REQUESTS_PER_USER,
  DOOR_UNPROVEN_REQUESTS_PER_TURN,
  DOOR_WAITING,
  DOOR_WAITING_PER_USER,
  DOOR_WINDOW_BYTES,
} from "./door-limits.ts";
import type { DoorPeople, DoorPerson } from "./door-people.ts";
import { firstPage, PAGE_HEADERS } from "./first-page.ts";
import { LINK_PREFIX, LinkSite } from "./link-site.ts";
import type { LinkVisitors } from "./link-visitors.ts";
import type { OwnHosts } from "./own-hosts.ts";
import { type DoorResponse, PacedExchange, type Traffic } from "./paced-exchange.ts";
import { pageExchange } from "./page-exchange.ts";
import type { DoorPages } from "./pages.ts";
import { Places } from "./places.ts";
import { type DoorRequest, readTarget } from "./request-target.ts";
import { RequestTurns } from "./request-turns.ts";
import { StreamTurns } from "./stream-turns.ts";

/** Where a door's files are. */
export const DAV_PREFIX = "/dav";

const SIGN_IN_TEXT =
  "sign in with your e-mail address and an app password; 'grove app-password create NAME' makes one";

/** Parts of a front. */
export interface FrontDeps {
  readonly people: DoorPeople;
  /** For browsers; undefined for a door of WebDAV alone. */
  readonly pages?: DoorPages | undefined;
  /** For people without an account. */
  readonly visitors: LinkVisitors;
  readonly hosts: OwnHosts;
  readonly proxies: TrustedProxies;
  readonly connections: Connections;
  readonly clock: Clock;
  readonly log: Logger;
}

/** Answers requests of HTTP/1.1 and HTTP/2 alike. */
export class Front {
  readonly #deps: FrontDeps;
  readonly #gate: CredentialGate;
  readonly #page: string;
  readonly #links: LinkSite;
  readonly #refusals: LogSampler;
  readonly #requests = new Places({
    total: DOOR_REQUESTS,
    perParty: DOOR_REQUESTS_PER_USER,
    waiting: DOOR_WAITING,
    waitingPerParty: DOOR_WAITING_PER_USER,
  });
  readonly #listings = new Places({
    total: DOOR_REQUESTS,
    perParty: DOOR_LISTINGS_PER_USER,
    waiting: DOOR_WAITING,
    waitingPerParty: DOOR_REQUESTS_PER_USER,
  });
  readonly #turns = new RequestTurns();
  readonly #streams = new StreamTurns();
  /** The newest request of each connection of HTTP/1.1. */
  readonly #newest = new WeakMap<Socket, PacedExchange>();
  /** Connections of HTTP/1.1 that end: what has come behind is not looked at. */
  readonly #ending = new WeakSet<Socket>();
  readonly traffic: Traffic = { in: 0, out: 0 };
  /** Answers by status. */
  readonly answered = new Map<number, number>();
  /** Those without an answer, or within it. */
  readonly #underWay = new Map<PacedExchange, DoorRequest>();
  #isDraining = false;
  #allEnded = Promise.withResolvers<void>();

  constructor(deps: FrontDeps) {
    this.#deps = deps;
    this.#gate = new CredentialGate(deps.clock);
    this.#page = firstPage(deps.hosts.publicUrl);
    this.#links = new LinkSite(deps);
    this.#refusals = new LogSampler(deps.clock);
  }

  /** Requests that have no answer yet, and those among them that wait for a place. */
  get load(): { readonly underWay: number; readonly waiting: number } {
    return { underWay: this.#underWay.size, waiting: this.#requests.waiting + this.#listings.waiting };
  }

  /** Ends connections with their next answer that has not begun; resolves when no request is under way. */
  async drain(): Promise<void> {
    this.#isDraining = true;
    for (const [exchange, request] of this.#underWay) {
      // What waits behind another is still done.
      if ("stream" in request || this.#newest.get(request.socket) !== exchange) continue;
      if (!exchange.headersSent) exchange.setHeader("connection", "close");
    }
    while (this.#underWay.size > 0) await this.#allEnded.promise;
  }

  /** Answers one request. `awaitsContinue`: its body comes only when the client is told to send it. */
  readonly answer = (request: DoorRequest, response: DoorResponse, awaitsContinue: boolean): void => {
    if ("stream" in request) {
      this.#streams.take(request.stream, () => this.#answer(request, response, awaitsContinue));
    } else if (!this.#isTooMany(request.socket)) this.#answer(request, response, awaitsContinue);
  };

  #answer(request: DoorRequest, response: DoorResponse, awaitsContinue: boolean): void {
    const startedMs = this.#deps.clock.steadyMs();
    const facts = clientFacts(request as IncomingMessage, this.#deps.proxies);
    const exchange = new PacedExchange(request, response, {
      url: pathOf(request.url ?? ""),
      clock: this.#deps.clock,
      traffic: this.traffic,
    });
    this.#underWay.set(exchange, request);
    exchange.whenGone(() => {
      this.#underWay.delete(exchange);
      if (!("stream" in request)) this.#turns.answered(request.socket);
      const { statusCode: status } = exchange;
      this.answered.set(status, (this.answered.get(status) ?? 0) + 1);
      const ms = Math.round(this.#deps.clock.steadyMs() - startedMs);
      this.#deps.log.debug("request", { method: request.method, status, ms, address: facts.address });
      if (!this.#isDraining || this.#underWay.size > 0) return;
      this.#allEnded.resolve();
      this.#allEnded = Promise.withResolvers();
    });
    const id = requestIdFrom(request.headers["x-request-id"]);
    exchange.setHeader("x-request-id", id);
    if (this.#isDraining) exchange.setHeader("connection", "close");
    const route = (): Promise<void> =>
      withRequestId(id, () =>
        this.#route(request, exchange, facts, awaitsContinue).catch((error: unknown) =>
          this.#refuse(request, exchange, error, facts),
        ),
      );
    this.#inOrder(request, exchange, route);
  }

  /**
   * Starts a request once the one before it on a connection of HTTP/1.1 has its answer: a change is complete
   * before the next begins (RFC 9112, section 9.3.2), and nothing is done behind an answer that ends the connection
   * (section 9.6).
   */
  #inOrder(request: DoorRequest, exchange: PacedExchange, start: () => Promise<void>): void {
    if ("stream" in request) return void start();
    const { socket } = request;
    const before = this.#newest.get(socket);
    this.#newest.set(socket, exchange);
    if (before === undefined) return void start();
    before.whenGone(() => {
      if (!before.endsConnection) void start();
    });
  }

  async #route(
    request: DoorRequest,
    exchange: PacedExchange,
    facts: ClientFacts,
    awaitsContinue: boolean,
  ): Promise<void> {
    const { hosts } = this.#deps;
    const { host, path } = readTarget(request);
    if (path === "/health") return sendText(exchange, 200, "ok\n");
    if (!facts.isSecure && !facts.isLoopback) {
      throw new DavRefusal(403, `use https: this door speaks plain HTTP with its own machine alone`);
    }
    if (!hosts.has(host)) throw new DavRefusal(421, `this door's address is ${hosts.publicUrl}`);
    if (facts.isSecure) exchange.setHeader("strict-transport-security", "max-age=31536000");
    if (path === DAV_PREFIX || path.startsWith(`${DAV_PREFIX}/`)) {
      return await this.#answerDav(request, exchange, facts, awaitsContinue);
    }
    if (path.startsWith(`${LINK_PREFIX}/`)) {
      return await this.#links.answer(exchange, facts, { path, awaitsContinue });
    }
    const { pages } = this.#deps;
    if (pages !== undefined && request.method !== "OPTIONS") {
      const page = pageExchange(exchange, {
        path,
        host: host ?? "",
        facts,
        awaitsContinue,
        prove: () => {
          if (this.#deps.connections.prove(request.socket)) widenWindows(request);
        },
      });
      if (await pages.answer(page)) return;
    }
    if (path === "/" || path === "*") return this.#answerTop(exchange);
    throw new DavRefusal(404, `there is nothing here; the files are at ${hosts.publicUrl}${DAV_PREFIX}/`);
  }

  /** The page for people; OPTIONS for programs that ask the server as a whole before they sign in. */
  #answerTop(exchange: PacedExchange): void {
    const { method } = exchange;
    if (method === "OPTIONS") {
      exchange.setHeader("dav", "1, 2, 3");
      exchange.setHeader("ms-author-via", "DAV");
      exchange.setHeader("allow", "OPTIONS, GET, HEAD");
      exchange.setHeader("content-length", 0);
      exchange.statusCode = 200;
      return exchange.end();
    }
    if (method !== "GET" && method !== "HEAD") {
      exchange.setHeader("allow", "OPTIONS, GET, HEAD");
      throw new DavRefusal(405, `the files are at ${this.#deps.hosts.publicUrl}${DAV_PREFIX}/`);
    }
    for (const [name, value] of Object.entries(PAGE_HEADERS)) exchange.setHeader(name, value);
    exchange.setHeader("content-length", Buffer.byteLength(this.#page));
    exchange.statusCode = 200;
    exchange.end(method === "HEAD" ? undefined : this.#page);
  }

  async #answerDav(
    request: DoorRequest,
    exchange: PacedExchange,
    facts: ClientFacts,
    awaitsContinue: boolean,
  ): Promise<void> {
    const { headers } = request;
    // A page of another origin could otherwise use what a browser remembers. Programs send other Sec-Fetch headers.
    if ("sec-fetch-site" in headers || "service-worker" in headers) {
      throw new DavRefusal(403, "this address is for WebDAV programs: browsers are refused here");
    }
    const person = await this.#signIn(request, facts, exchange);
    exchange.whenGone(() => person.release());
    if (exchange.isGone) return;
    if (this.#deps.connections.prove(request.socket)) widenWindows(request);
    const place = { prefix: DAV_PREFIX, hosts: this.#deps.hosts.all };
    const options = { tree: person.tree, place, awaitsContinue, log: this.#deps.log };
    const { username } = person;
    const isListing = request.method === "PROPFIND" && headers["depth"] !== "0";
    await this.#requests.run(username, exchange, async () => {
      const leaveListing = isListing ? await this.#listings.take(username, exchange) : undefined;
      await answerDav(exchange, exchange, options).finally(leaveListing);
    });
  }

  async #signIn(request: DoorRequest, facts: ClientFacts, exchange: PacedExchange): Promise<DoorPerson> {
    const credentials = readBasic(request.headers.authorization);
    if (credentials === undefined) throw new GroveError("TOKEN_REJECTED", SIGN_IN_TEXT);
    const { address } = facts;
    return await this.#gate.check(credentials, address, exchange, () =>
      this.#deps.people.signIn(credentials, address),
    );
  }

  #refuse(request: DoorRequest, exchange: PacedExchange, error: unknown, facts: ClientFacts): void {
    if (exchange.destroyed) return;
    if (exchange.headersSent) return exchange.destroy();
    const { status, text } = this.#refusalOf(error);
    for (const [name, value] of Object.entries(refusalHeaders(status, error)))
      exchange.setHeader(name, value);
    if ((status === 401 || status === 429) && this.#deps.connections.refuse(request.socket)) {
      this.#end(request, exchange);
    }
    const sampled = this.#refusals.take(`${status} ${networkOf(facts.address)}`);
    if (sampled !== undefined && status !== 404) {
      this.#deps.log.info("refused", { status, reason: text, address: facts.address, ...sampled });
    }
    sendText(exchange, status, `${text}\n`);
  }

  /** True for a request of HTTP/1.1 that is not looked at, since its connection ends. */
  #isTooMany(socket: Socket): boolean {
    if (this.#ending.has(socket)) return true;
    if (this.#turns.took(socket) <= DOOR_UNPROVEN_REQUESTS_PER_TURN) return false;
    if (this.#deps.connections.isProven(socket)) return false;
    // No honest program sends so many at once before anybody has signed in.
    this.#ending.add(socket);
    socket.destroy();
    return true;
  }

  /** Ends a connection with this answer: who guesses pays for a new one. */
  #end(request: DoorRequest, exchange: PacedExchange): void {
    if ("stream" in request) return request.stream.session?.close();
    exchange.setHeader("connection", "close");
    this.#ending.add(request.socket);
  }

  #refusalOf(error: unknown): { readonly status: number; readonly text: string } {
    if (error instanceof DavRefusal) return { status: error.status, text: error.message };
    if (isGroveError(error)) {
      const { status } = DAV_STATUS[error.code];
      // What was wrong with credentials helps those who guess them.
      return { status, text: status === 401 ? SIGN_IN_TEXT : error.message };
    }
    this.#deps.log.error("door_failed", { error: errorText(error) });
    return { status: 500, text: "an error of the door; its log tells more" };
  }
}

function sendText(exchange: PacedExchange, status: number, text: string): void {
  exchange.statusCode = status;
  exchange.setHeader("content-type", "text/plain; charset=utf-8");
  exchange.setHeader("x-content-type-options", "nosniff");
  exchange.setHeader("cache-control", "no-store");
  exchange.setHeader("content-length", Buffer.byteLength(text));
  exchange.end(exchange.method === "HEAD" ? undefined : text);
}

/** Lets a connection of HTTP/2 bring more at once: before, a stranger could fill memory. */
function widenWindows(request: DoorRequest): void {
  const session = "stream" in request ? request.stream.session : undefined;
  if (session === undefined || session.destroyed) return;
  session.setLocalWindowSize(DOOR_WINDOW_BYTES);
  session.settings({ initialWindowSize: DOOR_WINDOW_BYTES });
}

/** An address without scheme and host. */
function pathOf(url: string): string {
  return /^https?:\/\//iu.test(url) ? url.replace(/^https?:\/\/[^/?#]*/iu, "") || "/" : url;
}
