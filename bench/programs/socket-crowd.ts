// Many WebSockets that record when the last of them has received a broadcast of the console.
import { once } from "node:events";
import { WebSocket } from "ws";
import { serveTasks } from "#bench/tasks.ts";

const sockets: WebSocket[] = [];
/** Sockets that still wait for the next snapshot, and the callback for the last one. */
let waiting = 0;
let isThere: ((atMs: number) => void) | undefined;

/** Milliseconds on a clock that all processes of the machine share. */
const nowMs = (): number => performance.timeOrigin + performance.now();

async function open(url: string, count: number): Promise<number> {
  for (let opened = 0; opened < count; opened += 50) {
    const some = Array.from({ length: Math.min(50, count - opened) }, async () => {
      const socket = new WebSocket(url, ["svc.v1"]);
      const greeted = new Promise<void>((resolve) => {
        let messages = 0;
        socket.on("message", () => {
          messages += 1;
          // First comes hello, then the snapshot for new visitors.
          if (messages === 2) resolve();
          if (messages <= 2) return;
          waiting -= 1;
          if (waiting === 0) isThere?.(nowMs());
        });
      });
      await once(socket, "open");
      await greeted;
      sockets.push(socket);
    });
    await Promise.all(some);
  }
  return sockets.length;
}

serveTasks(
  {
    open: (input) => {
      const { url, count } = input as { url: string; count: number };
      return open(url, count);
    },
    // Answers when the last socket had the next message, which must be sent after `expect`.
    expect: () => {
      waiting = sockets.length;
      return waiting;
    },
    lastHadIt: () =>
      new Promise<number>((resolve) => {
        isThere = resolve;
        if (waiting === 0) resolve(nowMs());
      }),
  },
  () => {
    for (const socket of sockets) socket.terminate();
  },
);
