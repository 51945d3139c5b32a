// The live stream: open WebSockets, what each audience receives, and who may connect (decision D8, spec 6).
import type { Socket } from "node:net";
import type { WebSocket } from "ws";
import { AUDIENCES, type Audience } from "#base/audience.ts";
import { AwakeClock } from "#base/awake-clock.ts";
import type { Clock } from "#base/clock.ts";
import { errorText, type Logger } from "#base/log.ts";
import { VERSION } from "#base/version.ts";
import type { OperatorSession } from "#console/http/route.ts";
import type { AlertRecord } from "#wire/webapi/alert.ts";
import { CLOSE_CODES } from "#wire/webapi/live.ts";
import { LIVE_CLOSE_GRACE_MS, LIVE_TICK_MS, LiveClient, type LiveVisit } from "./live-client.ts";
import { answerRequest, type TopicSource } from "./live-requests.ts";
import { LiveStream, type TopicMessage } from "./live-stream.ts";

/** Limit of open WebSockets in all (decision D17). */
const LIVE_SOCKETS_MAX = 2_000;
/** Limit of visitors' sockets from one address (decision D17). */
const LIVE_SOCKETS_PER_ADDRESS = 20;
/** Sockets of the total that are reserved for operators, so that they get in while many visitors watch. */
const LIVE_SOCKETS_FOR_OPERATORS = 100;
/** Time that one turn of the event loop spends on sending to sockets. */
const LIVE_SLICE_MS = 4;
/** Sockets that one turn serves, whatever the clock says. */
const LIVE_SLICE_SOCKETS = 128;

/** A change of an alert, in both forms. */
export interface LiveAlert {
  readonly kind: "raised" | "changed" | "resolved" | "recorded";
  readonly alert: AlertRecord;
  /** The form for visitors; undefined when they may not see it. */
  readonly public: AlertRecord | undefined;
}

/** Limits on the number of sockets. */
export interface HubLimits {
  readonly sockets: number;
  readonly socketsPerAddress: number;
  readonly socketsForOperators: number;
}

/** What the hub is made from. */
export interface HubDeps {
  readonly clock: Clock;
  readonly log: Logger;
  /** The `data` of a snapshot as JSON, made at most once per round and audience. */
  readonly snapshot: (audience: Audience) => Buffer;
  readonly isSessionLive: (session: OperatorSession) => boolean;
  /** Replaces the numbers of decision D17, for benchmarks. */
  readonly limits?: Partial<HubLimits>;
}

/** What the console's own metrics show of its sockets. */
export interface HubCounts {
  readonly visitors: number;
  readonly operators: number;
  readonly closedByCode: ReadonlyMap<number, number>;
  readonly refused: number;
}

/** The path that a socket was opened on. */
export type LiveEndpoint = "cluster" | "actions";

/** Why no further socket is accepted. */
export type LiveObstacle = "stopping" | "full" | "address";

/** A socket that was just opened. */
export interface LiveArrival {
  readonly endpoint: LiveEndpoint;
  readonly address: string;
  readonly session: OperatorSession | undefined;
  /** True when a page of another origin opened it. */
  readonly isForeign: boolean;
  /** True when its ticket is unknown, used or expired. */
  readonly isTicketWrong: boolean;
  readonly connection: Socket;
}

/** All sockets. No method throws because of what a socket does. */
export class Hub {
  readonly #deps: HubDeps;
  readonly #limits: HubLimits;
  readonly #streams: Readonly<Record<Audience | "actions", LiveStream>>;
  readonly #clients = new Map<LiveStream, Set<LiveClient>>();
  /** Connections that exist, closing ones included. */
  readonly #open = new Set<LiveClient>();
  readonly #visitorsByAddress = new Map<string, number>();
  readonly #followers = new Map<string, Set<LiveClient>>();
  readonly #sources: TopicSource[] = [];
  readonly #snapshots = new Map<Audience, Buffer>();
  readonly #closedByCode = new Map<number, number>();
  /** The clock by which silent sockets are closed: time in which the console ran. */
  readonly #awake: AwakeClock;
  readonly #stopTicking: () => void;
  #waiting: LiveClient[] = [];
  #isWaiting = new Set<LiveClient>();
  #isPumping = false;
  #visitors = 0;
  #refused = 0;
  #isStopped = false;

