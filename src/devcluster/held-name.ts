// A name that one process of this machine has at a time: an abstract socket, as wide as the ports are, no file, and free when its holder dies.
import { createServer } from "node:net";

/** Resolves with what lets go of the name, or with nothing while another has it. Where there are no abstract sockets everybody gets it. */
export function holdName(name: string): Promise<(() => void) | undefined> {
  const { promise, resolve } = Promise.withResolvers<(() => void) | undefined>();
  if (process.platform !== "linux") {
    resolve(() => undefined);
    return promise;
  }
  const server = createServer((socket) => socket.destroy());
  server.once("error", () => resolve(undefined));
  server.listen({ path: `\0${name}`, exclusive: true }, () => {
    server.unref();
    resolve(() => server.close());
  });
  return promise;
}
