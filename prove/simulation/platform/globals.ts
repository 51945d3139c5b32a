// Replaces the globals for time and chance that the product's modules use without being handed them.
import { type Scheduler, simulation } from "#prove/simulation/scheduler.ts";

class SimulatedTimer {
  readonly #cancel: () => void;

  constructor(cancel: () => void) {
    this.#cancel = cancel;
  }

  cancel(): void {
    this.#cancel();
  }

  ref(): this {
    return this;
  }

  unref(): this {
    return this;
  }

  hasRef(): boolean {
    return false;
  }
}

function every(scheduler: Scheduler, intervalMs: number, callback: () => void): SimulatedTimer {
  let cancel: () => void = () => undefined;
  const arm = (): void => {
    cancel = scheduler.after(Math.max(1, intervalMs), () => {
      arm();
      callback();
    });
  };
  arm();
  return new SimulatedTimer(() => cancel());
}

const cancel = (timer: unknown): void => {
  if (timer instanceof SimulatedTimer) timer.cancel();
};

/** From here on the process lives in simulated time. Node's own code keeps the real one. */
export function installGlobals(): void {
  const replaced = {
    setTimeout: (callback: (...args: unknown[]) => void, delayMs = 0, ...args: unknown[]) =>
      new SimulatedTimer(simulation().after(delayMs, () => callback(...args))),
    setInterval: (callback: (...args: unknown[]) => void, delayMs = 0, ...args: unknown[]) =>
      every(simulation(), delayMs, () => callback(...args)),
    setImmediate: (callback: (...args: unknown[]) => void, ...args: unknown[]) =>
      new SimulatedTimer(simulation().immediate(() => callback(...args))),
    clearTimeout: cancel,
    clearInterval: cancel,
    clearImmediate: cancel,
  };
  Object.assign(globalThis, replaced);
  Date.now = () => Math.trunc(simulation().wallMs());
  performance.now = () => simulation().nowMs;
  process.uptime = () => simulation().nowMs / 1_000;
  Math.random = () => (simulation().current ?? simulation()).random.next();
}
