// The main thread's side of background passes in a thread of their own: starts them when due, and saves their
// progress.
import { extname } from "node:path";
import { Worker } from "node:worker_threads";
import type { Clock } from "#base/clock.ts";
import { errorText, type LogFields, type Logger } from "#base/log.ts";
import { waitAtMost } from "#base/waiting.ts";
import type { PassMessage, PassName, PassRecord } from "#storage/contract/pass-types.ts";
import type { WriteQueue } from "#storage/writer/write-queue.ts";

/** How often the progress of the scrub and the recount is saved; a crash repeats so much of a pass. */
const PASS_SAVE_INTERVAL_MS = 30_000;
/** How often a node checks whether the next pass of the scrub or of the recount is due. */
export const PASS_DUE_CHECK_MS = 60_000;

const HEAP_MEBIBYTES = 64;
const YOUNG_MEBIBYTES = 4;
/** Longest wait for a thread in a long read of the database: the process may end without it. */
const STOP_WAIT_MS = 2_000;

/** The work of a pass. */
export interface PassJob<Pass, Found, Rec extends PassRecord<Pass>> {
  readonly name: PassName;
  /** Pause between two passes. */
  readonly pauseMs: number;
  /** Record of earlier passes. */
  readonly record: Rec;
  newPass(nowMs: number): Pass;
  /** Start data of the pass's thread. */
  workerData(pass: Pass): object;
  /** Progress of the pass, for the log. */
  place(pass: Pass): LogFields;
  found(found: Found): void;
  /** Record of the ended pass; also logs its end. */
  ended(pass: Pass, endedAtMs: number): Rec;
}

/** Dependencies of passes. */
export interface PassDeps {
  readonly clock: Clock;
  readonly logger: Logger;
  readonly queue: Pick<WriteQueue, "submit">;
  /** Ends all writing: the database itself is damaged. */
  readonly failed: (reason: string) => void;
}

/** Repeats a job, with long pauses. */
export class BackgroundPass<Pass, Found, Rec extends PassRecord<Pass>> {
  readonly #deps: PassDeps;
  readonly #job: PassJob<Pass, Found, Rec>;
  readonly #stopDueCheck: () => void;
  #record: Rec;
  #worker: Worker | undefined;
  #ended: Promise<void> = Promise.resolve();
  #savedAtMs: number;
  #isStopped = false;

  constructor(deps: PassDeps, job: PassJob<Pass, Found, Rec>) {
    this.#deps = deps;
    this.#job = job;
    this.#record = job.record;
    this.#savedAtMs = deps.clock.steadyMs();
    this.#stopDueCheck = deps.clock.every(PASS_DUE_CHECK_MS, () => this.#startIfDue());
    this.#startIfDue();
  }

  get state(): Rec & { readonly isRunning: boolean } {
    return { ...this.#record, isRunning: this.#worker !== undefined };
  }

  /** Ends the current pass and saves its progress. */
  async stop(): Promise<void> {
    if (this.#isStopped) return;
    this.#isStopped = true;
    this.#stopDueCheck();
    const worker = this.#worker;
    if (worker === undefined) return;
    worker.postMessage("stop", []);
    await waitAtMost(this.#deps.clock, STOP_WAIT_MS, this.#ended);
    worker.unref();
    await this.#save();
  }

  #startIfDue(): void {
    if (this.#isStopped || this.#worker !== undefined) return;
    const nowMs = this.#deps.clock.wallMs();
    const { pass, lastEndedAtMs } = this.#record;
    if (pass === undefined && lastEndedAtMs !== undefined) {
      const sinceMs = nowMs - lastEndedAtMs;
      // A wall clock that went back must not delay the next pass for years.
      if (sinceMs >= 0 && sinceMs < this.#job.pauseMs) return;
    }
    this.#start(pass ?? this.#job.newPass(Math.trunc(nowMs)));
  }

  #start(pass: Pass): void {
    const { logger } = this.#deps;
    const { name } = this.#job;
    this.#record = { ...this.#record, pass };
    // The worker lies beside this file in the sources, and beside the bundle.
    const worker = new Worker(new URL(`./${name}-worker${extname(import.meta.url)}`, import.meta.url), {
      workerData: this.#job.workerData(pass),
      name: `grove-storage-${name}`,
      resourceLimits: { maxOldGenerationSizeMb: HEAP_MEBIBYTES, maxYoungGenerationSizeMb: YOUNG_MEBIBYTES },
    });
    this.#worker = worker;
    logger.info(`storage.${name}_started`, this.#job.place(pass));
    worker.on("message", (message: PassMessage<Pass, Found>) => this.#take(message));
    worker.on("error", (error) => logger.error(`storage.${name}_failed`, { error: errorText(error) }));
    this.#ended = new Promise((resolve) => {
      worker.on("exit", () => {
        this.#worker = undefined;
        resolve();
      });
    });
  }

  #take(message: PassMessage<Pass, Found>): void {
    switch (message.kind) {
      case "found":
        this.#job.found(message.found);
        break;
      case "database":
        this.#stopDueCheck();
        this.#deps.failed(
          `the database is damaged (${message.problem}): stop the node, look with grove fsck, and restore a backup`,
        );
        break;
      case "progress":
        this.#record = { ...this.#record, pass: message.pass };
        if (this.#deps.clock.steadyMs() - this.#savedAtMs >= PASS_SAVE_INTERVAL_MS) void this.#save();
        break;
      case "stopped":
        this.#record = { ...this.#record, pass: message.pass };
        break;
      case "ended":
        this.#record = this.#job.ended(message.pass, Math.trunc(this.#deps.clock.wallMs()));
        void this.#save();
        break;
    }
  }

  async #save(): Promise<void> {
    this.#savedAtMs = this.#deps.clock.steadyMs();
    // After a failure nothing can be saved; the pass then resumes from an earlier place.
    await this.#deps.queue
      .submit({ op: "savePass", name: this.#job.name, record: JSON.stringify(this.#record) })
      .catch(() => undefined);
  }
}

/** Parses the record of passes; a malformed one begins anew, since another read does no harm. */
export function readPassRecord<Rec extends PassRecord<unknown>>(
  text: string | undefined,
  never: Rec,
  numbersOf: (record: Rec) => readonly unknown[],
): Rec {
  if (text === undefined) return never;
  try {
    const record = { ...never, ...(JSON.parse(text) as Partial<Rec>) };
    const numbers = [record.lastEndedAtMs ?? 0, ...numbersOf(record)];
    return numbers.every(Number.isSafeInteger) ? record : never;
  } catch {
    return never;
  }
}
