// One connection of a channel to a server.
import { type ClientHttp2Session, type ClientHttp2Stream, connect, constants } from "node:http2";
import type { DescMethod } from "@bufbuild/protobuf";
import { AwakeClock } from "#base/awake-clock.ts";
import type { Clock } from "#base/clock.ts";
import { TLS_POLICY } from "#base/tls-policy.ts";
import { WriteProgress } from "#os/socket-writing.ts";
import {
  type ChannelKeepalive,
  type ChannelLimits,
  FRAME_BYTES,
  SESSION_MEMORY_MIB,
  SESSION_WINDOW_BYTES,
} from "#wire/framing/limits.ts";
import { outsideReading } from "#wire/framing/reset.ts";
import { Code, StatusError } from "#wire/framing/status.ts";
import { askAlive } from "./ask-alive.ts";
import { connectFailure } from "./connect-failure.ts";
import { useStreamTable } from "./stream-table.ts";

/** Certificates of a channel. */
export interface ChannelTls {
  /** The authorities to trust; the public ones when left out. */
  readonly ca?: string | Buffer | readonly (string | Buffer)[];
  /** A client certificate with its key. */
  readonly cert?: string | Buffer;
  readonly key?: string | Buffer;
  /** The required name of the server's certificate, where it differs from the host in the address. */
  readonly serverName?: string;
}

/** Dependencies of a connection on its channel. */
export interface TransportDeps {
  readonly tls: ChannelTls | undefined;
  readonly limits: ChannelLimits;
  readonly keepalive: ChannelKeepalive | undefined;
  readonly clock: Clock;
  /** Called once when the connection takes no more calls; those in progress may go on. */
  readonly onUnusable: (transport: Transport) => void;
  /** Called once when it has closed. */
  readonly onClosed: (transport: Transport) => void;
}

/** An open connection. */
export class Transport {
  readonly address: string;
  readonly #session: ClientHttp2Session;
  readonly #deps: TransportDeps;
  readonly #headers = new Map<DescMethod, readonly string[]>();
  #isUsable = true;
  #stopKeepalive: (() => void) | undefined;
  #pingedAtMs: number | undefined;
  #seenBytes = 0;
  readonly #writing = new WriteProgress();
  #heardAtMs = 0;

  private constructor(address: string, session: ClientHttp2Session, deps: TransportDeps) {
    this.address = address;
    this.#session = session;
    this.#deps = deps;
    session.on("goaway", () => this.retire());
    session.on("close", () => {
      this.#stopKeepalive?.();
      this.retire();
      deps.onClosed(this);
    });
    this.#startKeepalive();
  }

  /** Connects and waits for the server's settings; `started` gets a cancel function. Throws UNAVAILABLE. */
  static connect(
    address: string,
    deps: TransportDeps,
    started: (giveUp: () => void) => void,
  ): Promise<Transport> {
    const { tls, limits } = deps;
    return new Promise<Transport>((resolve, reject) => {
      const session = connect(`${tls === undefined ? "http" : "https"}://${address}`, {
        maxSessionMemory: SESSION_MEMORY_MIB,
        settings: {
          enablePush: false,
          initialWindowSize: limits.streamWindowBytes,
          maxHeaderListSize: limits.maxHeaderListBytes,
          maxFrameSize: FRAME_BYTES,
        },
        ...(tls === undefined ? {} : tlsOptions(tls)),
      });
      useStreamTable(session);
      let timedOut = false;
      const failed = (error?: Error): void => {
        cancel();
        session.destroy();
        const cause = connectFailure(error, { isTls: tls !== undefined, timedOut });
        reject(
          new StatusError(Code.UNAVAILABLE, `cannot connect to ${address}: ${cause.message}`, { cause }),
        );
      };
      const cancel = deps.clock.after(limits.connectMs, () => {
        timedOut = true;
        failed();
      });
      started(() => failed(new Error("given up")));
      session.on("error", failed);
      session.once("close", failed);
      session.once("remoteSettings", () => {
        cancel();
        session.removeListener("error", failed);
        session.removeListener("close", failed);
        // Later errors also close the session, and the close counts.
        session.on("error", () => undefined);
        session.setLocalWindowSize(SESSION_WINDOW_BYTES);
        resolve(new Transport(address, session, deps));
      });
    });
  }

  /** True while new calls may use it. */
  get isUsable(): boolean {
    return this.#isUsable && !this.#session.closed && !this.#session.destroyed;
  }

  /**
   * The headers of every call of a method on this connection, made once: node:http2 does not change the list.
   */
  headersOf(method: DescMethod): readonly string[] {
    let headers = this.#headers.get(method);
    if (headers === undefined) {
      headers = [
        ":method",
        "POST",
        ":scheme",
        this.#deps.tls === undefined ? "http" : "https",
        ":authority",
        this.#deps.tls?.serverName ?? this.address,
        ":path",
        `/${method.parent.typeName}/${method.name}`,
        "te",
        "trailers",
        "content-type",
        "application/grpc",
      ];
      this.#headers.set(method, headers);
    }
    return headers;
  }

  request(headers: readonly string[]): ClientHttp2Stream {
    return this.#session.request(headers, { endStream: false });
  }

  /** Closes at once; calls in progress fail. */
  destroy(): void {
    this.retire();
    outsideReading(() => this.#session.destroy(undefined, constants.NGHTTP2_CANCEL));
  }

  /** Takes no more calls; those in progress finish, then it closes. */
  retire(): void {
    if (!this.#isUsable) return;
    this.#isUsable = false;
    // Lets the server finish its answers, then closes.
    if (!this.#session.closed && !this.#session.destroyed) this.#session.close();
    this.#deps.onUnusable(this);
  }

  #startKeepalive(): void {
    const { keepalive, clock } = this.#deps;
    if (keepalive === undefined) return;
    const everyMs = Math.max(Math.min(keepalive.intervalMs, keepalive.timeoutMs) / 2, 10);
    const awake = new AwakeClock(clock, everyMs);
    this.#heardAtMs = awake.steadyMs();
    this.#stopKeepalive = clock.every(everyMs, () =>
      awake.look((nowMs) => this.#checkAlive(keepalive, nowMs)),
    );
  }

  #checkAlive(keepalive: ChannelKeepalive, nowMs: number): void {
    // It may have ended while received bytes were read.
    if (this.#session.destroyed) return;
    const { socket } = this.#session;
    const bytesRead = socket?.bytesRead ?? 0;
    const hasTaken = this.#writing.look(socket);
    if (bytesRead !== this.#seenBytes || hasTaken) this.#heardAtMs = nowMs;
    this.#seenBytes = bytesRead;
    if (this.#pingedAtMs !== undefined) {
      // A slow link brings the ping, or its answer, behind all that was sent before.
      if (nowMs - Math.max(this.#pingedAtMs, this.#heardAtMs) > keepalive.timeoutMs) this.destroy();
    } else if (nowMs - this.#heardAtMs >= keepalive.intervalMs) {
      this.#pingedAtMs = nowMs;
      askAlive(this.#session, () => {
        this.#pingedAtMs = undefined;
      });
    }
  }
}

const tlsOptions = (tls: ChannelTls): Record<string, unknown> => ({
  ...(tls.ca === undefined ? {} : { ca: tls.ca }),
  ...(tls.cert === undefined ? {} : { cert: tls.cert }),
  ...(tls.key === undefined ? {} : { key: tls.key }),
  ...(tls.serverName === undefined ? {} : { servername: tls.serverName }),
  ...TLS_POLICY,
});
