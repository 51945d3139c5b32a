// A listener for /metrics and /health that nobody reaches: HTTP is outside of what is simulated.
import type { HostPort } from "#base/node-id.ts";
import type { StatusServer } from "#os/status-server.ts";

/** Listens to nobody. */
export function serveStatus(_deps: unknown, address: HostPort): Promise<StatusServer> {
  return Promise.resolve({ address, close: () => Promise.resolve() });
}
