// Starts background passes when they are due, and saves their progress.
import type { Clock } from "#base/clock.ts";
import type { LogFields, Logger } from "#base/log.ts";
import { waitAtMost } from "#base/waiting.ts";
import type { PassMessage, PassName, PassRecord } from "#storage/contract/pass-types.ts";

/** How often the progress of the scrub and the recount is saved; a crash repeats so much of a pass. */
const PASS_SAVE_INTERVAL_MS = 30_000;
/** How often a node checks whether the next pass of the scrub or of the recount is due. */
export const PASS_DUE_CHECK_MS = 60_000;

/** Longest wait for a pass in a long read: the process may end without it. */
const STOP_WAIT_MS = 2_000;

/** A pass under way. */
export interface PassRun {
  /** Resolves once nothing of it runs any more. */
  readonly ended: Promise<void>;
  /** Asks for its end; it tells its place before. */
  stop(): void;
  /** Lets the process end without it. */
  leave(): void;
}

/** Takes what a pass tells. What it returns for a find resolves once that is kept, or cannot be; never rejects. */
export type TellPass<Pass, Found> = (message: PassMessage<Pass, Found>) => Promise<unknown> | undefined;

/** Begins a pass from its place. */
export type BeginPass<Pass, Found> = (pass: Pass, tell: TellPass<Pass, Found>) => PassRun;

/** The work of a pass. */
export interface PassJob<Pass, Found, Rec extends PassRecord<Pass>> {
  readonly name: PassName;
  /** Pause between two passes. */
  readonly pauseMs: number;
  /** Record of earlier passes. */
  readonly record: Rec;
  newPass(nowMs: number): Pass;
  readonly begin: BeginPass<Pass, Found>;
  /** Progress of the pass, for the log. */
  place(pass: Pass): LogFields;
  /** As TellPass. */
  found(found: Found): Promise<unknown> | undefined;
  /** Record of the ended pass; also logs its end. */
  ended(pass: Pass, endedAtMs: number): Rec;
}

/** Dependencies of passes. */
export interface PassDeps {
  readonly clock: Clock;
  readonly logger: Logger;
  /** Keeps a record for the next process; rejects where it cannot. */
  readonly save: (name: PassName, record: string) => Promise<unknown>;
  /** Ends all writing: the database itself is damaged. */
  readonly failed: (reason: string) => void;
}

/** Repeats a job, with long pauses. */
export class BackgroundPass<Pass, Found, Rec extends PassRecord<Pass>> {
  readonly #deps: PassDeps;
  readonly #job: PassJob<Pass, Found, Rec>;
  readonly #stopDueCheck: () => void;
  #record: Rec;
  #run: PassRun | undefined;
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
    return { ...this.#record, isRunning: this.#run !== undefined };
  }

  /** Ends the current pass and saves its progress. */
  async stop(): Promise<void> {
    if (this.#isStopped) return;
    this.#isStopped = true;
    this.#stopDueCheck();
    const run = this.#run;
    if (run === undefined) return;
    run.stop();
    await waitAtMost(this.#deps.clock, STOP_WAIT_MS, run.ended);
    run.leave();
    await this.#save();
  }

  #startIfDue(): void {
    if (this.#isStopped || this.#run !== undefined) return;
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
    logger.info(`storage.${name}_started`, this.#job.place(pass));
    const run = this.#job.begin(pass, (message) => this.#take(message));
    this.#run = run;
    void run.ended.then(() => {
      this.#run = undefined;
    });
  }

  #take(message: PassMessage<Pass, Found>): Promise<unknown> | undefined {
    switch (message.kind) {
      case "found":
        return this.#job.found(message.found);
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
    return undefined;
  }

  async #save(): Promise<void> {
    this.#savedAtMs = this.#deps.clock.steadyMs();
    // After a failure nothing can be saved; the pass then resumes from an earlier place.
    await this.#deps.save(this.#job.name, JSON.stringify(this.#record)).catch(() => undefined);
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
