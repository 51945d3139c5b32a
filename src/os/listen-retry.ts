// Listens on a port and retries briefly while an outgoing connection of another process holds it.
import { setTimeout as sleep } from "node:timers/promises";
import { GroveError } from "#base/errors.ts";
import { errorText } from "#base/log.ts";
import { formatHostPort, type HostPort } from "#base/node-id.ts";

/** How long a server waits for a taken port, and how often it tries. */
const PORT_TAKEN_WAIT_MS = 5_000;
const PORT_TAKEN_TRY_MS = 200;

/** How to listen on a port, and the words of the error. */
export interface PortRequest<T> {
  /** Listens once; rejects with the system's error. */
  readonly listen: () => Promise<T>;
  /** Ends the error about a port that stays taken, such as "choose another with -listen". */
  readonly otherwise: string;
  /** Purpose of the port, such as " for metrics". */
  readonly purpose?: string;
  /** Longest wait for a taken port; default PORT_TAKEN_WAIT_MS. */
  readonly waitMs?: number;
}

/**
 * Listens, and retries while the port is taken. Throws BAD_ARGUMENT with the port and the remedy when it
 * stays taken, and at once for any other reason.
 */
export async function listenWithRetries<T>(place: HostPort, request: PortRequest<T>): Promise<T> {
  const waitMs = request.waitMs ?? PORT_TAKEN_WAIT_MS;
  const where = `cannot listen${request.purpose ?? ""} on ${formatHostPort(place)}`;
  for (let waitedMs = 0; ; waitedMs += PORT_TAKEN_TRY_MS) {
    try {
      return await request.listen();
    } catch (cause) {
      if ((cause as NodeJS.ErrnoException).code !== "EADDRINUSE") {
        throw new GroveError("BAD_ARGUMENT", `${where}: ${errorText(cause)}`, { cause });
      }
      if (waitedMs >= waitMs) {
        const text = `${where}: another process has had that port for ${Math.ceil(waitMs / 1_000)} s. See which by 'ss -tanp sport = :${place.port}', end it, or ${request.otherwise}`;
        throw new GroveError("BAD_ARGUMENT", text, { cause });
      }
    }
    // An unreferenced timer of the clock would not keep a starting process alive.
    await sleep(Math.min(PORT_TAKEN_TRY_MS, waitMs - waitedMs));
  }
}
