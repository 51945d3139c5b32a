// One series file with its journal: writes only when rows are new, and one write at a time (T18).
import type { Clock } from "#base/clock.ts";
import { SERIES_BATCH, SERIES_BATCH_BYTES, type SeriesForm, type SeriesRows } from "./series-format.ts";
import type { RowsTaker, SeriesThread } from "./series-thread.ts";
import type { SlotRing } from "./slot-ring.ts";

/** How a file is kept. */
export interface SeriesFileOptions {
  /** Ends in .json; the journal beside it ends in .journal. */
  readonly path: string;
  readonly form: SeriesForm;
  readonly clock: Clock;
  readonly thread: SeriesThread;
  /** All series by name, in their current state. */
  readonly series: () => Iterable<readonly [id: string, ring: SlotRing]>;
  /** Interval at which the journal is merged into a whole file. */
  readonly compactionIntervalMs: number;
  /** Up to this many series and bytes the file is always written as a whole. */
  readonly wholeUpTo?: { readonly series: number; readonly bytes: number };
}

/** Keeps series on disk. */
export class SeriesFile {
  readonly #options: SeriesFileOptions;
  #generation = 0;
  /** True until the first whole file, because the journal's end may be torn, and after a failed write. */
  #needsWhole = true;
  #wholeAtMs = 0;
  #wholeBytes = 0;
  #hasJournal = false;
  #writes = 0;
  #writtenBytes = 0;

  constructor(options: SeriesFileOptions) {
    this.#options = options;
  }

  /** Bytes written since the start. */
  get writtenBytes(): number {
    return this.#writtenBytes;
  }

  /** Reads the file and returns its damage, if any. Throws BAD_ARGUMENT for a newer version's file. */
  async load(taker: RowsTaker): Promise<readonly string[]> {
    const { path, form, clock, thread } = this.#options;
    const loaded = await thread.load({ kind: "load", path, form, nowMs: clock.wallMs() }, taker);
    this.#generation = loaded.generation;
    return loaded.damaged;
  }

  /**
   * Writes new rows to the end of the journal or into a whole file; nothing without new rows. Resolves when
   * they are on stable storage. Throws the system's error as text; the next save then writes all.
   */
  async save(options: { readonly whole?: boolean } = {}): Promise<void> {
    const isAsked = options.whole === true;
    if (!this.#isChanged() && !(isAsked && this.#hasJournal)) return;
    const isWhole = this.#isWholeDue(isAsked);
    const { path, form, clock, thread } = this.#options;
    const generation = isWhole ? this.#generation + 1 : this.#generation;
    const write = ++this.#writes;
    // Rows count as saved when they are taken, so after a failure all of them are written again.
    this.#needsWhole = true;
    await thread.write({
      kind: "begin",
      write,
      path,
      form,
      head: { generation, savedAtUnix: Math.floor(clock.wallMs() / 1_000) },
      mode: isWhole ? "whole" : "journal",
    });
    for (const series of this.#batches(isWhole)) await thread.write({ kind: "rows", write, series });
    const bytes = await thread.write({ kind: "end", write });
    this.#needsWhole = false;
    this.#generation = generation;
    this.#hasJournal = !isWhole;
    this.#writtenBytes += bytes;
    if (isWhole) {
      this.#wholeAtMs = clock.steadyMs();
      this.#wholeBytes = bytes;
    }
  }

  #isWholeDue(isAsked: boolean): boolean {
    const { clock, compactionIntervalMs, wholeUpTo, series } = this.#options;
    if (isAsked || this.#needsWhole) return true;
    if (clock.steadyMs() - this.#wholeAtMs >= compactionIntervalMs) return true;
    if (wholeUpTo === undefined || this.#wholeBytes > wholeUpTo.bytes) return false;
    let count = 0;
    for (const _ of series()) {
      count++;
      if (count > wholeUpTo.series) return false;
    }
    return true;
  }

  #isChanged(): boolean {
    for (const [, ring] of this.#options.series()) if (ring.hasUnsaved) return true;
    return false;
  }

  /** Copies of the rows, one batch at a time; later rows belong to the next save. */
  *#batches(isWhole: boolean): Generator<SeriesRows[]> {
    let batch: SeriesRows[] = [];
    let bytes = 0;
    for (const [id, ring] of this.#options.series()) {
      const rows = isWhole ? ring.takeAll() : ring.takeUnsaved();
      if (rows === undefined) continue;
      batch.push({ id, ...rows });
      bytes += rows.values.byteLength;
      if (batch.length < SERIES_BATCH && bytes < SERIES_BATCH_BYTES) continue;
      yield batch;
      batch = [];
      bytes = 0;
    }
    if (batch.length > 0) yield batch;
  }
}
