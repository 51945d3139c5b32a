// Records the calls that the MetaServer's store has taken from each node: they alone decide about leases.
import type { Directory } from "#metaserver/directory/directory.ts";
import { simulation } from "./scheduler.ts";

/** Last accepted call of the process that holds each node's id. */
export class Heard {
  readonly #atMs = new Map<string, number>();
  readonly #holders = new Map<string, string>();

  /**
   * When the store last accepted a call of the process that registered last, in simulated milliseconds;
   * undefined for never.
   */
  lastMs(fsId: string): number | undefined {
    return this.#atMs.get(fsId);
  }

  /**
   * Forgets the holders, for a replaced store: in it, an earlier process may be the one that registered last.
   */
  forgetHolders(): void {
    this.#holders.clear();
  }

  /** Returns the same store, which reports here what it has accepted. */
  listenIn(directory: Directory): Directory {
    const heard: Partial<Directory> = {
      register: async (registration) => {
        const lease = await directory.register(registration);
        if (lease.heldEpoch === undefined) {
          this.#holders.set(registration.fsId, registration.instanceId);
          this.#atMs.set(registration.fsId, simulation().nowMs);
        }
        return lease;
      },
      heartbeat: async (beat) => {
        const outcome = await directory.heartbeat(beat);
        const holder = this.#holders.get(beat.fsId) ?? beat.instanceId;
        if (outcome.known && holder === beat.instanceId) this.#atMs.set(beat.fsId, simulation().nowMs);
        return outcome;
      },
    };
    return new Proxy(directory, {
      get(target, name) {
        const own: unknown = Reflect.get(heard, name) ?? Reflect.get(target, name, target);
        return typeof own === "function" ? (own.bind(target) as unknown) : own;
      },
    });
  }
}
