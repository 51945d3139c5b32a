// The long history of nodes and cluster: a row per minute for a week, one per quarter hour for 400 days.
import { join } from "node:path";
import { setImmediate as nextTurn } from "node:timers/promises";
import type { Clock } from "#base/clock.ts";
import { POLL_INTERVAL_MS, QUARTER_ROWS_KEPT } from "#base/limits.ts";
import type { HistoryReply } from "#wire/webapi/performance.ts";
import { aggregatedRows } from "./aggregated-rows.ts";
import { RING_COLUMNS, rounded } from "./columns.ts";
import { type HistoryQuery, historyReply } from "./history-reply.ts";
import { LongHistoryFiles, ROWS_PER_TURN } from "./long-history-files.ts";
import type { RowRange } from "./recent-hour.ts";
import { isClockSet } from "./slots.ts";

/** Rows of one minute of a node that are kept: 7 days, 0.8 MB. */
export const MINUTE_ROWS_KEPT: number = 7 * 24 * 60;
/** Points of one answer beyond the last hour. */
const LONG_HISTORY_POINTS_MAX = 3_000;

/** Folder in the console's data folder. */
export const LONG_HISTORY_FOLDER = "history";

const MINUTE = { seconds: 60, slots: MINUTE_ROWS_KEPT };
const QUARTER = { seconds: 900, slots: QUARTER_ROWS_KEPT };
const POLL_SECONDS: number = POLL_INTERVAL_MS / 1_000;
const HOUR_SECONDS = 3_600;

/** Reads the last hour of a node or of the cluster, from which the kept rows are made. */
export type HourOf = (id: string) => Promise<RowRange | undefined>;

/** Rows of a range of time, and the beginning of the kept ones. */
export interface LongRange extends RowRange {
  /** Length of a slot. */
  readonly seconds: number;
  /** Unix seconds of the oldest kept row with slots of this length; undefined without any. */
  readonly keptFrom: number | undefined;
}

/** The rows of both lengths. One per console. */
export class LongHistory {
  readonly #clock: Clock;
  readonly #hourOf: HourOf;
  readonly #minutes: LongHistoryFiles;
  readonly #quarters: LongHistoryFiles;
  /** Answers are made one after another, so that many together hold nobody up either. */
  #lastReply: Promise<unknown> = Promise.resolve();

  private constructor(
    deps: { clock: Clock; hourOf: HourOf },
    minutes: LongHistoryFiles,
    quarters: LongHistoryFiles,
  ) {
    this.#clock = deps.clock;
    this.#hourOf = deps.hourOf;
    this.#minutes = minutes;
    this.#quarters = quarters;
  }

  /** Opens the long history in the console's data folder. */
  static async open(folder: string, deps: { clock: Clock; hourOf: HourOf }): Promise<LongHistory> {
    const path = join(folder, LONG_HISTORY_FOLDER);
    const nowSeconds = deps.clock.wallMs() / 1_000;
    const minutes = await LongHistoryFiles.open(path, MINUTE, Math.floor(nowSeconds / MINUTE.seconds));
    const quarters = await LongHistoryFiles.open(path, QUARTER, Math.floor(nowSeconds / QUARTER.seconds));
    return new LongHistory(deps, minutes, quarters);
  }

  /** True when rows of a node are kept. */
  has(id: string): boolean {
    return this.#minutes.has(id) || this.#quarters.has(id);
  }

