// The machine's gauges for /metrics: disk, processor, memory, load (spec 2.7).
import type { Clock } from "#base/clock.ts";
import { GroveError } from "#base/errors.ts";
import type { HostReadings } from "./metrics-document.ts";

/** What the gauges are made from; the roots are other folders in tests. */
export interface HostGaugesDeps {
  readonly clock: Clock;
  /** The folder whose filesystem is measured. */
  readonly dataDirectory: string;
  readonly procRoot?: string;
  /** Temperature of the processor; see cpu-temperature.ts. */
  readonly readCpuTemperature?: () => Promise<number | null>;
}

/** Reads the machine on demand. */
export class HostGauges {
  constructor(deps: HostGaugesDeps) {
    void deps;
  }

  /** Reads everything now; what the machine does not offer is 0 or null. */
  async read(): Promise<HostReadings> {
    throw new GroveError("NOT_IMPLEMENTED", "being built");
  }
}
