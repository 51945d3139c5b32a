// A TCP proxy that counts what a browser sends to a door.
import { once } from "node:events";
import { type AddressInfo, connect, createServer } from "node:net";

/** A proxy that runs. */
export interface CountingProxy {
  readonly port: number;
  /** Bytes from the browser that were handed on. */
  sentBytes(): number;
  close(): Promise<void>;
}

/** Starts one before a port of this machine. */
export async function startCountingProxy(target: number): Promise<CountingProxy> {
  let sent = 0;
  const server = createServer((from) => {
    const to = connect(target, "127.0.0.1");
    from.on("data", (part: Buffer) => {
      sent += part.length;
    });
    from.pipe(to).pipe(from);
    from.on("error", () => to.destroy());
    to.on("error", () => from.destroy());
    to.on("close", () => from.destroy());
    from.on("close", () => to.destroy());
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  return {
    port,
    sentBytes: () => sent,
    async close() {
      server.close();
      await Promise.resolve();
    },
  };
}
