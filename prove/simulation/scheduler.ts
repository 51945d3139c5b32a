// Simulated time: one queue of events, run one after the other, and nothing else moves the clocks.
import { AsyncLocalStorage } from "node:async_hooks";
import { createHash } from "node:crypto";
import { SeededRandom } from "#prove/seeded-random.ts";

const realImmediate = globalThis.setImmediate;
/** Turns in one moment of simulated time that count as an endless loop. */
const TURNS_MAX = 200_000;
/**
 * Turns that are asked of Node at once: each of them lets all promises run, and only the last costs a round
 * of its event loop.
 */
const TURNS_AT_ONCE = 64;
const LINES_HASHED_AT_ONCE = 256;
/** Set, the trace is printed as well. */
const IS_TOLD = process.env["GROVE_SIMULATION_TRACE"] !== undefined;

interface Event {
  readonly atMs: number;
  readonly order: number;
  readonly run: () => void;
  isCancelled: boolean;
}

/** A process of the simulated cluster: its timers, files and connections go with it. */
export class SimulatedProcess {
  readonly name: string;
  /** May change: a process that was taken for dead goes on elsewhere. */
  host: string;
  readonly startedAtMs: number;
  readonly random: SeededRandom;
  isAlive = true;
  /** Resources of the machine, closed when the process dies. */
  readonly belongings: Set<{ abandon(): void }> = new Set();

  constructor(name: string, host: string, startedAtMs: number, random: SeededRandom) {
    this.name = name;
    this.host = host;
    this.startedAtMs = startedAtMs;
    this.random = random;
  }
}

/** The machine of a process, as far as faults concern it. */
export interface SimulatedHost {
  /** Offset of its wall clock. */
  wallOffsetMs: number;
  isDiskFull: boolean;
  /** The machine is off. */
  isDown: boolean;
}

const WALL_START_MS = 1_790_000_000_000;

/** Runs a function in the asynchronous context of its creation. */
type Inside = <T>(run: () => T) => T;

/** Everything that is simulated in one run of one seed. */
export class Scheduler {
  readonly random: SeededRandom;
  readonly hosts = new Map<string, SimulatedHost>();
  readonly #scope = new AsyncLocalStorage<SimulatedProcess>();
  readonly #heap: Event[] = [];
  readonly #insides = new WeakMap<SimulatedProcess, Inside>();
  readonly #outside: Inside = AsyncLocalStorage.snapshot();
  #immediates: (() => void)[] = [];
  readonly #trace = createHash("sha256");
  readonly #told: string[] = [];
  #nowMs = 0;
  #orders = 0;
  #realWork = 0;
  #turnsAhead = 0;
  #turn: (() => void) | undefined;
  eventCount = 0;

  constructor(seed: number) {
    this.random = new SeededRandom(seed);
  }

  /** Milliseconds since the beginning, on the one clock that never jumps. */
  get nowMs(): number {
    return this.#nowMs;
  }

  /** The process whose code runs now; undefined for the rig itself. */
  get current(): SimulatedProcess | undefined {
    return this.#scope.getStore();
  }

  host(name: string): SimulatedHost {
    let host = this.hosts.get(name);
    if (host === undefined) {
      host = { wallOffsetMs: 0, isDiskFull: false, isDown: false };
      this.hosts.set(name, host);
    }
    return host;
  }

  /** The wall clock of a process's machine. */
  wallMs(process: SimulatedProcess | undefined = this.current): number {
    return (
      Math.trunc(WALL_START_MS + this.#nowMs) +
      (process === undefined ? 0 : this.host(process.host).wallOffsetMs)
    );
  }

  spawn(name: string, host: string): SimulatedProcess {
    this.trace("process", `${name} on ${host}`);
    return new SimulatedProcess(name, host, this.#nowMs, this.random.fork(`${name} ${this.#nowMs}`));
  }

  /** Runs a function as a part of a process. */
  within<T>(process: SimulatedProcess | undefined, run: () => T): T {
    if (this.current === process) return run();
    if (process === undefined) return this.#outside(run);
    let inside = this.#insides.get(process);
    if (inside === undefined) {
      inside = this.#outside(() => this.#scope.run(process, () => AsyncLocalStorage.snapshot()));
      this.#insides.set(process, inside);
    }
    return inside(run);
  }

  /** Calls back once in the current process, unless that has died by then. */
  after(
    delayMs: number,
    callback: () => void,
    process: SimulatedProcess | undefined = this.current,
  ): () => void {
    const delay = Number.isFinite(delayMs) ? Math.max(0, delayMs) : 0;
    const event: Event = {
      atMs: this.#nowMs + delay,
      order: this.#orders++,
      isCancelled: false,
      run: () => {
        if (process?.isAlive !== false) this.within(process, callback);
      },
    };
    this.#push(event);
    return () => {
      event.isCancelled = true;
    };
  }

  /** Calls back at the end of this turn in the current process, unless that has died by then. */
  immediate(callback: () => void): () => void {
    const process = this.current;
    const state = { isCancelled: false };
    this.#immediates.push(() => {
      if (!state.isCancelled && process?.isAlive !== false) this.within(process, callback);
    });
    return () => {
      state.isCancelled = true;
    };
  }

