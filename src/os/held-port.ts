// Keeps ports of this machine from becoming the source of outgoing connections while no server listens there.
import { once } from "node:events";
import { connect, createServer, type Server, type Socket } from "node:net";
import { platform } from "node:os";

const HOST = "127.0.0.1";

/**
 * Ports of 127.0.0.1 that no outgoing connection of any process is given. A server may still listen on each: it is
 * held by a connection from there, which the kernel counts as no listener.
 */
export class HeldPorts {
  #server: Server | undefined;
  readonly #sockets = new Set<Socket>();

  /** Holds a port; false where another process has it already. Elsewhere than on Linux nothing is held. */
  async hold(port: number): Promise<boolean> {
    // Other kernels would refuse a server a port that a connection leaves from.
    if (platform() !== "linux") return true;
    this.#server ??= await this.#listen();
    const address = this.#server.address();
    const to = typeof address === "object" && address !== null ? address.port : 0;
    const socket = connect({ host: HOST, port: to, localAddress: HOST, localPort: port });
    this.#keep(socket);
    return await once(socket, "connect").then(
      () => true,
      () => false,
    );
  }

  /** Releases all of them. */
  letGo(): void {
    // Without a reset a closed connection would stay with the kernel for a minute.
    for (const socket of this.#sockets) socket.resetAndDestroy();
    this.#server?.close();
    this.#server = undefined;
  }

  async #listen(): Promise<Server> {
    const server = createServer((socket) => this.#keep(socket)).unref();
    server.listen(0, HOST);
    await once(server, "listening");
    return server;
  }

  #keep(socket: Socket): void {
    this.#sockets.add(socket);
    socket.unref();
    socket.on("error", () => undefined);
    socket.once("close", () => this.#sockets.delete(socket));
  }
}
