// What servers that tests start by themselves need: a free port, and the processes that they have started in their turn.
import { readFileSync } from "node:fs";
import { createServer } from "node:net";

const FIRST_PORT = 22_000;
const LAST_PORT = 32_700;
const PORT_TRIES = 100;

/** Ids of the processes that a process has started and that run. */
export function childrenOf(pid: number): number[] {
  return readFileSync(`/proc/${pid}/task/${pid}/children`, "utf8").split(" ").filter(Boolean).map(Number);
}

/** Below the ports that the system gives to outgoing connections, so that none of those takes ours while the server is down. */
export async function freePort(): Promise<number> {
  for (let tries = 0; tries < PORT_TRIES; tries++) {
    const port = FIRST_PORT + Math.floor(Math.random() * (LAST_PORT - FIRST_PORT));
    const server = createServer();
    const isFree = await new Promise<boolean>((resolve) => {
      server.once("error", () => resolve(false));
      server.listen(port, "127.0.0.1", () => resolve(true));
    });
    if (!isFree) continue;
    await new Promise((resolve) => server.close(resolve));
    return port;
  }
  throw new Error("no port");
}
