// Holds a name for one process of this machine by an abstract socket, which its death frees.
import { createServer } from "node:net";

/**
 * Resolves with the name's release, or with nothing while another has it. Without abstract sockets every
 * caller gets it.
 */
export function lockName(name: string): Promise<(() => void) | undefined> {
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
