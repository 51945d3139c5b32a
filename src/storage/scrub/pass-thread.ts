// The common part of the scrub's and recount's threads: one pass at a bounded rate, beside event loop and
// writer.
import { getPriority, setPriority } from "node:os";
import type { DatabaseSync } from "node:sqlite";
import { parentPort } from "node:worker_threads";
import { errorText } from "#base/log.ts";
import type { PassMessage } from "#storage/contract/pass-types.ts";
import { openReader } from "#storage/metadata/schema.ts";
import { isBrokenDatabase } from "#storage/metadata/sqlite-errors.ts";
import { Pacer } from "./pacer.ts";

const CACHE_KIB = 1_024;
const PROGRESS_MS = 500;
/** Shorter waits are added up: timers are no finer. */
const WAIT_MIN_MS = 5;
const RETRY_MS = 1_000;
/** Low priority: all other work of the machine goes first. */
const NICENESS = 10;

/** A finished part of a pass. */
export interface PassStep<Pass, Found> {
  /** The pass after this step. */
  readonly pass: Pass;
  /** Cost of the step, in units of the rate. */
  readonly cost: number;
  readonly found: Found | undefined;
  /** True while a snapshot of the database is held: then nothing waits. */
  readonly isHeld?: boolean;
  /** Reason why the database is unusable, once found. */
  readonly damage?: string | undefined;
}

/** One pass: its start, its rate, and its steps on an open database. */
export interface PassWork<Pass, Found> {
  readonly databasePath: string;
  readonly pass: Pass;
  readonly perSecond: number;
  readonly steps: (db: DatabaseSync) => (pass: Pass) => Generator<PassStep<Pass, Found>>;
}

/** Runs a pass until it ends or the main thread asks for its end. */
export async function runPass<Pass, Found>(work: PassWork<Pass, Found>): Promise<void> {
  // On Linux this is the priority of one thread; elsewhere it would be that of the whole process. A process
  // that was started with a lower one may not raise it to this.
  if (process.platform === "linux") setPriority(0, Math.max(NICENESS, getPriority(0)));
  await new PassThread(work).run();
  parentPort?.close();
}

class PassThread<Pass, Found> {
  readonly #work: PassWork<Pass, Found>;
  readonly #pacer: Pacer;
  readonly #stopping = new AbortController();
  #wake: () => void = () => undefined;
  #pass: Pass;
  #owed = 0;
  #toldAtMs = performance.now();

  constructor(work: PassWork<Pass, Found>) {
    this.#work = work;
    this.#pass = work.pass;
    this.#pacer = new Pacer(work.perSecond);
    parentPort?.on("message", () => {
      this.#stopping.abort();
      this.#wake();
    });
  }

  async run(): Promise<void> {
    const db = openReader(this.#work.databasePath);
    db.exec(`PRAGMA cache_size = -${CACHE_KIB}`);
    const steps = this.#work.steps(db);
    const end = await this.#goOn(steps);
    db.close();
    this.#tell({ kind: end, pass: this.#pass });
  }

  async #goOn(steps: (pass: Pass) => Generator<PassStep<Pass, Found>>): Promise<"ended" | "stopped"> {
    while (!this.#stopping.signal.aborted) {
      try {
        for (const step of steps(this.#pass)) {
          await this.#take(step);
          if (step.damage !== undefined) return "stopped";
          if (this.#stopping.signal.aborted) break;
        }
        if (!this.#stopping.signal.aborted) return "ended";
      } catch (error) {
        if (isBrokenDatabase(error)) {
          this.#tell({ kind: "database", problem: errorText(error) });
          return "stopped";
        }
        // Too many open files, or another process that locks the database: retry a little later.
        await this.#sleep(RETRY_MS);
      }
    }
    return "stopped";
  }

  async #take({ pass, cost, found, isHeld = false, damage }: PassStep<Pass, Found>): Promise<void> {
    this.#pass = pass;
    if (damage !== undefined) return this.#tell({ kind: "database", problem: damage });
    if (found !== undefined) this.#tell({ kind: "found", found });
    this.#owed += cost;
    // A held snapshot keeps the log from being reused, so nothing waits; only the request to end is handled.
    if (isHeld) return new Promise((resolve) => setImmediate(resolve));
    const nowMs = performance.now();
    const waitMs = this.#pacer.waitMs(this.#owed, nowMs);
    this.#owed = 0;
    if (nowMs + waitMs - this.#toldAtMs >= PROGRESS_MS || found !== undefined) {
      this.#toldAtMs = nowMs;
      this.#tell({ kind: "progress", pass });
    }
    return waitMs >= WAIT_MIN_MS ? this.#sleep(waitMs) : undefined;
  }

  #tell(message: PassMessage<Pass, Found>): void {
    parentPort?.postMessage(message, []);
  }

  #sleep(ms: number): Promise<void> {
    return new Promise((resolve) => {
      const timer = setTimeout(resolve, ms);
      this.#wake = () => {
        clearTimeout(timer);
        resolve();
      };
    });
  }
}
