// The main thread's side of the scrub: starts passes when they are due, keeps their place over restarts, hands on what they find.
import { extname } from "node:path";
import { Worker } from "node:worker_threads";
import type { Clock } from "#base/clock.ts";
import { SCRUB_DUE_CHECK_MS, SCRUB_SAVE_INTERVAL_MS } from "#base/limits.ts";
import { errorText, type Logger } from "#base/log.ts";
import { waitAtMost } from "#base/waiting.ts";
import type { DamageReports } from "./damage-reports.ts";
import type {
  ScrubMessage,
  ScrubPass,
  ScrubRecord,
  ScrubSettings,
  ScrubState,
  ScrubWorkerData,
} from "./scrub-types.ts";
import type { WriteQueue } from "./write-queue.ts";

const HEAP_MEBIBYTES = 64;
const YOUNG_MEBIBYTES = 4;
/** A thread in the middle of a long check of the database is not waited for: the process may end without it. */
const STOP_WAIT_MS = 2_000;

/** What the scrub is made from. */
export interface ScrubDeps {
  readonly directory: string;
  readonly databasePath: string;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly queue: Pick<WriteQueue, "submit">;
  readonly damage: Pick<DamageReports, "report">;
  /** Number of the newest chunk. */
  readonly lastChunk: () => number;
  /** Text that was saved last; undefined when nothing was. */
  readonly saved: () => string | undefined;
  /** Ends all writing: the database itself is damaged. */
  readonly failed: (reason: string) => void;
}

const NEVER: ScrubRecord = { pass: undefined, lastEndedAtMs: undefined, lastReadBytes: 0, lastFound: 0 };

/** Reads everything again and again, with long pauses. */
export class Scrub {
  readonly #deps: ScrubDeps;
  readonly #settings: ScrubSettings;
  readonly #stopDueCheck: () => void;
  #record: ScrubRecord;
  #worker: Worker | undefined;
  #ended: Promise<void> = Promise.resolve();
  #savedAtMs: number;
  #isStopped = false;

  constructor(deps: ScrubDeps, settings: ScrubSettings) {
    this.#deps = deps;
    this.#settings = settings;
    this.#record = readScrubRecord(deps.saved());
    this.#savedAtMs = deps.clock.steadyMs();
    this.#stopDueCheck = deps.clock.every(SCRUB_DUE_CHECK_MS, () => this.#startIfDue());
    this.#startIfDue();
  }

  get state(): ScrubState {
    return { ...this.#record, isRunning: this.#worker !== undefined };
  }

  /** Ends the pass under way and writes its place down. */
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
      // A wall clock that went back must not put the next pass off for years.
      if (sinceMs >= 0 && sinceMs < this.#settings.pauseMs) return;
    }
    this.#start(pass ?? newPass(nowMs, this.#deps.lastChunk()));
  }

  #start(pass: ScrubPass): void {
    const { directory, databasePath, logger } = this.#deps;
    const { bytesPerSecond } = this.#settings;
    this.#record = { ...this.#record, pass };
    // Beside this file in the sources, and beside the bundle that holds it.
    const worker = new Worker(new URL(`./scrub-worker${extname(import.meta.url)}`, import.meta.url), {
      workerData: { directory, databasePath, bytesPerSecond, pass } satisfies ScrubWorkerData,
      name: "grove-storage-scrub",
      resourceLimits: { maxOldGenerationSizeMb: HEAP_MEBIBYTES, maxYoungGenerationSizeMb: YOUNG_MEBIBYTES },
    });
    this.#worker = worker;
    logger.info("storage.scrub_started", { part: pass.part, position: pass.position });
    worker.on("message", (message: ScrubMessage) => this.#take(message));
    worker.on("error", (error) => logger.error("storage.scrub_failed", { error: errorText(error) }));
    this.#ended = new Promise((resolve) => {
      worker.on("exit", () => {
        this.#worker = undefined;
        resolve();
      });
    });
  }

  #take(message: ScrubMessage): void {
    switch (message.kind) {
      case "chunk":
        void this.#deps.damage.report({ chunkId: message.chunkId }, message.problem);
        break;
      case "file": {
        const { fileId, version, problem } = message;
        void this.#deps.damage.report({ fileId, version }, problem);
        break;
      }
      case "database":
        this.#stopDueCheck();
        this.#deps.failed(
          `the database is damaged (${message.problem}): stop the node, look with grove fsck, and restore a backup`,
        );
        break;
      case "progress":
        this.#record = { ...this.#record, pass: message.pass };
        if (this.#deps.clock.steadyMs() - this.#savedAtMs >= SCRUB_SAVE_INTERVAL_MS) void this.#save();
        break;
      case "stopped":
        this.#record = { ...this.#record, pass: message.pass };
        break;
      case "ended":
        this.#endPass(message.pass);
        break;
    }
  }

  #endPass({ readBytes, found, startedAtMs }: ScrubPass): void {
    const { clock, logger } = this.#deps;
    const lastEndedAtMs = Math.trunc(clock.wallMs());
    this.#record = { pass: undefined, lastEndedAtMs, lastReadBytes: readBytes, lastFound: found };
    const seconds = Math.round((lastEndedAtMs - startedAtMs) / 1_000);
    logger[found > 0 ? "error" : "info"]("storage.scrub_ended", { bytes: readBytes, found, seconds });
    void this.#save();
  }

  async #save(): Promise<void> {
    this.#savedAtMs = this.#deps.clock.steadyMs();
    // After a failure nothing can be saved; the pass is then begun from an older place.
    await this.#deps.queue
      .submit({ op: "saveScrub", record: JSON.stringify(this.#record) })
      .catch(() => undefined);
  }
}

function newPass(nowMs: number, lastChunk: number): ScrubPass {
  return { startedAtMs: Math.trunc(nowMs), part: "chunks", position: 0, lastChunk, readBytes: 0, found: 0 };
}

/** What was saved; whatever cannot be understood begins anew, since reading once more harms nobody. */
export function readScrubRecord(text: string | undefined): ScrubRecord {
  if (text === undefined) return NEVER;
  try {
    const record = JSON.parse(text) as ScrubRecord;
    const { pass } = record;
    const isWhole =
      pass === undefined ||
      [pass.startedAtMs, pass.position, pass.lastChunk, pass.readBytes, pass.found].every(
        Number.isSafeInteger,
      );
    return isWhole ? { ...NEVER, ...record } : NEVER;
  } catch {
    return NEVER;
  }
}