  /** Waits for real work of the machine, such as loading a module, while simulated time stands. */
  async really<T>(work: Promise<T>): Promise<T> {
    this.#realWork++;
    try {
      return await work;
    } finally {
      this.#realWork--;
    }
  }

  /** Writes a line into the trace, of which only the hash stays. */
  trace(kind: string, text: string): void {
    const line = `${this.#nowMs.toFixed(3)} ${kind} ${text}`;
    this.#told.push(line);
    if (this.#told.length >= LINES_HASHED_AT_ONCE) this.#hash();
    if (IS_TOLD) process.stderr.write(`${line}\n`);
  }

  #hash(): void {
    this.#trace.update(this.#told.map((line) => `${line}\n`).join(""));
    this.#told.length = 0;
  }

  /** SHA-256 of the trace so far. */
  traceHash(): string {
    this.#hash();
    return this.#trace.copy().digest("hex");
  }

  /** Runs events until the promise is settled or the time is over. */
  async runUntil<T>(promise: Promise<T>, limitMs: number): Promise<T> {
    const state = { isDone: false };
    void promise
      .catch(() => undefined)
      .then(() => {
        state.isDone = true;
      });
    await this.#turns(() => {
      if (state.isDone) return false;
      if (!this.#next(this.#nowMs + limitMs)) throw new Error("nothing happens any more");
      return true;
    });
    return promise;
  }

  /** Runs everything that comes due in this time. */
  async run(forMs: number): Promise<void> {
    const endMs = this.#nowMs + forMs;
    await this.#turns(() => this.#next(endMs));
    this.#nowMs = endMs;
  }

  /** Runs one event; false when none is due by then. */
  #next(endMs: number): boolean {
    for (;;) {
      const event = this.#heap[0];
      if (event === undefined || event.atMs > endMs) return false;
      this.#pop();
      if (event.isCancelled) continue;
      this.#nowMs = Math.max(this.#nowMs, event.atMs);
      this.eventCount++;
      event.run();
      return true;
    }
  }

  /**
   * Takes steps until one returns false; before each, promises and immediates run until none is left at this
   * moment.
   */
  #turns(step: () => boolean): Promise<void> {
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    let inThisMoment = 0;
    this.#turn = () => {
      try {
        if (this.#realWork > 0) return;
        if (this.#immediates.length > 0) {
          if (++inThisMoment > TURNS_MAX) throw new Error(`endless turns at ${this.#nowMs} ms`);
          const callbacks = this.#immediates;
          this.#immediates = [];
          for (const callback of callbacks) callback();
          return;
        }
        inThisMoment = 0;
        if (step()) return;
        this.#turn = undefined;
        resolve();
      } catch (error) {
        this.#turn = undefined;
        reject(error);
      }
    };
    this.#askForTurns();
    return promise;
  }

  #askForTurns(): void {
    if (this.#turnsAhead > 0) return;
    this.#turnsAhead = TURNS_AT_ONCE;
    for (let at = 0; at < TURNS_AT_ONCE; at++) realImmediate(this.#takeTurn);
  }

  readonly #takeTurn = (): void => {
    this.#turnsAhead--;
    this.#turn?.();
    if (this.#turn !== undefined) this.#askForTurns();
  };

  #push(event: Event): void {
    const heap = this.#heap;
    let at = heap.push(event) - 1;
    while (at > 0) {
      const above = (at - 1) >> 1;
      if (isBefore(heap[above] as Event, event)) break;
      heap[at] = heap[above] as Event;
      at = above;
    }
    heap[at] = event;
  }

  #pop(): void {
    const heap = this.#heap;
    const last = heap.pop();
    if (last === undefined || heap.length === 0) return;
    let at = 0;
    for (;;) {
      let below = 2 * at + 1;
      if (below >= heap.length) break;
      if (below + 1 < heap.length && isBefore(heap[below + 1] as Event, heap[below] as Event)) below++;
      if (isBefore(last, heap[below] as Event)) break;
      heap[at] = heap[below] as Event;
      at = below;
    }
    heap[at] = last;
  }
}

function isBefore(a: Event, b: Event): boolean {
  return a.atMs < b.atMs || (a.atMs === b.atMs && a.order < b.order);
}

let running: Scheduler | undefined;

/**
 * The current simulation, for replaced modules of Node, which get no `deps`.
 * @throws Error while there is none
 */
export function simulation(): Scheduler {
  if (running === undefined) throw new Error("no simulation runs");
  return running;
}

/** Makes it the current one. */
export function startSimulation(seed: number): Scheduler {
  running = new Scheduler(seed);
  return running;
}
