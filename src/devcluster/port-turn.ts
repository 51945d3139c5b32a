// One `grove up` at a time chooses ports and has its processes take them: two at once would choose the same ones.
import { createServer } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";

/** A name in Linux's abstract namespace: as wide as the ports themselves, no file, and free again when its holder dies. */
const SOCKET = "\0grove-up-ports";
const WAIT_MAX_MS = 60_000;
const LOOK_INTERVAL_MS = 100;

/** Who waits. */
export interface Waiting {
  /** Told once, if there is somebody to wait for. */
  readonly onWait: () => void;
  /** Whether the turn is not wanted any more. */
  readonly isStopping: () => boolean;
}

/**
 * Waits for this process's turn and resolves with what ends it. After 60 s, and where there are no abstract sockets, it goes on without:
 * then a port that somebody else has taken is named by the process that wanted it.
 */
export async function takePortTurn({ onWait, isStopping }: Waiting): Promise<() => void> {
  if (process.platform !== "linux") return () => undefined;
  const giveUpAtMs = performance.now() + WAIT_MAX_MS;
  for (let tries = 0; performance.now() < giveUpAtMs && !isStopping(); tries++) {
    const end = await listen();
    if (end !== undefined) return end;
    if (tries === 0) onWait();
    await sleep(LOOK_INTERVAL_MS);
  }
  return () => undefined;
}

function listen(): Promise<(() => void) | undefined> {
  const { promise, resolve } = Promise.withResolvers<(() => void) | undefined>();
  const server = createServer((socket) => socket.destroy());
  server.once("error", () => resolve(undefined));
  server.listen({ path: SOCKET, exclusive: true }, () => {
    server.unref();
    resolve(() => server.close());
  });
  return promise;
}
