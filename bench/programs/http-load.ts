// Requests one address repeatedly on many kept connections, with as little work of its own as possible.
import { connect, type Socket } from "node:net";
import { serveTasks } from "#bench/tasks.ts";

/** The request, and its load. */
interface Load {
  readonly host: string;
  readonly port: number;
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly connections: number;
  readonly seconds: number;
}

/** Answered requests of all connections. */
interface Count {
  answers: number;
  failure: Error | undefined;
}

async function load(input: Load): Promise<number> {
  const { host, port, path, headers } = input;
  const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`);
  const request = Buffer.from(`GET ${path} HTTP/1.1\r\nHost: ${host}:${port}\r\n${lines.join("")}\r\n`);
  const count: Count = { answers: 0, failure: undefined };
  const sockets = await Promise.all(Array.from({ length: input.connections }, () => open(host, port)));
  const start = performance.now();
  for (const socket of sockets) keepAsking(socket, request, count);
  await new Promise((resolve) => setTimeout(resolve, input.seconds * 1_000));
  const rate = (count.answers * 1_000) / (performance.now() - start);
  for (const socket of sockets) socket.destroy();
  if (count.failure !== undefined) throw count.failure;
  return rate;
}

function open(host: string, port: number): Promise<Socket> {
  return new Promise((resolve, reject) => {
    const socket = connect({ host, port, noDelay: true }, () => resolve(socket));
    socket.once("error", reject);
  });
}

/** One request at a time: the next goes out when the answer to the last is complete. */
function keepAsking(socket: Socket, request: Buffer, count: Count): void {
  /** Remaining bytes of the answer; undefined before its head. */
  let left: number | undefined;
  let head = "";
  socket.on("data", (data) => {
    if (left === undefined) {
      head += data.toString("latin1");
      const end = head.indexOf("\r\n\r\n");
      if (end < 0) return;
      const length = /\r\ncontent-length: (\d+)/i.exec(head.slice(0, end))?.[1];
      if (!head.startsWith("HTTP/1.1 200 ") || length === undefined) {
        count.failure ??= new Error(`answered with ${head.slice(0, 200)}`);
        socket.destroy();
        return;
      }
      left = Number(length) - (head.length - end - 4);
    } else left -= data.length;
    if (left > 0) return;
    left = undefined;
    head = "";
    count.answers += 1;
    socket.write(request);
  });
  socket.write(request);
}

serveTasks({ load: (input) => load(input as unknown as Load) }, () => undefined);