  /** Saves the slots that have ended since the last save. Throws the system's error. */
  async save(ids: Iterable<string>): Promise<void> {
    if (!isClockSet(this.#clock.wallMs())) return;
    for (const id of ids) {
      const hour = await this.#hourOf(id);
      if (hour === undefined) continue;
      for (const kept of [this.#minutes, this.#quarters]) await kept.write(id, newRows(kept, id, hour));
    }
  }

  /** True for a query beyond the last hour. */
  isBeyondHour({ from, to }: HistoryQuery): boolean {
    const hourAgo = this.#clock.wallMs() / 1_000 - HOUR_SECONDS;
    return (from ?? to ?? Number.POSITIVE_INFINITY) < hourAgo;
  }

  /**
   * The answer of GET /api/history to such a query: minutes as far as they reach, else quarters of an hour;
   * at most 3,000 points.
   */
  reply(id: string, query: HistoryQuery): Promise<HistoryReply> {
    const mine = this.#lastReply.then(() => this.#reply(id, query));
    this.#lastReply = mine.catch(() => undefined);
    return mine;
  }

  async #reply(id: string, query: HistoryQuery): Promise<HistoryReply> {
    const nowUnix = Math.floor(this.#clock.wallMs() / 1_000);
    const to = Math.min(query.to ?? nowUnix, nowUnix);
    const from = Math.min(query.from ?? Math.max(0, to - HOUR_SECONDS), to);
    const range = await this.range(id, from, to);
    const least = Math.max(query.step ?? 0, range.seconds, (to - from) / LONG_HISTORY_POINTS_MAX);
    const step = Math.ceil(least / range.seconds) * range.seconds;
    const { points, ...reply } = historyReply(id, undefined, { from, to, step }, nowUnix, range.seconds);
    // Parts of whole points, with other work in between.
    const part = step * Math.max(1, Math.floor((ROWS_PER_TURN * range.seconds) / step));
    const end = Math.min(to, range.lastSlot * range.seconds);
    let start = Math.max(from, range.firstSlot * range.seconds);
    while (start <= end) {
      const next = (Math.floor(start / part) + 1) * part;
      const some = { from: start, to: Math.min(end, next - 1), step };
      points.push(...historyReply(id, range, some, nowUnix, range.seconds).points);
      start = next;
      await nextTurn();
    }
    return { ...reply, points, from, to, kept_from: range.keptFrom ?? null };
  }

  /** The rows between two Unix seconds, in slots of the named length or the shortest that reach back. */
  async range(id: string, from: number, to: number, length?: number): Promise<LongRange> {
    const nowUnix = Math.floor(this.#clock.wallMs() / 1_000);
    const isRecent =
      length !== undefined ? length === MINUTE.seconds : from >= nowUnix - MINUTE.seconds * MINUTE.slots;
    const kept = isRecent ? this.#minutes : this.#quarters;
    const { seconds } = kept.form;
    const first = Math.ceil(from / seconds);
    const last = Math.floor(Math.min(to, nowUnix) / seconds);
    const stored = await kept.read(id, first, last);
    // Rows that are not saved yet come from the last hour.
    const unsaved = newRows(kept, id, await this.#hourOf(id));
    const oldest = stored.oldest ?? unsaved.keys().next().value;
    const newest = [...unsaved.keys()].at(-1) ?? stored.newest ?? Number.NEGATIVE_INFINITY;
    return {
      seconds,
      keptFrom: oldest === undefined ? undefined : oldest * seconds,
      firstSlot: Math.max(first, oldest ?? Number.POSITIVE_INFINITY),
      lastSlot: Math.min(last, newest),
      at: (column, slot) => unsaved.get(slot)?.[column] ?? stored.at(column, slot),
    };
  }
}

/** Rows of ended slots that are not kept yet. A slot without any value has no row. */
function newRows(kept: LongHistoryFiles, id: string, hour: RowRange | undefined): Map<number, Float32Array> {
  const rows = new Map<number, Float32Array>();
  if (hour === undefined || hour.lastSlot < hour.firstSlot) return rows;
  const polls = kept.form.seconds / POLL_SECONDS;
  const end = Math.floor((hour.lastSlot + 1) / polls) - 1;
  // After the clock went back, rows are written again from the new time on.
  const newest = Math.min(kept.newest(id) ?? Number.NEGATIVE_INFINITY, end - 1);
  for (let slot = Math.max(newest + 1, Math.floor(hour.firstSlot / polls)); slot <= end; slot++) {
    const polled = { first: Math.max(slot * polls, hour.firstSlot), last: (slot + 1) * polls - 1 };
    let isGap = true;
    const figures = Float32Array.from(RING_COLUMNS, ({ aggregatedRows: how, decimals }, column) => {
      const figure = rounded(aggregatedRows(hour, column, polled, how), decimals);
      isGap &&= Number.isNaN(figure);
      return figure;
    });
    if (!isGap) rows.set(slot, figures);
  }
  return rows;
}
