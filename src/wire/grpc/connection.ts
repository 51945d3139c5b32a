// A client's connection to the server: its identity, its calls, and its liveness.
import type { ServerHttp2Session, ServerHttp2Stream } from "node:http2";
import { constants } from "node:http2";
import type { Socket } from "node:net";
import { TLSSocket } from "node:tls";
import { networkOf } from "#base/network.ts";
import { Slots } from "#base/slots.ts";
import { readingOf, type SocketReading } from "#os/socket-reading.ts";
import { WriteProgress } from "#os/socket-writing.ts";
import {
  FRAME_COST_BYTES,
  LINGER_MS,
  REFUSAL_LOAD_BYTES,
  REFUSALS_PER_CONNECTION,
  SETTINGS_ANSWER_MS,
  type ServerLimits,
  UNPROVEN_LOAD_OF_CONNECTION,
} from "#wire/framing/limits.ts";
import { outsideReading } from "#wire/framing/reset.ts";
import { askAlive } from "./ask-alive.ts";
import type { Peer, PeerCertificate } from "./call-context.ts";
import type { CallLane } from "./call-scheduler.ts";
import { ConnectionPlaces } from "./connection-places.ts";
import type { ConnectionStanding, TableConnection } from "./connection-table.ts";
import type { Door } from "./doorkeeper.ts";
import { FloodGauge } from "./flood-gauge.ts";
import { LinkPace } from "./link-pace.ts";
import type { ReadLane, ReadScheduler } from "./read-scheduler.ts";
import { ReplyScheduler } from "./reply-scheduler.ts";
import type { ServerCall } from "./server-call.ts";
import type { UnprovenLoad } from "./unproven-load.ts";

/** An address as sessions are bound to it: without the ::ffff: of dual-stack sockets, without a zone. */
export const normalAddress = (address: string): string => {
  const bare = address.split("%", 1)[0] as string;
  return /^::ffff:\d+\.\d+\.\d+\.\d+$/i.test(bare) ? bare.slice(7) : bare;
};

const certificateOf = (socket: TLSSocket): PeerCertificate | undefined => {
  const certificate = socket.getPeerCertificate();
  // An empty object means no certificate; one without a subject names no peer.
  if (certificate.raw === undefined || Object.keys(certificate.subject ?? {}).length === 0) return undefined;
  return {
    authorized: socket.authorized,
    problem: socket.authorized ? undefined : String(socket.authorizationError),
    subjectAltName: certificate.subjectaltname,
    fingerprint256: certificate.fingerprint256,
    raw: certificate.raw,
  };
};

/** The four numbers that make a TCP connection unique. */
export const connectionKey = (socket: Socket): string =>
  `${socket.remoteAddress}|${socket.remotePort}|${socket.localAddress}|${socket.localPort}`;

/** Dependencies of a connection. */
export interface ConnectionDeps {
  readonly limits: ServerLimits;
  /** Steady time. */
  readonly nowMs: number;
  /** The door that counts it. */
  readonly door: Door<Connection>;
  /** Counts its wasted work; undefined where callers prove nothing. */
  readonly load: UnprovenLoad | undefined;
  readonly readScheduler: ReadScheduler;
}

/** A connection and the calls in progress on it. */
export class Connection implements TableConnection {
  readonly calls: Slots<ServerCall> = new Slots();
  /** Streams whose callers are being judged in another thread. */
  readonly entering: Slots<ServerHttp2Stream> = new Slots();
  /** Streams that have a place and wait for their turn of the event loop. */
  readonly queued: Slots<ServerHttp2Stream> = new Slots();
  /** Large replies that the client has not taken yet. */
  readonly held: { bytes: number } = { bytes: 0 };
  readonly turns: ReplyScheduler = new ReplyScheduler();
  readonly pace: LinkPace;
  readonly lane: CallLane & ReadLane;
  readonly places: ConnectionPlaces;
  readonly flood: FloodGauge;
  readonly address: string;
  /** The place for limits per address: an IPv4 address, or the /64 of an IPv6 one. */
  readonly network: string;
  /** Identifies this connection's sockets, both raw and TLS. */
  readonly key: string;
  /** Steady time. */
  readonly openedAtMs: number;
  readonly door: Door<Connection>;
  readonly #socket: Socket;
  readonly #limits: ServerLimits;
  readonly #load: UnprovenLoad | undefined;
  readonly #readScheduler: ReadScheduler;
  #standing: ConnectionStanding = "unproven";
  #refusals = 0;
  #loadBytes = 0;
  #arrivedBytes = 0;
  #usedAtMs: number;
  /** When the client had last answered all SETTINGS. */
  #toldAtMs: number;
  /** The window that it was told last. */
  #windowBytes: number;
  #isRetired = false;
  #endsAtMs: number | undefined;
  #session: ServerHttp2Session | undefined;
  #peer: Peer;
  #hasSettings = false;
  #isDraining = false;
  #seenBytes = 0;
  #seenPayload = 0;
  readonly #writing = new WriteProgress();
  #heardAtMs: number;
  #pingedAtMs: number | undefined;

