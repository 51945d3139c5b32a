// Finds ports on this machine that are free to listen on.
import { createServer } from "node:net";
import { GroveError } from "#base/errors.ts";
import { metricsPortOf } from "#base/metrics-port.ts";

/** Ports that the search tries. */
const TRIES_MAX = 1_000;
const PORT_MAX = 65_535;

/** Where to search, and which ports other processes of the caller will take. */
export interface PortSearch {
  /** Default 127.0.0.1. */
  readonly host?: string;
  readonly taken?: ReadonlySet<number>;
}

/** A gRPC port with the metrics port that the specification derives from it. */
export interface PortPair {
  readonly grpc: number;
  readonly metrics: number;
}

/** True when a server can listen on the port at the host. Another process may still take it first. */
export async function isPortFree(port: number, host = "127.0.0.1"): Promise<boolean> {
  if (!Number.isInteger(port) || port < 1 || port > PORT_MAX) return false;
  const { promise, resolve } = Promise.withResolvers<boolean>();
  const server = createServer();
  server.once("error", () => resolve(false));
  server.listen({ port, host, exclusive: true }, () => server.close(() => resolve(true)));
  return promise;
}

/**
 * The first free port from `from` on that is not in `taken`. Throws OVERLOADED when 1000 in a row are taken.
 */
export async function findFreePort(from: number, search: PortSearch = {}): Promise<number> {
  for (let port = from; port < from + TRIES_MAX && port <= PORT_MAX; port++) {
    if (search.taken?.has(port) !== true && (await isPortFree(port, search.host))) return port;
  }
  throw new GroveError("OVERLOADED", `no free port from ${from} on`);
}

/**
 * The first `count` gRPC ports from `from` on that are free together with their metrics ports (minus 41000,
 * spec 4.4). Throws OVERLOADED when 1000 ports hold fewer pairs.
 */
export async function findFreePortPairs(
  from: number,
  count: number,
  search: PortSearch = {},
): Promise<PortPair[]> {
  const pairs: PortPair[] = [];
  const taken = new Set(search.taken);
  for (let grpc = from; pairs.length < count && grpc < from + TRIES_MAX && grpc <= PORT_MAX; grpc++) {
    const metrics = metricsPortOf(grpc);
    if (taken.has(grpc) || taken.has(metrics)) continue;
    if (!(await isPortFree(grpc, search.host)) || !(await isPortFree(metrics, search.host))) continue;
    pairs.push({ grpc, metrics });
    taken.add(grpc).add(metrics);
  }
  if (pairs.length === count) return pairs;
  throw new GroveError("OVERLOADED", `no ${count} free pairs of gRPC and metrics ports from ${from} on`);
}