  constructor(deps: HubDeps) {
    const { clock } = deps;
    this.#deps = deps;
    this.#limits = {
      sockets: LIVE_SOCKETS_MAX,
      socketsPerAddress: LIVE_SOCKETS_PER_ADDRESS,
      socketsForOperators: LIVE_SOCKETS_FOR_OPERATORS,
      ...deps.limits,
    };
    this.#streams = {
      visitor: new LiveStream(clock),
      operator: new LiveStream(clock),
      actions: new LiveStream(clock),
    };
    for (const stream of Object.values(this.#streams)) this.#clients.set(stream, new Set());
    this.#awake = new AwakeClock(clock, LIVE_TICK_MS);
    this.#stopTicking = clock.every(LIVE_TICK_MS, () => this.#tick());
  }

  /** Numbers for the metrics. */
  get counts(): HubCounts {
    const visitors = this.#visitors;
    return {
      visitors,
      operators: this.#open.size - visitors,
      closedByCode: this.#closedByCode,
      refused: this.#refused,
    };
  }

  /**
   * Why no further socket of a visitor, or without an address of an operator, is accepted now; asked before
   * the upgrade.
   */
  obstacle(visitorAddress: string | undefined): LiveObstacle | undefined {
    const obstacle = this.#obstacle(visitorAddress);
    if (obstacle !== undefined) this.#refused++;
    return obstacle;
  }

  /**
   * Takes a socket over, sends `hello` and then what its path offers. Closes a wrong ticket with 4401 and a
   * foreign page with 4403: only an open socket can tell a browser why. /ws/actions requires a session.
   */
  accept(socket: WebSocket, visit: LiveArrival): void {
    const { endpoint, address, session, connection } = visit;
    const audience = session === undefined ? "visitor" : "operator";
    const stream = this.#streams[endpoint === "actions" ? "actions" : audience];
    const client = this.#join(socket, connection, { address, session, stream });
    if (this.#isStopped) client.endForStop();
    else if (visit.isForeign) client.end(CLOSE_CODES.origin, "opened by a page of another site");
    else if (visit.isTicketWrong) client.end(CLOSE_CODES.noSession, "the ticket is not valid");
    else {
      this.#clientsOf(stream).add(client);
      client.sendEvent(hello(stream, session));
      const snapshot = endpoint === "cluster" ? this.#snapshot(audience) : undefined;
      if (snapshot !== undefined) client.sendSnapshot(snapshot);
    }
  }

  /** Sends the current snapshot to every socket on `/ws/cluster`, serialised once per audience (spec 6). */
  broadcastSnapshot(): void {
    this.#snapshots.clear();
    for (const audience of AUDIENCES) {
      const clients = this.#clientsOf(this.#streams[audience]);
      if (clients.size === 0) continue;
      const data = this.#serialised(audience);
      if (data === undefined) continue;
      const message = this.#streams[audience].passing("metrics.snapshot", data);
      this.#snapshots.set(audience, message);
      for (const client of clients) client.sendSnapshot(message);
    }
  }

  /** Sends an alert's change to its audiences. Disconnected clients get it by `resume`. */
  alertEvent(event: LiveAlert): void {
    // A record of a recovery is sent as raised, because it is a new row in the list.
    const type = `alert.${event.kind === "recorded" ? "raised" : event.kind}`;
    this.#tell(this.#streams.operator, type, event.alert);
    if (event.public !== undefined) this.#tell(this.#streams.visitor, type, event.public);
  }

  /** Adds a source of topics that operators may follow on `/ws/actions`. */
  addSource(source: TopicSource): void {
    this.#sources.push(source);
  }

  /** Sends a message to all sockets that follow a topic. */
  publish(topic: string, message: TopicMessage): void {
    const followers = this.#followers.get(topic);
    if (followers === undefined) return;
    const framed = this.#streams.actions.ofTopic(message);
    for (const client of followers) client.sendEvent(framed);
  }

  /** Closes the sockets of an ended session (decision D3). */
  endSession(session: OperatorSession): void {
    for (const client of this.#open) {
      if (client.visit.session?.id === session.id) client.end(CLOSE_CODES.noSession, "the session is over");
    }
  }

  /** Accepts no more sockets, closes all with 1001, and resolves after the grace time at the latest. */
  async close(): Promise<void> {
    this.#isStopped = true;
    this.#stopTicking();
    for (const client of this.#open) client.endForStop();
    const until = performance.now() + LIVE_CLOSE_GRACE_MS + 1_000;
    while (this.#open.size > 0 && performance.now() < until) {
      await new Promise((resolve) => setTimeout(resolve, 10));
    }
  }

  #obstacle(visitorAddress: string | undefined): LiveObstacle | undefined {
    if (this.#isStopped) return "stopping";
    const { sockets, socketsForOperators, socketsPerAddress } = this.#limits;
    if (this.#open.size >= sockets) return "full";
    if (visitorAddress === undefined) return undefined;
    if (this.#visitors >= sockets - socketsForOperators) return "full";
    const here = this.#visitorsByAddress.get(visitorAddress) ?? 0;
    return here >= socketsPerAddress ? "address" : undefined;
  }

  #join(socket: WebSocket, connection: Socket, visit: LiveVisit): LiveClient {
    const client = new LiveClient(socket, connection, visit, {
      clock: this.#deps.clock,
      awake: this.#awake,
      isSessionLive: this.#deps.isSessionLive,
      wantsFlush: (waiting) => this.#flushSoon(waiting),
      onRequest: (asking, text) => this.#request(asking, text),
      onEnd: (ended, code) => this.#leave(ended, code),
      onGone: (gone) => this.#gone(gone),
    });
    this.#open.add(client);
    if (visit.session === undefined) this.#countVisitor(visit.address, 1);
    return client;
  }

  #leave(client: LiveClient, code: number): void {
    this.#count(code);
    this.#clientsOf(client.visit.stream).delete(client);
    for (const topic of client.topics) this.#unfollow(client, topic);
  }

  #gone(client: LiveClient): void {
    this.#open.delete(client);
    if (client.visit.session === undefined) this.#countVisitor(client.visit.address, -1);
  }

  #countVisitor(address: string, by: 1 | -1): void {
    this.#visitors += by;
    const count = (this.#visitorsByAddress.get(address) ?? 0) + by;
    if (count === 0) this.#visitorsByAddress.delete(address);
    else this.#visitorsByAddress.set(address, count);
  }

  #count(code: number): void {
    this.#closedByCode.set(code, (this.#closedByCode.get(code) ?? 0) + 1);
  }

  #tell(stream: LiveStream, type: string, data: object): void {
    const message = stream.event(type, data);
    for (const client of this.#clientsOf(stream)) client.sendEvent(message);
  }

  /** The newest snapshot for a new socket; made once per round for all of them. */
  #snapshot(audience: Audience): Buffer | undefined {
    const kept = this.#snapshots.get(audience);
    const data = kept === undefined ? this.#serialised(audience) : undefined;
    if (data === undefined) return kept;
    const message = this.#streams[audience].beside("metrics.snapshot", data);
    this.#snapshots.set(audience, message);
    return message;
  }

  /** A fault in the snapshot must not end the stream of alerts. */
  #serialised(audience: Audience): Buffer | undefined {
    try {
      return this.#deps.snapshot(audience);
    } catch (error) {
      this.#deps.log.error("snapshot_failed", { audience, error: errorText(error) });
      return undefined;
    }
  }

  #request(client: LiveClient, text: string): void {
    answerRequest(client, text, {
      sources: this.#sources,
      follow: (topic) => this.#follow(client, topic),
      unfollow: (topic) => this.#unfollow(client, topic),
    });
  }

  #follow(client: LiveClient, topic: string): void {
    client.topics.add(topic);
    const followers = this.#followers.get(topic);
    if (followers === undefined) this.#followers.set(topic, new Set([client]));
    else followers.add(client);
  }

  #unfollow(client: LiveClient, topic: string): void {
    client.topics.delete(topic);
    const followers = this.#followers.get(topic);
    if (followers?.delete(client) !== true || followers.size > 0) return;
    this.#followers.delete(topic);
    for (const source of this.#sources) source.idle?.(topic);
  }

  #clientsOf(stream: LiveStream): Set<LiveClient> {
    return this.#clients.get(stream) as Set<LiveClient>;
  }

  #flushSoon(client: LiveClient): void {
    if (this.#isWaiting.has(client)) return;
    this.#isWaiting.add(client);
    this.#waiting.push(client);
    if (this.#isPumping) return;
    this.#isPumping = true;
    setImmediate(() => this.#pump());
  }

  /** Sends to some waiting sockets in each turn of the event loop, so that other work is not delayed. */
  #pump(): void {
    const endMs = performance.now() + LIVE_SLICE_MS;
    let sent = 0;
    for (const client of this.#waiting) {
      if (sent >= LIVE_SLICE_SOCKETS || (sent > 0 && performance.now() >= endMs)) break;
      sent++;
      this.#isWaiting.delete(client);
      try {
        client.flush();
      } catch (error) {
        this.#deps.log.error("live_socket_failed", { error: errorText(error) });
        client.end(1011, "failed");
      }
    }
    this.#waiting = this.#waiting.slice(sent);
    this.#isPumping = this.#waiting.length > 0;
    if (this.#isPumping) setImmediate(() => this.#pump());
  }

  #tick(): void {
    const nowMs = this.#deps.clock.steadyMs();
    this.#awake.look((awakeMs) => {
      for (const client of this.#open) client.tick(nowMs, awakeMs);
    });
  }
}

function hello(stream: LiveStream, session: OperatorSession | undefined): Buffer {
  return stream.beside("hello", {
    server_version: VERSION,
    session_expires_at: session === undefined ? null : Math.floor(session.expiresAtWallMs / 1000),
    resume_from_seq: stream.completeFrom,
  });
}
