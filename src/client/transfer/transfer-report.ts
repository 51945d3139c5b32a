// Reports a transfer of many files: files done, failed with reasons, and skipped.
import { formatBytes } from "#base/bytes.ts";
import type { ClientContext } from "#client/connection/client-context.ts";
import { errorJson, explain } from "#client/connection/error-text.ts";
import { EXIT, exitCodeOf } from "#client/terminal/exit-codes.ts";
import { FAILURES_SHOWN_MAX } from "#client/terminal/limits.ts";
import {
  filesText,
  formatSeconds,
  type ProgressDisplay,
  type ProgressMeter,
} from "#client/terminal/progress.ts";

/** Collects the outcome of each file, prints failures as they come, and sums up. */
export class TransferReport {
  readonly #context: ClientContext;
  readonly #display: ProgressDisplay;
  readonly #meter: ProgressMeter;
  readonly #isQuiet: boolean;
  readonly #failed: { path: string; error: unknown }[] = [];
  readonly #skipped: { path: string; why: string }[] = [];
  #failedCount = 0;
  #skippedCount = 0;
  #exitCode: number = EXIT.ok;
  folders = 0;
  /** Files that were there already. */
  unchanged = 0;
  /** Surplus files and folders that were moved away. */
  removed = 0;
  /** Where they are now. */
  removedTo = "the trash";

  /** isQuiet leaves successes out of the summary. */
  constructor(
    context: ClientContext,
    display: ProgressDisplay,
    meter: ProgressMeter,
    options: { readonly isQuiet: boolean },
  ) {
    this.#context = context;
    this.#isQuiet = options.isQuiet;
    this.#display = display;
    this.#meter = meter;
  }

  /** True when a file that should have arrived has not. */
  get hasFailed(): boolean {
    return this.#failedCount > 0;
  }

  /** Records a failed file or folder; the others continue. */
  fail(path: string, error: unknown): void {
    const code = exitCodeOf(error);
    this.#exitCode = this.#exitCode === EXIT.ok || this.#exitCode === code ? code : EXIT.usage;
    this.#failedCount++;
    if (this.#failed.length >= FAILURES_SHOWN_MAX) return;
    this.#failed.push({ path, error });
    const { what, todo } = explain(error);
    const text = what.startsWith(path) ? what : `${path}: ${what}`;
    this.#tell(todo === "" ? text : `${text} ${todo}`);
  }

  /** Counts a file that was not tried because its folder failed, which is reported already. */
  leaveOut(): void {
    this.#failedCount++;
  }

  /** Records an entry that is skipped by rule, which makes the exit code 1 (decision D13). */
  skip(path: string, why: string): void {
    this.#exitCode = EXIT.usage;
    this.#skippedCount++;
    if (this.#skipped.length >= FAILURES_SHOWN_MAX) return;
    this.#skipped.push({ path, why });
    this.#tell(`${path}: skipped, ${why}`);
  }

  /** Prints the summary and answers the exit code. */
  async end(verb: string): Promise<number> {
    const { doneFiles, doneBytes, elapsedMs } = this.#meter;
    if (this.#context.isJson) {
      await this.#context.printJson({
        files: doneFiles,
        folders: this.folders,
        bytes: doneBytes,
        unchanged: this.unchanged,
        removed: this.removed,
        seconds: Math.round(elapsedMs) / 1_000,
        failed_count: this.#failedCount,
        failed: this.#failed.map(({ path, error }) => ({ path, ...errorJson(error) })),
        skipped_count: this.#skippedCount,
        skipped: this.#skipped,
      });
      return this.#exitCode;
    }
    if (this.#isQuiet && this.#failedCount + this.#skippedCount === 0) return this.#exitCode;
    const rate = elapsedMs > 0 ? (doneBytes / elapsedMs) * 1_000 : 0;
    const time =
      elapsedMs < 10_000 ? `${(elapsedMs / 1_000).toFixed(1)} s` : formatSeconds(elapsedMs / 1_000);
    const what = `${filesText(doneFiles)}, ${formatBytes(doneBytes)} in ${time} (${formatBytes(Math.round(rate))}/s)`;
    const rest = [
      this.unchanged > 0 ? `${filesText(this.unchanged)} there already` : "",
      this.removed > 0 ? `${this.removed.toLocaleString("en-US")} moved to ${this.removedTo}` : "",
      this.#failedCount > 0 ? `${this.#failedCount} failed` : "",
      this.#skippedCount > 0 ? `${this.#skippedCount} skipped` : "",
    ].filter((text) => text !== "");
    const isHidden =
      this.#failed.length === FAILURES_SHOWN_MAX || this.#skipped.length === FAILURES_SHOWN_MAX;
    const more = isHidden ? `; only the first ${FAILURES_SHOWN_MAX} of a kind are shown` : "";
    this.#context.note(`${verb} ${[what, ...rest].join(", ")}${more}`);
    return this.#exitCode;
  }

  #tell(text: string): void {
    if (!this.#context.isJson) this.#display.note(text);
  }
}
