// A link between two processes that can be cut: silently, in one direction, or with both ends noticing.
import { once } from "node:events";
import { connect, createServer, type Server, type Socket } from "node:net";

/**
 * State of a link: bytes are held back, as TCP does while nothing arrives, or connections are broken and
 * refused.
 */
export type Cut = "open" | "held" | "requests held" | "replies held" | "reset";

interface Pair {
  readonly near: Socket;
  readonly far: Socket;
}

/** A proxy on a port of its own. */
export class Link {
  readonly name: string;
  readonly port: number;
  readonly #server: Server;
  readonly #target: number;
  readonly #pairs = new Set<Pair>();
  #cut: Cut = "open";

  private constructor(name: string, server: Server, port: number, target: number) {
    this.name = name;
    this.#server = server;
    this.port = port;
    this.#target = target;
    server.on("connection", (socket) => this.#accept(socket));
  }

  /** Opens a link to a port of this machine; on a given port, or on any. */
  static async open(name: string, target: number, port = 0): Promise<Link> {
    // No bytes are read and no connection is made before the link is known to be open.
    const server = createServer({ allowHalfOpen: false, pauseOnConnect: true });
    server.listen(port, "127.0.0.1");
    await once(server, "listening");
    const bound = server.address();
    return new Link(name, server, typeof bound === "object" && bound !== null ? bound.port : port, target);
  }

  get address(): string {
    return `127.0.0.1:${this.port}`;
  }

  /** Cuts or mends. */
  set(cut: Cut): void {
    this.#cut = cut;
    for (const pair of this.#pairs) {
      if (cut === "reset") for (const end of [pair.near, pair.far]) end.resetAndDestroy();
      else this.#flow(pair);
    }
  }

  close(): void {
    this.#server.close();
    for (const { near, far } of this.#pairs) for (const end of [near, far]) end.destroy();
  }

  #accept(near: Socket): void {
    if (this.#cut === "reset") {
      near.resetAndDestroy();
      return;
    }
    const far = connect(this.#target, "127.0.0.1");
    const pair = { near, far };
    this.#pairs.add(pair);
    const join = (from: Socket, to: Socket): void => {
      from.on("data", (bytes: Buffer) => {
        if (!to.write(bytes)) from.pause();
      });
      to.on("drain", () => this.#flow(pair));
      from.on("error", () => undefined);
      from.on("close", () => {
        this.#pairs.delete(pair);
        to.destroy();
      });
    };
    join(near, far);
    join(far, near);
    this.#flow(pair);
  }

  #flow({ near, far }: Pair): void {
    if (this.#cut === "held" || this.#cut === "requests held") near.pause();
    else near.resume();
    if (this.#cut === "held" || this.#cut === "replies held") far.pause();
    else far.resume();
  }
}
