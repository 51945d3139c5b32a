// The common frame of `get` and `put`: display, report, records, and the message after a cut.
import { systemClock } from "#base/clock.ts";
import type { ClientContext } from "#client/connection/client-context.ts";
import { ClientError } from "#client/terminal/client-error.ts";
import { localTime } from "#client/terminal/local-time.ts";
import { ProgressDisplay, ProgressMeter } from "#client/terminal/progress.ts";
import { repeatedFlags, type TransferFlags, wantedSameness } from "./comparison-flags.ts";
import { checkCanAsk } from "./surplus.ts";
import { TransferJournal, type TransferRecord, type TransferRun, TransferRuns } from "./transfer-journal.ts";
import { arrivedText, commandLine, interrupted, resumeText } from "./transfer-messages.ts";
import { TransferReport } from "./transfer-report.ts";

/** Words of one direction. */
export interface TransferWords {
  readonly verb: "get" | "put";
  /** "upload" */
  readonly noun: string;
  readonly done: "downloaded" | "uploaded";
  readonly moved: "fetched" | "sent";
  /** "To send what is missing" */
  readonly again: string;
}

/** A source with its place, as far as both directions know it. */
export interface PlannedTransfer {
  /** For a folder the state that its run records. */
  readonly run?: TransferRun | undefined;
  /** The record that this run resumes. */
  readonly goesOn?: TransferRecord | undefined;
}

/** The steps of one direction. */
export interface TransferSteps<Planned extends PlannedTransfer> {
  plan(): Promise<Planned[]>;
  /** True for a single file, which has no record. */
  isFile(source: Planned): boolean;
  /** The named source and its place on the other side, for messages. */
  placeOf(source: Planned): { readonly named: string; readonly where: string };
  /** The target of all sources, for messages. */
  readonly target: string;
  /** Moves everything; resolves with the removal of the surplus. */
  move(plan: readonly Planned[], runs: TransferRuns): Promise<() => Promise<void>>;
  /** Why no surplus is removed: "Nothing was moved away" */
  readonly notMirrored: string;
}

/** One run of one of the two verbs. */
export class TransferFrame {
  readonly context: ClientContext;
  readonly flags: TransferFlags;
  readonly words: readonly string[];
  readonly meter = new ProgressMeter(systemClock);
  readonly report: TransferReport;
  readonly journal: TransferJournal;
  readonly #direction: TransferWords;
  readonly #display: ProgressDisplay;
  readonly #isSilent: boolean;

  constructor(
    direction: TransferWords,
    context: ClientContext,
    { words, flags }: { readonly words: readonly string[]; readonly flags: TransferFlags },
  ) {
    this.#direction = direction;
    this.context = context;
    this.words = words;
    this.flags = flags;
    const isQuiet = flags.quiet === true;
    this.#isSilent = isQuiet || context.isJson;
    this.#display = new ProgressDisplay(context.terminal, this.meter, direction.done, this.#isSilent);
    this.report = new TransferReport(context, this.#display, this.meter, { isQuiet });
    this.journal = new TransferJournal(context.config.transfers);
  }

  /** True when surplus entries are removed. */
  get isMirror(): boolean {
    return this.flags.delete === true;
  }

  /** Prints a note above the display. */
  note(text: string): void {
    if (!this.context.isJson) this.#display.note(text);
  }

  /**
   * Plans and moves; resolves with the exit code. On a cut, reports the arrived part and the command to
   * resume with, and rejects.
   */
  async run<Planned extends PlannedTransfer>(steps: TransferSteps<Planned>): Promise<number> {
    try {
      if (this.isMirror) checkCanAsk(this.context, this.flags.yes === true);
      const plan = await steps.plan();
      const command = this.#commandToGoOn(plan.some((source) => steps.isFile(source)));
      try {
        await this.#move(steps, plan);
      } catch (error) {
        this.#display.stop();
        throw this.#tellOfCut(error, command, placeOfAll(steps, plan));
      }
      this.#display.stop();
      const { done, again } = this.#direction;
      const code = await this.report.end(done);
      if (this.report.hasFailed) this.context.note(`${again}, type: ${command}`);
      return code;
    } finally {
      this.#display.stop();
    }
  }

  async #move<Planned extends PlannedTransfer>(
    steps: TransferSteps<Planned>,
    plan: readonly Planned[],
  ): Promise<void> {
    const runs = new TransferRuns(this.journal);
    try {
      await this.#moveHeld(steps, plan, runs);
    } finally {
      await runs.release();
    }
  }

  async #moveHeld<Planned extends PlannedTransfer>(
    steps: TransferSteps<Planned>,
    plan: readonly Planned[],
    runs: TransferRuns,
  ): Promise<void> {
    // All sources are held before the first record is written.
    for (const source of plan) {
      const heldBy = source.run === undefined ? undefined : await runs.hold(source.run.pair);
      if (heldBy === undefined) continue;
      const { named, where } = steps.placeOf(source);
      throw new ClientError(
        "USAGE",
        `another grove ${this.#direction.verb} of ${named} to ${where} is running (process ${heldBy})`,
        { todo: "Wait for it, or stop it: the same command then goes on where it was." },
      );
    }
    for (const source of plan) {
      if (source.run === undefined) continue;
      await runs.begin(source, source.run);
      if (source.goesOn === undefined || this.#isSilent) continue;
      const { named, where } = steps.placeOf(source);
      const when = localTime(source.goesOn.startedMs);
      this.#display.note(
        `${named}: going on in ${where}, where the ${this.#direction.noun} of ${when} was cut`,
      );
    }
    const mirror = await steps.move(plan, runs);
    const isWhole = !this.report.hasFailed;
    if (isWhole) await runs.end();
    if (!this.isMirror) return;
    this.#display.stop();
    if (isWhole) await mirror();
    else this.context.note(`${steps.notMirrored}, since not everything has arrived.`);
  }

  #tellOfCut(error: unknown, command: string, where: string): unknown {
    const arrived = arrivedText(
      { meter: this.meter, report: this.report },
      { where, verb: this.#direction.moved },
    );
    if (this.context.signal.aborted) return interrupted(arrived, command);
    if (this.meter.totalFiles > 0) this.context.note(`${arrived}. ${resumeText(command)}`);
    return error;
  }

  /** The same command; with single files named, it skips those that have arrived. */
  #commandToGoOn(hasFile: boolean): string {
    const flags = repeatedFlags(this.flags);
    const isWithoutRecord = hasFile && wantedSameness(this.flags) === undefined;
    return commandLine(
      this.#direction.verb,
      this.words,
      isWithoutRecord ? { ...flags, update: true } : flags,
    );
  }
}

function placeOfAll<Planned extends PlannedTransfer>(
  steps: TransferSteps<Planned>,
  plan: readonly Planned[],
): string {
  const [only] = plan;
  return plan.length === 1 && only !== undefined ? steps.placeOf(only).where : steps.target;
}
