// Simulated time, and machines that stand still or sleep in it.
import type { Clock } from "#base/clock.ts";

interface Timer {
  dueMs: number;
  readonly everyMs: number | undefined;
  readonly callback: () => void;
}

/** A machine: its clocks go on while it stands still; its steady clock alone does not while it sleeps. */
export class Machine implements Clock {
  readonly #timers = new Set<Timer>();
  #nowMs = 1_000;
  #asleepMs = 0;
  #awayUntilMs = 0;
  #isAsleep = false;

  wallMs(): number {
    return this.#nowMs;
  }

  steadyMs(): number {
    return this.#nowMs - this.#asleepMs;
  }

  bootMs(): number {
    return this.#nowMs;
  }

  after(delayMs: number, callback: () => void): () => void {
    return this.#add({ dueMs: this.steadyMs() + delayMs, everyMs: undefined, callback });
  }

  every(everyMs: number, callback: () => void): () => void {
    return this.#add({ dueMs: this.steadyMs() + everyMs, everyMs, callback });
  }

  /** Nothing runs here for a while; asleep, not even the steady clock does. */
  goAway(forMs: number, how: "asleep" | "stopped"): void {
    this.#awayUntilMs = this.#nowMs + forMs;
    this.#isAsleep = how === "asleep";
  }

  /** True while it runs nothing, so that nobody can ask it. */
  get isAway(): boolean {
    return this.#nowMs < this.#awayUntilMs;
  }

  /** Moves the time on, and fires what is due. */
  advance(byMs: number): void {
    if (this.isAway && this.#isAsleep) this.#asleepMs += byMs;
    this.#nowMs += byMs;
    if (this.isAway) return;
    const due = [...this.#timers].filter(({ dueMs }) => dueMs <= this.steadyMs());
    for (const timer of due.toSorted((a, b) => a.dueMs - b.dueMs)) {
      if (timer.everyMs === undefined) this.#timers.delete(timer);
      else timer.dueMs = this.steadyMs() + timer.everyMs;
      timer.callback();
    }
  }

  /** Resolves after a time, once the machine runs. */
  wait(ms: number): Promise<void> {
    return new Promise((resolve) => this.after(ms, resolve));
  }

  #add(timer: Timer): () => void {
    this.#timers.add(timer);
    return () => this.#timers.delete(timer);
  }
}
