// One client's connection to the server: who it is, which calls it has, and whether it still lives.
import type { ServerHttp2Session } from "node:http2";
import { constants } from "node:http2";
import type { Socket } from "node:net";
import { TLSSocket } from "node:tls";
import { networkOf } from "#base/network.ts";
import type { Peer, PeerCertificate } from "./call-context.ts";
import type { CallLane } from "./call-turns.ts";
import { FloodGauge } from "./flood-gauge.ts";
import type { ServerLimits } from "./limits.ts";
import { ReplyTurns } from "./reply-turns.ts";
import { outsideReading } from "./reset.ts";
import type { ServerCall } from "./server-call.ts";
import { readingOf } from "./socket-reading.ts";

/** An address as sessions are bound to it: without the ::ffff: of dual-stack sockets, without a zone. */
export const normalAddress = (address: string): string => {
  const bare = address.split("%", 1)[0] as string;
  return /^::ffff:\d+\.\d+\.\d+\.\d+$/i.test(bare) ? bare.slice(7) : bare;
};

const certificateOf = (socket: TLSSocket): PeerCertificate | undefined => {
  const certificate = socket.getPeerCertificate();
  // An empty object means none; one without a subject can name nobody.
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

/** A connection and the calls in progress on it. */
export class Connection {
  readonly calls: Set<ServerCall> = new Set();
  /** Large replies that the client has not taken yet. */
  readonly held: { bytes: number } = { bytes: 0 };
  readonly turns: ReplyTurns = new ReplyTurns();
  readonly lane: CallLane;
  readonly flood: FloodGauge;
  readonly address: string;
  /** What limits per address count: an IPv4 address, or the /64 of an IPv6 one. */
  readonly network: string;
  /** Tells this connection's sockets, raw and TLS, from all others. */
  readonly key: string;
  /** Steady time. */
  readonly openedAtMs: number;
  readonly #socket: Socket;
  readonly #limits: ServerLimits;
  #session: ServerHttp2Session | undefined;
  #peer: Peer;
  #hasSettings = false;
  #isDraining = false;
  #seenBytes = 0;
  #heardAtMs: number;
  #pingedAtMs: number | undefined;

  constructor(socket: Socket, limits: ServerLimits, nowMs: number) {
    this.#socket = socket;
    this.#limits = limits;
    this.openedAtMs = nowMs;
    this.#heardAtMs = nowMs;
    this.address = normalAddress(socket.remoteAddress ?? "");
    this.network = networkOf(this.address);
    this.key = connectionKey(socket);
    this.flood = new FloodGauge(nowMs);
    this.lane = { ...readingOf(socket), waiting: [], cost: 0, turn: 0 };
    this.#peer = {
      address: this.address,
      port: socket.remotePort ?? 0,
      encrypted: false,
      certificate: undefined,
    };
  }

  /** The HTTP/2 session that came up on the socket. */
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

  get session(): ServerHttp2Session | undefined {
    return this.#session;
  }

  /** The other end. */
  get peer(): Peer {
    return this.#peer;
  }

  /** Looks after the connection and its calls; called every second. */
  check(nowMs: number): void {
    for (const call of this.calls) call.checkProgress(nowMs);
    if (!this.#hasSettings) {
      if (nowMs - this.openedAtMs > this.#limits.handshakeMs) this.destroy();
      return;
    }
    const { bytesRead } = this.#socket;
    if (bytesRead !== this.#seenBytes) {
      this.#seenBytes = bytesRead;
      this.#heardAtMs = nowMs;
    }
    // Only an answer counts once a ping is out: the trickle of a header that never ends must not look alive.
    if (this.#pingedAtMs !== undefined) {
      if (nowMs - this.#pingedAtMs > this.#limits.keepaliveTimeoutMs) this.destroy();
    } else if (nowMs - this.#heardAtMs > this.#limits.keepaliveMs) {
      this.#ping(nowMs);
    }
  }

  /** Whether its client floods it. While it drains nobody can say: calls that were on their way are refused unseen, with all they bring. */
  isFlooded(nowMs: number): boolean {
    if (this.#isDraining) return false;
    const { bytesRead, bytesWritten } = this.#socket;
    let excessBytes = this.flood.excessBytes({ readBytes: bytesRead, writtenBytes: bytesWritten }, nowMs);
    // What waits to be taken, behind a busy disk, is no flood; there is much of it seldom enough to be counted only then.
    if (excessBytes > 0) for (const call of this.calls) excessBytes -= call.unreadBytes;
    return excessBytes > 0;
  }

  /** What the client may send before it hears of a call's end, and what has come and is dropped with its stream, is no flood. */
  expectLate(call: ServerCall): void {
    this.flood.took(this.#limits.streamWindowBytes + call.unreadBytes);
  }

  /** Lets the calls in progress finish, takes no new ones, and closes: GOAWAY now, the end later. */
  drain(): void {
    this.#isDraining = true;
    if (this.#session === undefined || this.#session.destroyed) this.#socket.destroy();
    else if (!this.#session.closed) this.#session.close();
  }

  /** Closes without waiting for anything; calls in progress are cancelled. */
  destroy(code: number = constants.NGHTTP2_NO_ERROR): void {
    // Until then the loop would read it once more.
    this.lane.pause();
    outsideReading(() => {
      this.#session?.destroy(undefined, code);
      this.#socket.destroy();
    });
  }

  #ping(nowMs: number): void {
    const session = this.#session;
    if (session === undefined || session.destroyed || session.closed) return;
    this.#pingedAtMs = nowMs;
    session.ping((error) => {
      if (error === null) this.#pingedAtMs = undefined;
    });
  }
}
