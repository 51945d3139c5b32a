// Whether the machine has room for one more process of tests: idle processors, and free memory.
import { cpus } from "node:os";
import { setTimeout as sleep } from "node:timers/promises";

/** A process that has just begun shows its load only after a while. */
const LOOK_MS = 900;
/** Above this share of all processors, one more process would only slow down the others. */
const MAX_BUSY_SHARE = 0.8;
/** A test that starts a whole cluster and a browser takes about half of this. */
const MIN_FREE_BYTES = 2 ** 31;

/** What a look at the machine needs of it. */
export interface Machine {
  /** Processor time spent so far on all processors, in ms. */
  readonly busyMs: () => number;
  readonly processors: number;
  /** Memory that a new process may take, in bytes. */
  readonly freeBytes: () => number;
  /** Waits, and resolves with the time that has passed, in ms. */
  readonly wait: (ms: number) => Promise<number>;
}

/** This machine. */
export const MACHINE: Machine = {
  busyMs: () => cpus().reduce((sum, { times }) => sum + times.user + times.nice + times.sys + times.irq, 0),
  processors: cpus().length,
  freeBytes: () => process.availableMemory(),
  wait: async (ms) => {
    const begun = performance.now();
    await sleep(ms);
    return performance.now() - begun;
  },
};

/** Looks for about a second; resolves with whether a fifth of the processors was idle, with memory free. */
export async function hasRoom(machine: Machine = MACHINE): Promise<boolean> {
  const before = machine.busyMs();
  const passedMs = await machine.wait(LOOK_MS);
  const busyShare = (machine.busyMs() - before) / (passedMs * machine.processors);
  return busyShare < MAX_BUSY_SHARE && machine.freeBytes() > MIN_FREE_BYTES;
}
