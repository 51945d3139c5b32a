// Stands for node:net, as far as gRPC servers listen on it: sockets of the simulated network.
import { EventEmitter } from "node:events";
import { type Connection, type End, network } from "#prove/simulation/network.ts";
import { simulation } from "#prove/simulation/scheduler.ts";

export { isIP, isIPv4, isIPv6 } from "node:net";

/** The server's end of a connection, before HTTP/2 takes it over. */
export class Socket extends EventEmitter implements End {
  readonly connection: Connection;
  readonly remoteAddress: string;
  readonly remotePort: number;
  readonly localAddress: string;
  readonly localPort: number;
  bytesRead = 0;
  destroyed = false;
  /** Receives batches. */
  onBatch: ((batch: readonly unknown[]) => void) | undefined;

  constructor(connection: Connection) {
    super();
    this.connection = connection;
    this.remoteAddress = connection.clientHost;
    this.remotePort = connection.clientPort;
    this.localAddress = connection.serverHost;
    this.localPort = connection.serverPort;
  }

  receive(batch: readonly unknown[]): void {
    this.bytesRead += batch.length;
    this.onBatch?.(batch);
  }

  lost(): void {
    if (this.destroyed) return;
    this.destroyed = true;
    this.emit("close");
  }

  destroy(): void {
    if (this.destroyed) return;
    this.connection.break();
    this.lost();
  }
}

class Server extends EventEmitter {
  readonly #accept: (socket: Socket) => void;
  #stop: (() => void) | undefined;
  #port = 0;

  constructor(accept: (socket: Socket) => void) {
    super();
    this.#accept = accept;
  }

  listen({ port, host }: { readonly port: number; readonly host: string }, callback: () => void): void {
    this.#port = port;
    try {
      this.#stop = network().listen(`${host}:${port}`, (connection) => {
        const socket = new Socket(connection);
        this.#accept(socket);
        return socket;
      });
      simulation().immediate(callback);
    } catch (error) {
      simulation().immediate(() => this.emit("error", error));
    }
  }

  address(): { readonly port: number } {
    return { port: this.#port };
  }

  close(): void {
    this.#stop?.();
  }
}

/** A listener. */
export function createServer(_options: object, accept: (socket: Socket) => void): Server {
  return new Server(accept);
}
