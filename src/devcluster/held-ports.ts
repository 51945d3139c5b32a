// The ports of a cluster are its own as long as it runs, also while one of its processes is started again and does not listen.
import { metricsPortOf } from "#base/metrics-port.ts";
import { type ChosenPorts, choosePorts } from "./demo-ports.ts";
import type { DemoPorts } from "./demo-state.ts";
import { holdName } from "./held-name.ts";

/** What one `grove up` holds; others on this machine pass over it. */
export class HeldPorts {
  #held: (() => void)[] = [];

  /** Chooses ports that are free and that nobody holds, and holds them: of two runs that choose at once, one goes past what the other holds. */
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

  /** Lets others have them. */
  letGo(): void {
    for (const end of this.#held) end();
    this.#held = [];
  }

  /** Resolves with the first that somebody else holds, if there is one. */
  async #hold(ports: readonly number[]): Promise<number | undefined> {
    for (const port of ports) {
      const end = await holdName(`grove-up-port-${port}`);
      if (end === undefined) return port;
      this.#held.push(end);
    }
    return undefined;
  }
}

function allOf({ idp, metaserver, console, nodes }: ChosenPorts): number[] {
  return [idp, console, ...[metaserver, ...nodes].flatMap((port) => [port, metricsPortOf(port)])];
}
