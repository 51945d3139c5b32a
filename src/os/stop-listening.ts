// The end of a server of HTTP/1.1 that leaves its clients time.
import type { Server as HttpServer } from "node:http";
import { Server } from "node:net";

/**
 * Takes no more connections, and resolves once none is open. HTTP's own `close`, for later, cuts connections
 * without a request under way, to which one may be on its way.
 */
export function stopListening(server: HttpServer): Promise<void> {
  return new Promise((resolve) => Server.prototype.close.call(server, () => resolve()));
}