  constructor(socket: Socket, { limits, nowMs, door, load, readScheduler }: ConnectionDeps) {
    this.#readScheduler = readScheduler;
    this.#socket = socket;
    this.#limits = limits;
    this.#load = load;
    this.door = door;
    this.openedAtMs = nowMs;
    this.#usedAtMs = nowMs;
    this.#toldAtMs = nowMs;
    this.#windowBytes = limits.streamWindowBytes;
    this.#heardAtMs = nowMs;
    this.pace = new LinkPace(this.calls, nowMs);
    this.address = normalAddress(socket.remoteAddress ?? "");
    this.network = networkOf(this.address);
    this.key = connectionKey(socket);
    this.flood = new FloodGauge(nowMs);
    this.places = new ConnectionPlaces(limits.maxConcurrentStreams);
    this.lane = laneOf(readingOf(socket), load === undefined);
    this.#peer = {
      address: this.address,
      port: socket.remotePort ?? 0,
      encrypted: false,
      certificate: undefined,
    };
  }

  /** Attaches the HTTP/2 session of the socket. */
  attach(session: ServerHttp2Session): void {
    this.#session = session;
    const { socket } = session;
    if (socket instanceof TLSSocket) {
      this.#peer = { ...this.#peer, encrypted: true, certificate: certificateOf(socket) };
    }
    session.once("remoteSettings", () => {
      this.#hasSettings = true;
    });
  }

  get standing(): ConnectionStanding {
    return this.#standing;
  }

  set standing(standing: ConnectionStanding) {
    this.#standing = standing;
    this.lane.isProven = standing !== "unproven";
  }

  /** Whether its client is proven, or the server asks for no proof. */
  get isProven(): boolean {
    return this.lane.isProven;
  }

  /** Whether its client got GOAWAY: new calls do not begin. */
  get isRetired(): boolean {
    return this.#isRetired;
  }

  get session(): ServerHttp2Session | undefined {
    return this.#session;
  }

  /** The other end. */
  get peer(): Peer {
    return this.#peer;
  }

  /** Checks the connection and its calls; called every second. */
  check(nowMs: number): void {
    const hasTaken = this.#writing.look(this.#socket);
    this.pace.look(this.#writing.takenBytes, nowMs);
    for (const call of this.calls) call.checkProgress(nowMs);
    if (this.#isOver(nowMs)) return this.destroy();
    if (!this.#hasSettings) {
      if (nowMs - this.openedAtMs > this.#limits.handshakeMs) this.destroy();
      return;
    }
    this.#listen(nowMs, hasTaken);
    if (this.#pingedAtMs !== undefined) {
      // A slow link brings the ping, or its answer, behind all that was sent before.
      const lastSignMs = Math.max(this.#pingedAtMs, this.#heardAtMs);
      if (nowMs - lastSignMs > this.#limits.keepaliveTimeoutMs) this.destroy();
    } else if (nowMs - this.#heardAtMs > this.#limits.keepaliveMs) {
      this.#ping(nowMs);
    }
  }

  /** Notes signs of life. After a ping, the trickle of an endless header is none: calls must receive payload. */
  #listen(nowMs: number, hasTaken: boolean): void {
    const { bytesRead } = this.#socket;
    const hasSent =
      this.#pingedAtMs === undefined
        ? bytesRead !== this.#seenBytes
        : this.#arrivedBytes !== this.#seenPayload;
    if (hasSent || hasTaken) this.#heardAtMs = nowMs;
    this.#seenBytes = bytesRead;
    this.#seenPayload = this.#arrivedBytes;
  }

  /** Counts a call refused by its headers, or later by its body. Several close an unproven connection. */
  refused(headersBytes: number): void {
    if (this.isProven) return;
    if (this.#charge(REFUSAL_LOAD_BYTES + headersBytes)) this.destroy(constants.NGHTTP2_ENHANCE_YOUR_CALM);
    else if (++this.#refusals === REFUSALS_PER_CONNECTION) this.#retire();
  }

  /**
   * Whether its client floods it. A draining connection cannot be judged: calls on their way are refused
   * unseen, with all their bytes.
   */
  isFlooded(nowMs: number): boolean {
    if (this.#isDraining) return false;
    const { bytesRead, bytesWritten } = this.#socket;
    let excessBytes = this.flood.excessBytes({ readBytes: bytesRead, writtenBytes: bytesWritten }, nowMs);
    if (!this.isProven && this.#charge(this.flood.newBytes)) return true;
    // Bytes that wait for a place, a turn, a verdict or a busy disk are no flood; they are summed only in the
    // rare excess.
    if (excessBytes > 0) excessBytes -= this.places.unreadBytes;
    if (excessBytes > 0) for (const stream of this.queued) excessBytes -= stream.readableLength;
    if (excessBytes > 0) for (const stream of this.entering) excessBytes -= stream.readableLength;
    if (excessBytes > 0) for (const call of this.calls) excessBytes -= call.unreadBytes;
    return excessBytes > 0;
  }

  /** Payload that its calls have received. */
  get arrivedBytes(): number {
    return this.#arrivedBytes;
  }

  arrived(bytes: number): void {
    this.#arrivedBytes += bytes;
    this.flood.took(bytes + FRAME_COST_BYTES);
    this.#readScheduler.took(this.lane, bytes + FRAME_COST_BYTES);
  }

  /** Expects bytes that arrive after a call's end, or are dropped with its stream: they are no flood. */
  expectLate(call: ServerCall): void {
    this.flood.took(this.#limits.streamWindowBytes + call.unreadBytes);
  }

  /**
   * Tells the client the receive window of its streams, once it has answered what it was told before. Node ends a
   * session with more than ten unanswered SETTINGS. One that answers none keeps windows that no longer fit, and is
   * closed.
   */
  tellWindow(bytes: number, nowMs: number): void {
    const session = this.#session;
    if (session === undefined || session.destroyed || session.closed) return;
    if (session.pendingSettingsAck) {
      if (nowMs - this.#toldAtMs > SETTINGS_ANSWER_MS) this.destroy(constants.NGHTTP2_SETTINGS_TIMEOUT);
    } else {
      this.#toldAtMs = nowMs;
      this.setWindow(bytes);
    }
  }

  /** Sends SETTINGS with the receive window of streams, where it is another one than the client knows. */
  setWindow(bytes: number): void {
    if (bytes === this.#windowBytes) return;
    this.#windowBytes = bytes;
    this.#session?.settings({ initialWindowSize: bytes });
  }

  /** Lets the calls in progress finish, takes no new ones, and closes: GOAWAY now, the end later. */
  drain(): void {
    this.#isDraining = true;
    if (this.#session === undefined || this.#session.destroyed) this.#socket.destroy();
    else if (!this.#session.closed) this.#session.close();
  }

  /** Closes at once and cancels the calls in progress. */
  destroy(code: number = constants.NGHTTP2_NO_ERROR): void {
    // Otherwise the loop would read it once more.
    this.lane.pause();
    outsideReading(() => {
      this.#session?.destroy(undefined, code);
      this.#socket.destroy();
    });
  }

  /** True when the connection may close: after GOAWAY, or unproven and idle for too long. */
  #isOver(nowMs: number): boolean {
    if (this.calls.size > 0) this.#usedAtMs = nowMs;
    if (!this.isProven && nowMs - this.#usedAtMs > this.#limits.unprovenIdleMs) this.#retire();
    this.#endsAtMs ??= this.#isRetired ? nowMs + LINGER_MS : undefined;
    return this.#endsAtMs !== undefined && nowMs >= this.#endsAtMs;
  }

  /** Sends GOAWAY, and soon closes in any case. */
  #retire(): void {
    if (this.#isRetired) return;
    this.#isRetired = true;
    outsideReading(() => this.drain());
  }

  /** Counts wasted work; true when its network is over budget and this client has a part in that. */
  #charge(bytes: number): boolean {
    if (this.#load === undefined || bytes === 0) return false;
    this.#loadBytes += bytes;
    return !this.#load.charge(this.network, bytes) && this.#loadBytes > UNPROVEN_LOAD_OF_CONNECTION;
  }

  #ping(nowMs: number): void {
    const session = this.#session;
    if (session === undefined || session.destroyed) return;
    this.#pingedAtMs = nowMs;
    askAlive(session, () => {
      this.#pingedAtMs = undefined;
    });
  }
}

/** Calls and reading may each pause a connection: it is read again when neither does. */
function laneOf(reading: SocketReading, isProven: boolean): CallLane & ReadLane {
  let holds = 0;
  const hold = (): void => {
    if (holds++ === 0) reading.pause();
  };
  const release = (): void => {
    if (--holds === 0) reading.resume();
  };
  const calls = { pause: hold, resume: release, isProven, waiting: [], cost: 0, turn: 0 };
  return { ...calls, hold, release, readBytes: 0, readTurn: 0 };
}
