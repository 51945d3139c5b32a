// One WebSocket: its outgoing messages, its liveness and its session (decision D8, failure W-07).
import type { Socket } from "node:net";
import type { WebSocket } from "ws";
import type { Clock } from "#base/clock.ts";
import type { OperatorSession } from "#console/http/route.ts";
import { CLOSE_CODES } from "#wire/webapi/live.ts";
import { LiveOutbox } from "./live-outbox.ts";
import type { LiveStream } from "./live-stream.ts";

/**
 * Messages that a browser may send over a WebSocket within the window below; a person's clicks are far fewer.
 */
export const LIVE_REQUESTS_PER_WINDOW = 30;
/** Window of the limit above. */
const LIVE_REQUEST_WINDOW_MS = 10_000;
/**
 * Bytes that a client may send over its WebSocket in a second, pings and fragments included; more is a flood.
 */
const LIVE_RECEIVED_BYTES_PER_SECOND = 65_536;
/** Interval of pings to a WebSocket (decision D8). */
const LIVE_PING_INTERVAL_MS = 20_000;
/** A WebSocket from which nothing arrived for this long is closed (decision D8). */
const LIVE_SILENCE_MAX_MS = 60_000;
/** Interval at which the session behind a WebSocket is looked up again (failure W-07). */
const LIVE_SESSION_CHECK_MS = 30_000;
/** Time before the end of a session at which its sockets get a warning (decision D8). */
const LIVE_SESSION_WARNING_MS: number = 5 * 60_000;
/** Bytes handed to a socket at a time; messages behind them can still be dropped. */
const LIVE_HANDED_BYTES = 65_536;
/** Interval at which sockets are checked for silence, expired sessions and floods. */
export const LIVE_TICK_MS = 1_000;
/** Time that a closed socket has for its last bytes before it is cut. */
export const LIVE_CLOSE_GRACE_MS = 3_000;

/** Close codes of RFC 6455 that the console uses, beside its own. */
const CLOSE = { goingAway: 1001, unsupported: 1003, policy: 1008 } as const;

/** The client of a socket, and the stream it gets. */
export interface LiveVisit {
  readonly address: string;
  /** Undefined for a visitor. */
  readonly session: OperatorSession | undefined;
  readonly stream: LiveStream;
}

/** What a socket needs of the hub. */
export interface LiveClientDeps {
  readonly clock: Clock;
  /** The time in which the console itself ran. */
  readonly awake: Clock;
  readonly isSessionLive: (session: OperatorSession) => boolean;
  /** Asks the hub to call `flush` soon, because messages wait. */
  readonly wantsFlush: (client: LiveClient) => void;
  readonly onRequest: (client: LiveClient, text: string) => void;
  /** Called once, when the socket takes no more messages. */
  readonly onEnd: (client: LiveClient, code: number) => void;
  /** Called once, when the connection is gone. */
  readonly onGone: (client: LiveClient) => void;
}

/** An open socket. */
export class LiveClient {
  readonly visit: LiveVisit;
  /** Newest number of the stream when this socket joined; older events come only by `resume`. */
  readonly joinedAtSeq: number;
  /** Topics that it follows. */
  readonly topics = new Set<string>();
  /** True once it has asked for missed events, which it may do once. */
  hasResumed = false;
  readonly #socket: WebSocket;
  readonly #connection: Socket;
  readonly #deps: LiveClientDeps;
  readonly #outbox = new LiveOutbox();
  #heardAtMs: number;
  #pingDueMs: number;
  #wantsPing = false;
  #sessionCheckDueMs: number;
  readonly #sessionEndsMs: number;
  #isWarned = false;
  #requests = 0;
  #requestWindowEndsMs = 0;
  #bytesRead = 0;
  #isEnded = false;
  #cancelCut: (() => void) | undefined;

