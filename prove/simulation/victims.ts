// What faults of the simulated cluster act on, and how they end.
import type { SeededRandom } from "#prove/seeded-random.ts";
import type { Network } from "./network.ts";
import type { Person } from "./person.ts";
import type { SimulatedFileServer, SimulatedMetaServer } from "./servers.ts";

/** The parts that faults act on. */
export interface Victims {
  readonly meta: SimulatedMetaServer;
  readonly nodes: readonly SimulatedFileServer[];
  readonly people: readonly Person[];
  readonly network: Network;
  readonly random: SeededRandom;
  readonly violation: (text: string) => void;
  /** Counts what happened, for the report. */
  readonly count: (what: string) => void;
}

/** Ends a fault. */
export type Heal = () => Promise<void> | void;
