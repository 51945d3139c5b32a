// The processor's temperature, found in three tiers: hardware monitors, thermal zones, the `sensors` command (spec 8).
import type { Clock } from "#base/clock.ts";
import { GroveError } from "#base/errors.ts";

/** What the reading is made from. */
export interface CpuTemperatureDeps {
  readonly clock: Clock;
  /** Default `/sys`. */
  readonly sysRoot?: string;
  /** Gives the output of `sensors -j`; rejects when there is no such command. */
  readonly runSensors?: () => Promise<string>;
}

/** Reads the processor's temperature. */
export class CpuTemperature {
  constructor(deps: CpuTemperatureDeps) {
    void deps;
  }

  /** Degrees Celsius, or null when no tier knows (decision D12). */
  async read(): Promise<number | null> {
    throw new GroveError("NOT_IMPLEMENTED", "being built");
  }
}
