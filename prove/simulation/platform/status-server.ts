// A listener for /metrics and /health without clients: HTTP is outside of the simulation.
import type { HostPort } from "#base/node-id.ts";
import type { StatusServer } from "#os/status-server.ts";

/** Does nothing. */
export function serveStatus(_deps: unknown, address: HostPort): Promise<StatusServer> {
  return Promise.resolve({ address, close: () => Promise.resolve() });
}