  constructor(socket: WebSocket, connection: Socket, visit: LiveVisit, deps: LiveClientDeps) {
    const nowMs = deps.clock.steadyMs();
    this.visit = visit;
    this.joinedAtSeq = visit.stream.newest;
    this.#socket = socket;
    this.#connection = connection;
    this.#deps = deps;
    this.#heardAtMs = deps.awake.steadyMs();
    this.#pingDueMs = nowMs + LIVE_PING_INTERVAL_MS;
    this.#sessionCheckDueMs = nowMs + LIVE_SESSION_CHECK_MS;
    this.#sessionEndsMs = visit.session?.endsSteadyMs ?? Number.POSITIVE_INFINITY;
    this.#bytesRead = connection.bytesRead;
    // Sockets whose session was about to end when they joined learn it from `hello`.
    this.#isWarned = this.#sessionEndsMs - nowMs <= LIVE_SESSION_WARNING_MS;
    socket.on("message", (data, isBinary) => this.#received(data as Buffer, isBinary));
    socket.on("pong", () => this.#heard());
    socket.on("ping", () => this.#heard());
    // The library closes a broken client's socket with the code of RFC 6455; nothing remains to be done.
    socket.on("error", () => undefined);
    socket.on("close", () => this.#gone());
  }

  /** Sends an event; closes the socket if its reader is too far behind. */
  sendEvent(message: Buffer): void {
    if (this.#isEnded) return;
    if (this.#outbox.addEvent(message)) this.#deps.wantsFlush(this);
    else this.end(CLOSE_CODES.slowReader, "too slow");
  }

  /** Sends a snapshot, unless a newer one replaces it before the reader is ready. */
  sendSnapshot(message: Buffer): void {
    if (this.#isEnded) return;
    this.#outbox.setSnapshot(message);
    this.#deps.wantsFlush(this);
  }

  /** Hands over as much as the socket can take now. */
  flush(): void {
    if (this.#isEnded) return;
    if (this.#wantsPing) {
      this.#wantsPing = false;
      this.#socket.ping();
    }
    while (this.#socket.bufferedAmount < LIVE_HANDED_BYTES) {
      const next = this.#outbox.next();
      if (next === undefined) return;
      this.#socket.send(next.message, { binary: false, compress: false }, () => {
        next.taken();
        this.flush();
      });
    }
  }

  /**
   * Checks the socket; called every LIVE_TICK_MS with the steady time and the time in which the console ran.
   */
  tick(nowMs: number, awakeMs: number): void {
    if (this.#isEnded) return;
    if (awakeMs - this.#heardAtMs > LIVE_SILENCE_MAX_MS) {
      this.end(CLOSE_CODES.pingTimeout, "no answer to pings");
      return;
    }
    if (this.#isFlood()) {
      this.end(CLOSE.policy, "too much at once");
      return;
    }
    if (nowMs >= this.#pingDueMs) {
      this.#pingDueMs = nowMs + LIVE_PING_INTERVAL_MS;
      this.#wantsPing = true;
      this.#deps.wantsFlush(this);
    }
    this.#watchSession(nowMs);
  }

  /** Closes the socket. Bytes that are unread after the grace time are lost. */
  end(code: number, reason: string): void {
    if (this.#isEnded) return;
    this.#isEnded = true;
    this.#socket.close(code, reason);
    this.#cancelCut = this.#deps.clock.after(LIVE_CLOSE_GRACE_MS, () => this.#socket.terminate());
    this.#deps.onEnd(this, code);
  }

  /** Closes the socket because the console stops. */
  endForStop(): void {
    this.end(CLOSE.goingAway, "the console stops");
  }

  #watchSession(nowMs: number): void {
    const { session, stream } = this.visit;
    if (session === undefined) return;
    if (nowMs >= this.#sessionEndsMs) {
      this.end(CLOSE_CODES.noSession, "the session is over");
      return;
    }
    if (nowMs >= this.#sessionCheckDueMs) {
      this.#sessionCheckDueMs = nowMs + LIVE_SESSION_CHECK_MS;
      if (!this.#deps.isSessionLive(session)) {
        this.end(CLOSE_CODES.noSession, "the session is over");
        return;
      }
    }
    if (!this.#isWarned && nowMs >= this.#sessionEndsMs - LIVE_SESSION_WARNING_MS) {
      this.#isWarned = true;
      const expires_at = Math.floor(session.expiresAtWallMs / 1000);
      this.sendEvent(stream.beside("session.expiring", { expires_at }));
    }
  }

  #isFlood(): boolean {
    const bytes = this.#connection.bytesRead - this.#bytesRead;
    this.#bytesRead = this.#connection.bytesRead;
    return bytes > (LIVE_RECEIVED_BYTES_PER_SECOND * LIVE_TICK_MS) / 1_000;
  }

  #received(data: Buffer, isBinary: boolean): void {
    if (this.#isEnded) return;
    this.#heard();
    if (isBinary) {
      this.end(CLOSE.unsupported, "text only");
      return;
    }
    if (this.#heardAtMs >= this.#requestWindowEndsMs) {
      this.#requestWindowEndsMs = this.#heardAtMs + LIVE_REQUEST_WINDOW_MS;
      this.#requests = 0;
    }
    if (++this.#requests > LIVE_REQUESTS_PER_WINDOW) this.end(CLOSE.policy, "too many messages");
    else this.#deps.onRequest(this, data.toString("utf8"));
  }

  #heard(): void {
    this.#heardAtMs = this.#deps.awake.steadyMs();
  }

  #gone(): void {
    this.#cancelCut?.();
    if (!this.#isEnded) {
      this.#isEnded = true;
      this.#deps.onEnd(this, 1005);
    }
    this.#deps.onGone(this);
  }
}
