// The history of the cluster: rates, nodes' last hour, data for forecasts (spec 2.8, 2.10, decision D9).
import { join } from "node:path";
import type { Clock } from "#base/clock.ts";
import { SNAPSHOT_SAVE_INTERVAL_MS } from "#base/limits.ts";
import { errorText, type Logger } from "#base/log.ts";
import type { HistoryReply } from "#wire/webapi/performance.ts";
import { type HistoryQuery, historyReply } from "./history-reply.ts";
import { LongHistory, type LongRange } from "./long-history.ts";
import { NodeCounters } from "./node-counters.ts";
import { rowOf } from "./node-row.ts";
import type { ErrorWindow, NodeRates, NodeSample, UserUsage } from "./node-sample.ts";
import { RecentHour, type RowRange } from "./recent-hour.ts";
import { SeriesFile } from "./series-file.ts";
import { SeriesThread } from "./series-thread.ts";
import { isClockSet } from "./slots.ts";
import { snapshotFile } from "./snapshot-file.ts";
import { TREND_COLUMNS } from "./trend.ts";
import { TREND_POINTS, Trends } from "./trends.ts";

/** Interval of saving the rows of minutes and quarters of an hour; the last hour holds them until then. */
const LONG_HISTORY_SAVE_INTERVAL_MS: number = 5 * 60_000;
/** The 90 days of trends change little: their journal is merged into a whole file once a day (T18). */
const TREND_COMPACTION_INTERVAL_MS: number = 24 * 3_600_000;

/** Data for forecasts. */
export const TRENDS_FILE = "admin_metrics_trends.json";
/** Takes the place of a node's id for the cluster as a whole (spec 4.1). */
export const CLUSTER = "cluster";

/** What the history needs. */
export interface HistoryDeps {
  /** The console's data folder, which exists. */
  readonly folder: string;
  readonly clock: Clock;
  readonly log: Logger;
}

/** All metrics that the console keeps. One per console. */
export class History {
  readonly #clock: Clock;
  readonly #log: Logger;
  readonly #counters = new Map<string, NodeCounters>();
  readonly #hour: RecentHour;
  readonly #trends: Trends;
  readonly #thread = new SeriesThread();
  readonly #hourFile: SeriesFile;
  readonly #trendFile: SeriesFile;
  #long: LongHistory | undefined;
  #damaged: readonly string[] = [];
  #saving: Promise<void> = Promise.resolve();
  /** Why the last save of each kind failed. */
  readonly #failures = new Map<"hour" | "long", string>();
  #stopSaving: () => void = () => undefined;

