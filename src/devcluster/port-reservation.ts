// Reserves a cluster's ports for its whole run, also while one of its processes restarts.
import { metricsPortOf } from "#base/metrics-port.ts";
import { HeldPorts } from "#os/held-port.ts";
import { lockName } from "#os/name-lock.ts";
import { type ChosenPorts, choosePorts } from "./demo-ports.ts";
import type { DemoPorts } from "./demo-state.ts";

/** The ports held by one `grove up`; others on this machine skip them, as do outgoing connections. */
export class PortReservation {
  #held: (() => void)[] = [];
  readonly #sources = new HeldPorts();

  /**
   * Chooses free ports that no other run holds, and holds them: of two runs at once, one skips the other's.
   */
  async choose(nodeCount: number, last: DemoPorts | undefined): Promise<ChosenPorts> {
    const others = new Set<number>();
    for (;;) {
      const ports = await choosePorts(nodeCount, last, others);
      const refused = await this.#hold(allOf(ports));
      if (refused === undefined) return ports;
      this.letGo();
      others.add(refused);
    }
  }

  /** Releases the ports. */
  letGo(): void {
    for (const end of this.#held) end();
    this.#held = [];
    this.#sources.letGo();
  }

  /** Holds ports; resolves with the first that another run or program has, if any. */
  async #hold(ports: readonly number[]): Promise<number | undefined> {
    for (const port of ports) {
      const end = await lockName(`grove-up-port-${port}`);
      if (end === undefined) return port;
      this.#held.push(end);
      if (!(await this.#sources.hold(port))) return port;
    }
    return undefined;
  }
}

function allOf({ idp, metaserver, console, door, nodes }: ChosenPorts): number[] {
  return [idp, console, door, ...[metaserver, ...nodes].flatMap((port) => [port, metricsPortOf(port)])];
}
