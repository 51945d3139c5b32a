// Finds ports on this machine that are free to listen on.
import { GroveError } from "#base/errors.ts";

/** True when the port can be listened on at the host. */
export async function isPortFree(port: number, host = "127.0.0.1"): Promise<boolean> {
  void port;
  void host;
  throw new GroveError("NOT_IMPLEMENTED", "being built");
}

/** The first free port from `from` on that is not in `taken`. Throws OVERLOADED when 1000 in a row are taken. */
export async function findFreePort(
  from: number,
  options: { host?: string; taken?: ReadonlySet<number> } = {},
): Promise<number> {
  void from;
  void options;
  throw new GroveError("NOT_IMPLEMENTED", "being built");
}

/** Free gRPC ports from `from` on whose metrics ports (minus 41000, spec 4.4) are free as well. */
export async function findFreePortPairs(
  from: number,
  count: number,
  options: { host?: string; taken?: ReadonlySet<number> } = {},
): Promise<{ grpc: number; metrics: number }[]> {
  void from;
  void count;
  void options;
  throw new GroveError("NOT_IMPLEMENTED", "being built");
}
