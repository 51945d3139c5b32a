// Finds ports for servers of tests, and holds them against other tests of this machine.

import { createServer } from "node:net";
import { METRICS_PORT_OFFSET } from "#base/metrics-port.ts";
import { lockName } from "#os/name-lock.ts";

// All lie outside Linux's range for outgoing connections (32768 to 60999), which could take a port while its
// server is down.
const SINGLE = { first: 24_100, last: 32_700 };
const GRPC = { first: 61_100, last: 65_000 };
const TRIES = 1_000;
/** Ports that one process holds; of more, the oldest are given back. A rig may take thousands in turn. */
const HELD_MAX = 256;
/** Releases of the ports that this process holds, the oldest first. */
const held: (() => void)[] = [];

/** A port of 127.0.0.1 for any server. */
export async function freePort(): Promise<number> {
  return find(SINGLE, [0], new Set());
}

/** Ports of 127.0.0.1 for FileServers, each free together with its metrics port (4.4). */
export async function freeGrpcPorts(count: number): Promise<number[]> {
  const taken = new Set<number>();
  while (taken.size < count) taken.add(await find(GRPC, [0, METRICS_PORT_OFFSET], taken));
  return [...taken];
}

async function find(
  range: typeof SINGLE,
  offsets: readonly number[],
  taken: ReadonlySet<number>,
): Promise<number> {
  for (let tries = 0; tries < TRIES; tries++) {
    const port = range.first + Math.floor(Math.random() * (range.last - range.first));
    if (taken.has(port)) continue;
    const free = await Promise.all(offsets.map((offset) => isFree(port - offset)));
    // The server listens some time later, and may restart: no other test chooses the port meanwhile.
    if (free.every(Boolean) && (await hold(port))) return port;
  }
  throw new Error("no free port");
}

async function hold(port: number): Promise<boolean> {
  const release = await lockName(`grove-test-port-${port}`);
  if (release === undefined) return false;
  held.push(release);
  if (held.length > HELD_MAX) held.shift()?.();
  return true;
}

function isFree(port: number): Promise<boolean> {
  const { promise, resolve } = Promise.withResolvers<boolean>();
  const server = createServer();
  server.once("error", () => resolve(false));
  server.listen(port, "127.0.0.1", () => server.close(() => resolve(true)));
  return promise;
}
