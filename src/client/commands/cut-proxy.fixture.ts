// A TCP proxy that counts, slows down and cuts traffic, for tests of bad networks.
import { once } from "node:events";
import { connect, createServer, type Socket } from "node:net";

/** A proxy on a port of its own. */
export interface CutProxy {
  readonly port: number;
  /** Bytes that went from clients to the server. */
  readonly sentBytes: number;
  /** Bytes that went back. */
  readonly receivedBytes: number;
  /** Breaks every connection, and refuses new ones until mended. */
  cut(): void;
  mend(): void;
  close(): Promise<void>;
}

/** Starts one; bytesPerSecond slows each direction down. */
export async function startCutProxy(
  port: number,
  target: () => number,
  bytesPerSecond: number,
): Promise<CutProxy> {
  const sockets = new Set<Socket>();
  let isCut = false;
  const counts = { sent: 0, received: 0 };
  const pass = (from: Socket, to: Socket, key: "sent" | "received"): void => {
    from.on("data", (piece: Buffer) => {
      counts[key] += piece.length;
      const isRoomy = to.write(piece);
      const waitMs = (piece.length / bytesPerSecond) * 1_000;
      if (waitMs >= 0.5 || !isRoomy) {
        from.pause();
        setTimeout(() => from.resume(), Math.max(1, waitMs));
      }
    });
    from.on("close", () => to.destroy());
    from.on("error", () => to.destroy());
  };
  const server = createServer((socket) => {
    if (isCut) {
      socket.destroy();
      return;
    }
    const upstream = connect(target(), "127.0.0.1");
    for (const end of [socket, upstream]) {
      sockets.add(end);
      end.on("close", () => sockets.delete(end));
    }
    pass(socket, upstream, "sent");
    pass(upstream, socket, "received");
  });
  server.listen(port, "127.0.0.1");
  await once(server, "listening");
  const cutAll = (): void => {
    for (const socket of sockets) socket.destroy();
  };
  return {
    port,
    get sentBytes() {
      return counts.sent;
    },
    get receivedBytes() {
      return counts.received;
    },
    cut() {
      isCut = true;
      cutAll();
    },
    mend() {
      isCut = false;
    },
    async close() {
      cutAll();
      server.close();
      await once(server, "close");
    },
  };
}