  private constructor({ folder, clock, log }: HistoryDeps) {
    this.#clock = clock;
    this.#log = log;
    this.#hour = new RecentHour(clock);
    this.#trends = new Trends(clock);
    this.#hourFile = snapshotFile({ folder, clock, thread: this.#thread, series: () => this.#hour.rings() });
    this.#trendFile = new SeriesFile({
      path: join(folder, TRENDS_FILE),
      form: { list: "series", columns: TREND_COLUMNS, rowsMax: TREND_POINTS },
      clock,
      thread: this.#thread,
      series: () => this.#trends.series(),
      compactionIntervalMs: TREND_COMPACTION_INTERVAL_MS,
    });
  }

  /** Loads the data and sets damaged files aside. Throws BAD_ARGUMENT for a newer version's files (D18). */
  static async open(deps: HistoryDeps): Promise<History> {
    const history = new History(deps);
    try {
      await history.#load();
    } catch (error) {
      await history.#thread.close();
      throw error;
    }
    history.#long = await LongHistory.open(deps.folder, {
      clock: deps.clock,
      hourOf: (id) => history.#rangeOf(id),
    });
    const stops = [
      deps.clock.every(SNAPSHOT_SAVE_INTERVAL_MS, () => void history.save()),
      deps.clock.every(LONG_HISTORY_SAVE_INTERVAL_MS, () => void history.saveLong()),
    ];
    history.#stopSaving = () => stops.forEach((stop) => stop());
    return history;
  }

  /** True when a damaged file was set aside at the start: the alert `snapshot_reset` (D11, D24). */
  get wasReset(): boolean {
    return this.#damaged.length > 0;
  }

  /** The damage found, one sentence per file. */
  get damaged(): readonly string[] {
    return this.#damaged;
  }

  /** Why the last save failed; undefined while saving works. */
  get saveFailure(): string | undefined {
    return this.#failures.values().next().value;
  }

  /** Bytes written to disk since the start. */
  get writtenBytes(): number {
    return this.#hourFile.writtenBytes + this.#trendFile.writtenBytes;
  }

  /** Records a node's answer and returns its rates since the one before. */
  record(sample: NodeSample): NodeRates {
    let counters = this.#counters.get(sample.nodeId);
    if (counters === undefined) {
      counters = new NodeCounters();
      this.#counters.set(sample.nodeId, counters);
    }
    const rates = counters.record(sample);
    if (!isClockSet(sample.wallMs)) return rates;
    const row = rowOf(sample, rates, counters.errorWindow(sample.steadyMs));
    const { diskUsedBytes: used, diskFreeBytes: free } = sample;
    this.#hour.record(
      sample.nodeId,
      sample.wallMs,
      row,
      used === null || free === null ? undefined : used + free,
    );
    this.#trends.recordDisk(sample);
    return rates;
  }

  /** Records a failed poll as a row of nulls. */
  recordGap(nodeId: string, wallMs: number): void {
    if (isClockSet(wallMs)) this.#hour.recordGap(nodeId, wallMs);
  }

  /** True when the history has data of a node. */
  has(nodeId: string): boolean {
    return this.#hour.has(nodeId) || this.#long?.has(nodeId) === true;
  }

  /** The rates of a node's last answer; undefined before its first. */
  rates(nodeId: string): NodeRates | undefined {
    return this.#counters.get(nodeId)?.rates;
  }

  /** Mean rates of a node over the last 60 s, where known; undefined before its first answer. */
  windowRates(nodeId: string): NodeRates | undefined {
    return this.#counters.get(nodeId)?.windowRates(this.#clock.steadyMs());
  }

  /** Operations and failures of a node within the last 60 s (T4). */
  errorWindow(nodeId: string): ErrorWindow {
    const none = { errors: 0, ops: 0, failingRun: 0 };
    return this.#counters.get(nodeId)?.errorWindow(this.#clock.steadyMs()) ?? none;
  }

  /** Failed operations per second of a node over the last 60 s; null while unknown. */
  errorsPerSecond(nodeId: string): number | null {
    return this.#counters.get(nodeId)?.errorsPerSecond(this.#clock.steadyMs()) ?? null;
  }

  /** Days until a node's disk is full up to its reserve; undefined when unknown or not filling. */
  forecastDiskFullDays(nodeId: string): number | undefined {
    return this.#trends.diskFullDays(nodeId);
  }

  /** True when six hours of answers suffice to tell whether a node's disk fills, while it answers. */
  isDiskForecastKnown(nodeId: string): boolean {
    return this.#trends.isDiskTrendKnown(nodeId);
  }

  /** Records the users of a node. Cheap after every poll, because it reads them only at intervals. */
  recordUsers(nodeId: string, wallMs: number, users: Iterable<UserUsage>): void {
    if (isClockSet(wallMs)) this.#trends.recordUsers(nodeId, wallMs, users);
  }

  /** Days until a user's quota is full, at the recent pace; undefined when unknown or not filling. */
  forecastUserFullDays(username: string): number | undefined {
    return this.#trends.userFullDays(username);
  }

  /** The rows of a node's last hour; undefined for an unknown node. */
  range(nodeId: string): RowRange | undefined {
    return this.#hour.range(nodeId);
  }

  /**
   * The answer of GET /api/history for a node, or for CLUSTER; without points for an unknown node. Ranges
   * beyond the last hour are answered from the long history, with its beginning.
   */
  async reply(nodeId: string, query: HistoryQuery): Promise<HistoryReply> {
    if (this.#long?.isBeyondHour(query) === true) return await this.#long.reply(nodeId, query);
    const range = await this.#rangeOf(nodeId);
    return historyReply(nodeId, range, query, Math.floor(this.#clock.wallMs() / 1_000));
  }

  /** The rows of a node, or of CLUSTER, between two Unix seconds, in slots of the named length if any. */
  async longRange(
    nodeId: string,
    from: number,
    to: number,
    seconds?: number,
  ): Promise<LongRange | undefined> {
    return await this.#long?.range(nodeId, from, to, seconds);
  }

  /** Saves the long history, which also happens every five minutes. Never rejects, as `save`. */
  saveLong(): Promise<void> {
    this.#saving = this.#saving.then(() =>
      this.#try("long", async () => {
        const nodes = Array.from(this.#hour.rings(), ([id]) => id);
        await this.#long?.save([...nodes, CLUSTER]);
      }),
    );
    return this.#saving;
  }

  /** Saves new rows, which also happens every 60 s. Never rejects: errors are logged and in saveFailure. */
  save(): Promise<void> {
    return this.#queueSave({});
  }

  /** Saves everything and ends. */
  async close(): Promise<void> {
    this.#stopSaving();
    await this.saveLong();
    await this.#queueSave({ whole: true });
    await this.#thread.close();
  }

  /** Runs one save after another; new rows of several requests are written once. */
  #queueSave(options: { readonly whole?: boolean }): Promise<void> {
    this.#saving = this.#saving.then(async () => {
      this.#forget();
      await this.#try("hour", async () => {
        await this.#hourFile.save(options);
        await this.#trendFile.save();
      });
    });
    return this.#saving;
  }

  async #try(kind: "hour" | "long", save: () => Promise<void>): Promise<void> {
    try {
      await save();
      if (this.#failures.delete(kind)) this.#log.info("history_saved_again");
    } catch (error) {
      const failure = errorText(error);
      if (failure !== this.#failures.get(kind)) this.#log.warn("history_save_failed", { error: failure });
      this.#failures.set(kind, failure);
    }
  }

  async #rangeOf(id: string): Promise<RowRange | undefined> {
    return id === CLUSTER ? await this.#hour.clusterRange() : this.#hour.range(id);
  }

  async #load(): Promise<void> {
    const hour = await this.#hourFile.load(this.#hour);
    const trends = await this.#trendFile.load(this.#trends);
    this.#damaged = [...hour, ...trends];
    for (const text of this.#damaged) this.#log.warn("history_file_damaged", { error: text });
    this.#forget();
  }

  #forget(): void {
    if (!isClockSet(this.#clock.wallMs())) return;
    this.#hour.forgetSilent();
    for (const nodeId of this.#counters.keys()) {
      if (!this.#hour.has(nodeId)) this.#counters.delete(nodeId);
    }
    this.#trends.forgetOld();
  }
}
