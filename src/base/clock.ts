// The two clocks: wall time for display, steady time for every timeout, idle time and rate.
import { uptime } from "node:os";

/** Time as the product reads it; tests control their own. */
export interface Clock {
  /** Wall time in unix milliseconds. It may jump; never measure with it. */
  wallMs(): number;
  /** Milliseconds on a clock that never goes back and counts time asleep where the system offers it. */
  steadyMs(): number;
  /**
   * Milliseconds since the machine started, asleep or not; absent where unknown. Coarse: tens of
   * milliseconds.
   */
  bootMs?(): number;
  /**
   * Calls back once after delayMs; the returned function cancels. The timer does not keep the process alive.
   */
  after(delayMs: number, callback: () => void): () => void;
  /** Calls back every intervalMs until cancelled. The timer does not keep the process alive. */
  every(intervalMs: number, callback: () => void): () => void;
}

// Not performance.now(): its first use loads a module, which every short command would pay for.
let steadyMs = (): number => process.uptime() * 1000;

/** Has the steady clock read a source that costs a fifth and goes on from the same time; for servers. */
export function readClockOften(): void {
  const aheadMs = process.uptime() * 1000 - performance.now();
  steadyMs = () => performance.now() + aheadMs;
}

/** A reading of boot time costs a file; within this time of steady time the next ones go on from the last. */
const BOOT_READ_MS = 100;
/** How far wall time may have gone from steady time since: a machine that slept jumped by its sleep. */
const BOOT_DRIFT_MS = 20;

/** Reads boot time seldom, and anew after every sleep: wall time shows one at once. */
export function bootClock(read: () => number, clock: Pick<Clock, "steadyMs" | "wallMs">): () => number {
  let last = { bootMs: 0, steadyMs: Number.NEGATIVE_INFINITY, wallMs: 0 };
  return () => {
    const now = { steadyMs: clock.steadyMs(), wallMs: clock.wallMs() };
    const passedMs = now.steadyMs - last.steadyMs;
    const driftMs = Math.abs(now.wallMs - last.wallMs - passedMs);
    if (passedMs < BOOT_READ_MS && driftMs < BOOT_DRIFT_MS) return last.bootMs + passedMs;
    last = { bootMs: read(), ...now };
    return last.bootMs;
  };
}

/** The machine's own clocks. */
export const systemClock: Clock = {
  wallMs: () => Date.now(),
  steadyMs: () => steadyMs(),
  bootMs: bootClock(() => uptime() * 1000, { steadyMs: () => steadyMs(), wallMs: () => Date.now() }),
  after(delayMs, callback) {
    const timer = setTimeout(callback, delayMs);
    timer.unref();
    return () => clearTimeout(timer);
  },
  every(intervalMs, callback) {
    const timer = setInterval(callback, intervalMs);
    timer.unref();
    return () => clearInterval(timer);
  },
};

interface ManualTimer {
  dueMs: number;
  everyMs: number | undefined;
  callback: () => void;
}

/** A clock that tests move by hand; timers fire in order of their time. */
export class ManualClock implements Clock {
  #steadyMs = 1_000;
  /** How far wall time is ahead: a sum of the steps of both would round differently. */
  #aheadMs: number;
  #asleepMs = 0;
  readonly #timers = new Set<ManualTimer>();

  constructor(wallMs = 1_790_000_000_000) {
    this.#aheadMs = wallMs - this.#steadyMs;
  }

  wallMs(): number {
    return this.#aheadMs + this.#steadyMs;
  }

  steadyMs(): number {
    return this.#steadyMs;
  }

  bootMs(): number {
    return this.#steadyMs + this.#asleepMs;
  }

  after(delayMs: number, callback: () => void): () => void {
    return this.#add({ dueMs: this.#steadyMs + delayMs, everyMs: undefined, callback });
  }

  every(intervalMs: number, callback: () => void): () => void {
    return this.#add({ dueMs: this.#steadyMs + intervalMs, everyMs: intervalMs, callback });
  }

  /** Moves both clocks on, and fires due timers on the way. */
  advance(byMs: number): void {
    const endMs = this.#steadyMs + byMs;
    for (;;) {
      let next: ManualTimer | undefined;
      for (const timer of this.#timers) if (timer.dueMs < (next?.dueMs ?? Infinity)) next = timer;
      if (next === undefined || next.dueMs > endMs) break;
      this.#steadyMs = next.dueMs;
      if (next.everyMs === undefined) this.#timers.delete(next);
      else next.dueMs += next.everyMs;
      next.callback();
    }
    this.#steadyMs = endMs;
  }

  /** Simulates a standstill of the process: both clocks go on, and due timers fire once afterwards. */
  standStill(forMs: number): void {
    this.#steadyMs += forMs;
    const due = [...this.#timers].filter((timer) => timer.dueMs <= this.#steadyMs);
    for (const timer of due.sort((a, b) => a.dueMs - b.dueMs)) {
      if (timer.everyMs === undefined) this.#timers.delete(timer);
      else timer.dueMs = this.#steadyMs + timer.everyMs;
      timer.callback();
    }
  }

  /** Jumps the wall clock alone, as an administrator or NTP does. */
  jumpWall(byMs: number): void {
    this.#aheadMs += byMs;
  }

  /**
   * Puts the machine to sleep: wall time and boot time go on, the steady clock and its timers stand still.
   */
  sleep(forMs: number): void {
    this.#aheadMs += forMs;
    this.#asleepMs += forMs;
  }

  #add(timer: ManualTimer): () => void {
    this.#timers.add(timer);
    return () => this.#timers.delete(timer);
  }
}
