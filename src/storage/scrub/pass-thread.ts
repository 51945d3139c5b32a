// What the threads of the scrub and the recount have in common: one pass at a bounded rate, off the event loop and out of the writer's way.
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
/** Shorter waits are put together: timers are no finer. */
const WAIT_MIN_MS = 5;
const RETRY_MS = 1_000;
/** Of all that the machine does this can wait longest. */
const NICENESS = 10;

/** A part of a pass that is done. */
export interface PassStep<Pass, Found> {
  /** The pass as it is after it. */
  readonly pass: Pass;
  /** What it has cost of the rate. */
  readonly cost: number;
  readonly found: Found | undefined;
  /** True while a snapshot of the database is held: then nothing waits. */
  readonly isHeld?: boolean;
  /** Why the database cannot be used, once that is found. */
  readonly damage?: string | undefined;
}

/** One pass: where it begins, how fast it may go, and how its steps are made on an open database. */
export interface PassWork<Pass, Found> {
  readonly databasePath: string;
  readonly pass: Pass;
  readonly perSecond: number;
  readonly steps: (db: DatabaseSync) => (pass: Pass) => Generator<PassStep<Pass, Found>>;
}

/** Runs a pass until it ends or the main thread asks for its end. */
export async function runPass<Pass, Found>(work: PassWork<Pass, Found>): Promise<void> {
  // On Linux this is the priority of one thread; elsewhere it would be that of the whole process.
  // A process that was started with a lower one may not go back to this.
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
        // Too many open files, or another process in the database's way: the same again a little later.
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
    // Others would wait for the space of what it replaces; only the request to end is heard.
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
