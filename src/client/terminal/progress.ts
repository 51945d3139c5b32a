// Progress of a transfer (bytes, files, rate, time left): a bar on a terminal, lines elsewhere.
import { formatBytes } from "#base/bytes.ts";
import type { Clock } from "#base/clock.ts";
import { PROGRESS_DRAW_MS, PROGRESS_LINE_MS, PROGRESS_RATE_WINDOW_MS } from "./limits.ts";
import { isTty, type Terminal } from "./terminal.ts";
import { terminalText } from "./terminal-text.ts";

/** The arithmetic of a transfer, without drawing. */
export class ProgressMeter {
  readonly #clock: Pick<Clock, "steadyMs">;
  readonly #startedMs: number;
  /** Bytes done at past moments, oldest first; the first starts the window of the rate. */
  #samples: { atMs: number; bytes: number }[] = [];
  doneBytes = 0;
  doneFiles = 0;
  totalBytes = 0;
  totalFiles = 0;
  /** True once the whole tree is scanned, so that the totals are final. */
  isTotalKnown = false;

  constructor(clock: Pick<Clock, "steadyMs">) {
    this.#clock = clock;
    this.#startedMs = clock.steadyMs();
    this.#samples.push({ atMs: this.#startedMs, bytes: 0 });
  }

  /** Removes a counted file from the totals. */
  leaveOut(sizeBytes: number): void {
    this.totalFiles--;
    this.totalBytes -= sizeBytes;
  }

  get elapsedMs(): number {
    return this.#clock.steadyMs() - this.#startedMs;
  }

  /** Bytes a second over the last five seconds, computed at each call. */
  sampleRate(): number {
    const atMs = this.#clock.steadyMs();
    this.#samples.push({ atMs, bytes: this.doneBytes });
    // The newest sample before the window begins it.
    const first = this.#samples.findLastIndex((sample) => sample.atMs <= atMs - PROGRESS_RATE_WINDOW_MS);
    if (first > 0) this.#samples = this.#samples.slice(first);
    const begin = this.#samples[0];
    const spanMs = begin === undefined ? 0 : atMs - begin.atMs;
    return begin === undefined || spanMs <= 0
      ? 0
      : Math.max(0, ((this.doneBytes - begin.bytes) / spanMs) * 1_000);
  }

  /** The fraction done, 0 to 1, by bytes, or by files without bytes. Undefined until the total is known. */
  get fraction(): number | undefined {
    if (!this.isTotalKnown) return undefined;
    if (this.totalBytes > 0) return Math.min(1, Math.max(0, this.doneBytes / this.totalBytes));
    return this.totalFiles === 0 ? 1 : Math.min(1, this.doneFiles / this.totalFiles);
  }

  /** Seconds left at a rate of bytes a second; undefined when unknown. */
  secondsLeft(bytesPerSecond: number): number | undefined {
    if (!this.isTotalKnown || bytesPerSecond <= 0) return undefined;
    return Math.max(0, this.totalBytes - this.doneBytes) / bytesPerSecond;
  }
}

/** A span of time: "8 s", "3 min 20 s", "2 h 5 min". */
export function formatSeconds(seconds: number): string {
  const whole = Math.ceil(seconds);
  if (whole < 60) return `${whole} s`;
  if (whole < 3_600) return `${Math.floor(whole / 60)} min ${whole % 60} s`;
  if (whole < 86_400) return `${Math.floor(whole / 3_600)} h ${Math.floor((whole % 3_600) / 60)} min`;
  return "over a day";
}

/** Widths of the bar, of which the widest that fits is taken: steps keep it still as digits change. */
const BAR_CELLS = [24, 16, 10];

/** The line of the bar: on a narrow terminal the bar shrinks, then goes, then the last parts go. */
export function progressLine(meter: ProgressMeter, bytesPerSecond: number, columns: number): string {
  const { fraction } = meter;
  const percent = fraction === undefined ? "  ? %" : `${String(Math.floor(fraction * 100)).padStart(3)} %`;
  const more = meter.isTotalKnown ? "" : "+";
  const bytes = `${formatBytes(meter.doneBytes)} of ${formatBytes(meter.totalBytes)}${more}`;
  const files =
    meter.totalFiles > 1 || !meter.isTotalKnown ? `${meter.doneFiles}/${meter.totalFiles}${more} files` : "";
  const left = meter.secondsLeft(bytesPerSecond);
  const parts = [
    percent,
    bytes,
    `${formatBytes(Math.round(bytesPerSecond))}/s`,
    left === undefined ? "" : `${formatSeconds(left)} left`,
    files,
  ].filter((part) => part !== "");
  const width = Math.max(0, columns - 1);
  const text = parts.join("  ");
  const cells = BAR_CELLS.find((count) => count + 3 + text.length <= width);
  if (cells !== undefined) {
    const filled = Math.floor((fraction ?? 0) * cells);
    return `[${"#".repeat(filled)}${"-".repeat(cells - filled)}] ${text}`;
  }
  while (parts.length > 1 && parts.join("  ").length > width) parts.pop();
  return parts.join("  ").slice(0, width);
}

/** Displays a meter while a transfer runs. */
export class ProgressDisplay {
  readonly #terminal: Terminal;
  readonly #meter: ProgressMeter;
  readonly #verb: string;
  readonly #isBar: boolean;
  #timer: NodeJS.Timeout | undefined;
  #isDrawn = false;

  /** `verb` is such as "uploaded". A quiet display shows nothing but notes. */
  constructor(terminal: Terminal, meter: ProgressMeter, verb: string, isQuiet: boolean) {
    this.#terminal = terminal;
    this.#meter = meter;
    this.#verb = verb;
    this.#isBar = isTty(terminal.error) && !isQuiet;
    if (isQuiet) return;
    const everyMs = this.#isBar ? PROGRESS_DRAW_MS : PROGRESS_LINE_MS;
    this.#timer = setInterval(() => this.#show(), everyMs);
    this.#timer.unref();
  }

  /** Prints a line above the bar. */
  note(text: string): void {
    this.#clear();
    this.#terminal.error.write(`${terminalText(text)}\n`);
  }

  /** Ends the display; the bar goes away. */
  stop(): void {
    clearInterval(this.#timer);
    this.#clear();
  }

  #show(): void {
    const rate = this.#meter.sampleRate();
    const { error } = this.#terminal;
    if (this.#isBar) {
      error.write(`\r${progressLine(this.#meter, rate, error.columns || 80)}\u001b[K`);
      this.#isDrawn = true;
    } else {
      const { doneFiles, doneBytes } = this.#meter;
      error.write(
        `${this.#verb} ${filesText(doneFiles)}, ${formatBytes(doneBytes)}, ${formatBytes(Math.round(rate))}/s\n`,
      );
    }
  }

  #clear(): void {
    if (this.#isDrawn) this.#terminal.error.write("\r\u001b[K");
    this.#isDrawn = false;
  }
}

/** "1 file", "12,345 files". */
export function filesText(count: number): string {
  return count === 1 ? "1 file" : `${count.toLocaleString("en-US")} files`;
}
