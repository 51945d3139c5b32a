// Supervises one process of the demonstration: start, watch, restart on death, stop.
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { setTimeout as sleep } from "node:timers/promises";
import { GroveError } from "#base/errors.ts";
import { errorText } from "#base/log.ts";
import { BoundedLog, lastLines } from "./bounded-log.ts";

/** The command of a process and its serving check. */
export interface ProcessPlan {
  readonly name: string;
  /** Arguments of Node: never a secret. */
  readonly args: readonly string[];
  readonly env: Readonly<Record<string, string>>;
  /** The log of the process's output. */
  readonly logPath: string;
  /** Checks once whether the process serves; an exception means no. */
  isServing(): Promise<boolean>;
}

/** Callbacks of a supervisor. */
export interface ProcessEvents {
  /** Called when it has ended by itself. */
  onDied(name: string, how: string): void;
  /** Called when it serves again, with a new process id. */
  onRestarted(name: string): void;
}

/** Waiting times; the defaults are for real use, tests use shorter ones. */
export interface SupervisionTimes {
  readonly restartFirstMs: number;
  readonly restartMaxMs: number;
  /** Serving time after which the next restart is fast again. */
  readonly stableMs: number;
  /** From start to serving. */
  readonly startMs: number;
  /** From the stop signal to the end. */
  readonly stopMs: number;
}

/** Times for real use. */
export const SUPERVISION_TIMES: SupervisionTimes = {
  restartFirstMs: 500,
  restartMaxMs: 15_000,
  stableMs: 30_000,
  startMs: 60_000,
  stopMs: 8_000,
};

const PROBE_INTERVAL_MS = 100;
/** For what a process has printed before its end; whatever it has started may hold its output open longer. */
const LAST_WORDS_MS = 1_000;
/** Attempts at the first start: leftovers of a killed run may hold ports and locks for seconds. */
const FIRST_STARTS_MAX = 4;

/** A process that is kept running between start() and stop(). */
export class SupervisedProcess {
  readonly plan: ProcessPlan;
  readonly #events: ProcessEvents;
  readonly #times: SupervisionTimes;
  readonly #stopping = new AbortController();
  readonly #log: BoundedLog;
  #child: ChildProcess | undefined;
  #watching: Promise<void> = Promise.resolve();
  /** All that it has printed is in the log. */
  #told: Promise<unknown> = Promise.resolve();
  /** Why it did not serve at the last check; undefined without a reason. */
  #refusal: string | undefined;

  constructor(plan: ProcessPlan, events: ProcessEvents, times: SupervisionTimes = SUPERVISION_TIMES) {
    this.plan = plan;
    this.#events = events;
    this.#times = times;
    this.#log = new BoundedLog(plan.logPath);
    this.#log.setMaxListeners(0);
  }

  /** Id of the process, null while there is none. */
  get pid(): number | null {
    return this.#child?.pid ?? null;
  }

  /**
   * Resolves when it serves; from then on it is kept running. Rejects with the end of its log when it never
   * serves.
   */
  async start(): Promise<void> {
    let delayMs = this.#times.restartFirstMs;
    for (let tries = 1; ; tries++) {
      const how = await this.#spawnAndWait();
      if (how === "serving") break;
      if (this.#isStopping || tries >= FIRST_STARTS_MAX || how === "silent") {
        await this.stop();
        const lines = await lastLines(this.plan.logPath, 5);
        const why = how === "silent" ? this.#silence() : how;
        throw new GroveError(
          "STARTING",
          `${this.plan.name} does not start (${why}). Its log ${this.plan.logPath} ends:\n${lines}`,
        );
      }
      await this.#pause(delayMs);
      delayMs *= 2;
    }
    this.#watching = this.#watch();
  }

  /** Stops it, kills it after a time, and starts it no more. */
  async stop(): Promise<void> {
    this.#stopping.abort();
    const child = this.#child;
    if (child !== undefined) {
      const ended = once(child, "exit");
      child.kill("SIGTERM");
      const timer = setTimeout(() => child.kill("SIGKILL"), this.#times.stopMs);
      await ended;
      clearTimeout(timer);
    }
    await this.#watching;
    await Promise.race([this.#told, sleep(LAST_WORDS_MS, undefined, { ref: false })]);
    if (!this.#log.writableEnded) await new Promise<void>((resolve) => this.#log.end(resolve));
  }

  get #isStopping(): boolean {
    return this.#stopping.signal.aborted;
  }

  async #watch(): Promise<void> {
    let delayMs = this.#times.restartFirstMs;
    while (!this.#isStopping) {
      const servedSinceMs = performance.now();
      const how = await this.#ended();
      if (this.#isStopping) return;
      this.#events.onDied(this.plan.name, how);
      if (performance.now() - servedSinceMs > this.#times.stableMs) delayMs = this.#times.restartFirstMs;
      do {
        await this.#pause(delayMs);
        if (this.#isStopping) return;
        delayMs = Math.min(delayMs * 2, this.#times.restartMaxMs);
      } while ((await this.#spawnAndWait()) !== "serving");
      if (!this.#isStopping) this.#events.onRestarted(this.plan.name);
    }
  }

  /** Starts it and waits until it serves ("serving"), ends, or stays "silent" for too long and is killed. */
  async #spawnAndWait(): Promise<string> {
    const { args, env } = this.plan;
    const child = spawn(process.execPath, [...process.execArgv, ...args], {
      env: { ...env },
      // An own process group, so that Ctrl-C reaches only `grove up`; a channel, so that its end is noticed.
      detached: true,
      stdio: ["ignore", "pipe", "pipe", "ipc"],
    });
    this.#child = child;
    child.on("exit", () => {
      if (this.#child === child) this.#child = undefined;
    });
    child.on("error", () => undefined);
    for (const stream of [child.stdout, child.stderr]) stream?.pipe(this.#log, { end: false });
    this.#told = once(child, "close").catch(() => undefined);
    const ended = this.#ended();
    const giveUpAtMs = performance.now() + this.#times.startMs;
    while (performance.now() < giveUpAtMs) {
      const state = await Promise.race([ended, this.#probe()]);
      if (state !== "not yet") return state;
      await Promise.race([ended, sleep(PROBE_INTERVAL_MS)]);
    }
    child.kill("SIGKILL");
    await ended;
    return "silent";
  }

  async #probe(): Promise<"serving" | "not yet"> {
    try {
      if (await this.plan.isServing()) return "serving";
      this.#refusal = undefined;
    } catch (error) {
      this.#refusal = errorText(error);
    }
    return "not yet";
  }

  /** The last known reason of a process that runs but does not serve. */
  #silence(): string {
    const waited = `it runs, but did not serve within ${this.#times.startMs / 1_000} s`;
    return this.#refusal === undefined ? waited : `${waited}; asked last: ${this.#refusal}`;
  }

  /** How the process ended; waits for its end. */
  async #ended(): Promise<string> {
    const child = this.#child;
    if (child === undefined || child.pid === undefined) return "ended at once";
    const [code, signal] = (await once(child, "exit")) as [number | null, NodeJS.Signals | null];
    return signal === null ? `exit code ${code}` : signal;
  }

  async #pause(delayMs: number): Promise<void> {
    await sleep(delayMs, undefined, { signal: this.#stopping.signal }).catch(() => undefined);
  }
}
