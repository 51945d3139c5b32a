// Simulated time from event to event, and machines that stand still or sleep in it.
import type { Clock } from "#base/clock.ts";

interface Event {
  readonly atMs: number;
  readonly order: number;
  readonly callback: () => void;
  isCancelled: boolean;
}

/** The time of all, and what is due in it. */
export class World {
  nowMs = 1_000;
  readonly #events: Event[] = [];
  #order = 0;

  /** Calls back after a time; the answer cancels that. */
  after(delayMs: number, callback: () => void): () => void {
    const event = {
      atMs: this.nowMs + Math.max(0, Math.ceil(delayMs)),
      order: this.#order++,
      callback,
      isCancelled: false,
    };
    let [low, high] = [0, this.#events.length];
    while (low < high) {
      const middle = (low + high) >>> 1;
      if ((this.#events[middle]?.atMs ?? 0) > event.atMs) low = middle + 1;
      else high = middle;
    }
    this.#events.splice(low, 0, event);
    return () => {
      event.isCancelled = true;
    };
  }

  /** Lets time pass; after each event all that waits for nothing but it has run. */
  async run(ms: number): Promise<void> {
    const endMs = this.nowMs + ms;
    for (
      let next = this.#events.at(-1);
      next !== undefined && next.atMs <= endMs;
      next = this.#events.at(-1)
    ) {
      this.#events.pop();
      if (next.isCancelled) continue;
      this.nowMs = next.atMs;
      next.callback();
      await settle();
    }
    this.nowMs = endMs;
  }
}

/** Resolves once every promise has gone on as far as it can. */
export function settle(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}

/** A machine: its clocks go on while it stands still; its steady clock alone does not while it sleeps. */
export class Machine {
  readonly name: string;
  readonly world: World;
  #sleptMs = 0;
  #awayFromMs = 0;
  #awayUntilMs = 0;
  #isAsleep = false;

  constructor(name: string, world: World) {
    this.name = name;
    this.world = world;
  }

  get steadyMs(): number {
    return this.world.nowMs - this.#sleptMs - this.#sleepMs;
  }

  /** Nothing runs here for a while; asleep, not even the steady clock does. */
  goAway(forMs: number, how: "asleep" | "stopped"): void {
    this.#sleptMs += this.#sleepMs;
    this.#awayFromMs = this.world.nowMs;
    this.#awayUntilMs = this.world.nowMs + forMs;
    this.#isAsleep = how === "asleep";
  }

  /** True while it runs nothing, so that no one can ask it. */
  get isAway(): boolean {
    return this.world.nowMs < this.#awayUntilMs;
  }

  /** Calls back at a moment of its steady clock, once it runs. */
  at(steadyMs: number, callback: () => void): () => void {
    let cancel: () => void = () => undefined;
    const look = (): void => {
      const leftMs = this.isAway ? this.#awayUntilMs - this.world.nowMs : steadyMs - this.steadyMs;
      if (leftMs > 0) cancel = this.world.after(leftMs, look);
      else callback();
    };
    cancel = this.world.after(Math.max(0, steadyMs - this.steadyMs), look);
    return () => cancel();
  }

  get #sleepMs(): number {
    if (!this.#isAsleep) return 0;
    return Math.min(this.world.nowMs, this.#awayUntilMs) - this.#awayFromMs;
  }
}

/** The clocks of a process; none of its timers fires after its end. */
export class ProcessClock implements Clock {
  readonly machine: Machine;
  isDead = false;

  constructor(machine: Machine) {
    this.machine = machine;
  }

  wallMs(): number {
    return this.machine.world.nowMs;
  }

  steadyMs(): number {
    return this.machine.steadyMs;
  }

  bootMs(): number {
    return this.machine.world.nowMs;
  }

  after(delayMs: number, callback: () => void): () => void {
    return this.machine.at(this.machine.steadyMs + Math.max(0, delayMs), () => {
      if (!this.isDead) callback();
    });
  }

  every(everyMs: number, callback: () => void): () => void {
    let cancel: () => void = () => undefined;
    const arm = (): void => {
      cancel = this.after(everyMs, () => {
        arm();
        callback();
      });
    };
    arm();
    return () => cancel();
  }

  /** Resolves after a time, once the machine runs. */
  wait(ms: number): Promise<void> {
    return new Promise((resolve) => this.after(ms, resolve));
  }
}
