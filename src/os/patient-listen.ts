// Takes a port, and waits a little for one that is taken: an outgoing connection of any process may hold it for a moment.
import { setTimeout as sleep } from "node:timers/promises";
import { GroveError } from "#base/errors.ts";
import { errorText } from "#base/log.ts";
import { formatHostPort, type HostPort } from "#base/node-id.ts";

/** How long a server waits for a port that another process has, and how often it looks: an outgoing connection may hold it for a moment. */
const PORT_TAKEN_WAIT_MS = 5_000;
const PORT_TAKEN_TRY_MS = 200;

/** How a port is taken, and what is said when it cannot be. */
export interface PortRequest<T> {
  /** Listens once; rejects with the system's error. */
  readonly listen: () => Promise<T>;
  /** What ends the sentence about a port that stays taken, such as "choose another with -listen". */
  readonly otherwise: string;
  /** What it is for, such as " for metrics". */
  readonly purpose?: string;
  /** How long a taken port is waited for; PORT_TAKEN_WAIT_MS when left out. */
  readonly waitMs?: number;
}

/**
 * Listens, again and again while the port is taken. Throws BAD_ARGUMENT with the port and what to do when it stays so, and at once for
 * any other reason.
 */
export async function listenPatiently<T>(place: HostPort, wish: PortRequest<T>): Promise<T> {
  const waitMs = wish.waitMs ?? PORT_TAKEN_WAIT_MS;
  const where = `cannot listen${wish.purpose ?? ""} on ${formatHostPort(place)}`;
  for (let waitedMs = 0; ; waitedMs += PORT_TAKEN_TRY_MS) {
    try {
      return await wish.listen();
    } catch (cause) {
      if ((cause as NodeJS.ErrnoException).code !== "EADDRINUSE") {
        throw new GroveError("BAD_ARGUMENT", `${where}: ${errorText(cause)}`, { cause });
      }
      if (waitedMs >= waitMs) {
        const text = `${where}: another process has had that port for ${Math.ceil(waitMs / 1_000)} s. See which by 'ss -tanp sport = :${place.port}', end it, or ${wish.otherwise}`;
        throw new GroveError("BAD_ARGUMENT", text, { cause });
      }
    }
    // A timer of the clock would not keep a process alive that has nothing else yet.
    await sleep(Math.min(PORT_TAKEN_TRY_MS, waitMs - waitedMs));
  }
}
