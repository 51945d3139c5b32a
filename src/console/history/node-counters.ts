// Turns a node's counters into rates that survive restarts and totals of the last 60 s (decision D9, T4).
import { ERROR_RATE_MIN_OPERATIONS, POLL_INTERVAL_MS } from "#base/limits.ts";
import { type ErrorWindow, NO_RATES, type NodeRates, type NodeSample } from "./node-sample.ts";

/** Window of error rates and of the rates of `/api/performance` (T4, decision D9). */
const RATE_WINDOW_MS = 60_000;
/** Intervals between answers that are kept in the window: twice what the poll interval makes. */
const RATE_INTERVALS_KEPT = 24;
/** Consecutive failures from which a node counts as failing at everything (T4). */
const FAILING_RUN_MIN_ERRORS = 5;
/** Shortest duration of such a run of failures. */
const FAILING_RUN_MIN_MS = 60_000;
/** A node without operations for longer than this no longer counts as failing. */
const FAILING_RUN_QUIET_MS: number = 5 * 60_000;

const COUNTERS = ["bytesWritten", "bytesRead", "writeOps", "readOps", "errors", "attempts"] as const;
type CounterName = (typeof COUNTERS)[number];

const BYTES_PER_MB = 1_000_000;
const MS_PER_SECOND = 1_000;
/** Counters have 64 bits. */
const COUNTER_MAX: number = 2 ** 64;
/** Polls are not exactly regular: an interval that began this much before the window still belongs to it. */
const WINDOW_SLACK_MS: number = POLL_INTERVAL_MS / 2;

/** A counter's growth between two answers. */
interface Interval {
  readonly startMs: number;
  readonly endMs: number;
  readonly growth: number;
}

/** One counter: its last valid value and its recent growth. */
interface Track {
  value: number | undefined;
  atMs: number;
  readonly intervals: Interval[];
}

/** The counters of one node. */
export class NodeCounters {
  readonly #tracks: Readonly<Record<CounterName, Track>> = {
    bytesWritten: newTrack(),
    bytesRead: newTrack(),
    writeOps: newTrack(),
    readOps: newTrack(),
    errors: newTrack(),
    attempts: newTrack(),
  };
  /** Failures since the last success, with the times of the first and the last; undefined without any. */
  #run: { errors: number; readonly sinceMs: number; lastMs: number } | undefined;
  #lastRestartUnix: number | null = null;
  #bootId: string | null = null;
  #rates = NO_RATES;

  /** The rates of the last answer. */
  get rates(): NodeRates {
    return this.#rates;
  }

  /** Records an answer and returns the rates since the one before; null for a first answer. */
  record(sample: NodeSample): NodeRates {
    const nowMs = sample.steadyMs;
    if (this.#isRestart(sample)) this.#restart(sample);
    this.#lastRestartUnix = sample.lastRestartUnix ?? this.#lastRestartUnix;
    this.#bootId = sample.bootId ?? this.#bootId;
    const perSecond = (name: CounterName): number | null =>
      grow(this.#tracks[name], valid(sample[name]), nowMs);
    const bytesWritten = perSecond("bytesWritten");
    const bytesRead = perSecond("bytesRead");
    const writeIops = perSecond("writeOps");
    const readIops = perSecond("readOps");
    perSecond("errors");
    perSecond("attempts");
    this.#followRun(nowMs);
    this.#rates = {
      writeMbps: megabytes(bytesWritten),
      readMbps: megabytes(bytesRead),
      writeIops,
      readIops,
      errorRatePct: errorRatePct(this.errorWindow(nowMs)),
    };
    return this.#rates;
  }

  /**
   * Attempts and failures of the last 60 s; none while one of the counters is unknown. For a node that
   * reports only reads and writes, as Grove 0.1.0 does, their sum counts as attempts.
   */
  errorWindow(nowMs: number): ErrorWindow {
    const failingRun = this.#failingRun(nowMs);
    const errors = within(this.#tracks.errors, nowMs);
    const attempts = within(this.#tracks.attempts, nowMs);
    if (attempts.durationMs > 0 && attempts.durationMs === errors.durationMs) {
      return { errors: errors.growth, ops: attempts.growth, failingRun };
    }
    const writes = within(this.#tracks.writeOps, nowMs);
    const reads = within(this.#tracks.readOps, nowMs);
    if (Math.min(errors.durationMs, writes.durationMs, reads.durationMs) === 0) {
      return { errors: 0, ops: 0, failingRun };
    }
    return { errors: errors.growth, ops: writes.growth + reads.growth, failingRun };
  }

  /** Failed operations per second over the last 60 s; null while unknown. */
  errorsPerSecond(nowMs: number): number | null {
    return this.#mean("errors", nowMs);
  }

  /** Mean rates over the last 60 s. */
  windowRates(nowMs: number): NodeRates {
    const mean = (name: CounterName): number | null => this.#mean(name, nowMs);
    return {
      writeMbps: megabytes(mean("bytesWritten")),
      readMbps: megabytes(mean("bytesRead")),
      writeIops: mean("writeOps"),
      readIops: mean("readOps"),
      errorRatePct: errorRatePct(this.errorWindow(nowMs)),
    };
  }

  #mean(name: CounterName, nowMs: number): number | null {
    const { growth, durationMs } = within(this.#tracks[name], nowMs);
    return durationMs > 0 ? (growth * MS_PER_SECOND) / durationMs : null;
  }

  /** A run continues while every attempt fails, and for a while without attempts; a success ends it. */
  #followRun(nowMs: number): void {
    const errors = lastGrowth(this.#tracks.errors, nowMs);
    const attempts = lastGrowth(this.#tracks.attempts, nowMs);
    if (errors === undefined || attempts === undefined) return;
    if (attempts > errors) this.#run = undefined;
    else if (errors > 0) {
      const before = this.#isQuiet(nowMs) ? undefined : this.#run;
      this.#run = {
        errors: (before?.errors ?? 0) + errors,
        sinceMs: before?.sinceMs ?? nowMs,
        lastMs: nowMs,
      };
    }
  }

  #isQuiet(nowMs: number): boolean {
    return this.#run === undefined || nowMs - this.#run.lastMs > FAILING_RUN_QUIET_MS;
  }

  #failingRun(nowMs: number): number {
    const run = this.#isQuiet(nowMs) ? undefined : this.#run;
    if (run === undefined || run.lastMs - run.sinceMs < FAILING_RUN_MIN_MS) return 0;
    return run.errors >= FAILING_RUN_MIN_ERRORS ? run.errors : 0;
  }

  #isRestart(sample: NodeSample): boolean {
    return (
      differs(this.#lastRestartUnix, sample.lastRestartUnix) ||
      differs(this.#bootId, sample.bootId) ||
      COUNTERS.some((name) => {
        const before = this.#tracks[name].value;
        const now = valid(sample[name]);
        return before !== undefined && now !== null && now < before;
      })
    );
  }

  /** After a restart all counters began at zero, at the node's start or right after its last answer. */
  #restart(sample: NodeSample): void {
    const uptimeMs = valid(sample.uptimeSeconds);
    this.#run = undefined;
    for (const name of COUNTERS) {
      const track = this.#tracks[name];
      if (track.value === undefined) continue;
      track.value = 0;
      // Uptimes are whole seconds, so the elapsed part of the first is unknown.
      if (uptimeMs !== null) {
        track.atMs = Math.max(track.atMs, sample.steadyMs - Math.max(1, uptimeMs) * MS_PER_SECOND);
      }
    }
  }
}

/** Failed share in percent, at most 100; null under 20 attempts, unless all fail (T4). */
export function errorRatePct({ errors, ops, failingRun }: ErrorWindow): number | null {
  if (ops >= ERROR_RATE_MIN_OPERATIONS) return Math.min(100, (errors / ops) * 100);
  return failingRun > 0 ? 100 : null;
}

function newTrack(): Track {
  return { value: undefined, atMs: 0, intervals: [] };
}

/** Records a counter's new value and returns its growth per second. */
function grow(track: Track, value: number | null, nowMs: number): number | null {
  if (value === null) return null;
  const { value: before, atMs: startMs } = track;
  // A second answer at the same moment gives no rate; its growth counts with the next.
  if (before !== undefined && nowMs <= startMs) return null;
  track.value = value;
  track.atMs = nowMs;
  if (before === undefined) return null;
  const growth = Math.max(0, value - before);
  track.intervals.push({ startMs, endMs: nowMs, growth });
  if (track.intervals.length > RATE_INTERVALS_KEPT) track.intervals.shift();
  return (growth * MS_PER_SECOND) / (nowMs - startMs);
}

/** A counter's growth in the last 60 s; an interval that began before is left out as a whole. */
function within(track: Track, nowMs: number): { growth: number; durationMs: number } {
  const fromMs = nowMs - RATE_WINDOW_MS - WINDOW_SLACK_MS;
  let growth = 0;
  let durationMs = 0;
  for (const interval of track.intervals) {
    if (interval.startMs < fromMs) continue;
    growth += interval.growth;
    durationMs += interval.endMs - interval.startMs;
  }
  return { growth, durationMs };
}

/** A counter's growth with this answer; undefined where unknown. */
function lastGrowth({ intervals }: Track, nowMs: number): number | undefined {
  const last = intervals.at(-1);
  return last?.endMs === nowMs ? last.growth : undefined;
}

function valid(value: number | null): number | null {
  return value !== null && value >= 0 && value <= COUNTER_MAX ? value : null;
}

function differs(before: number | string | null, now: number | string | null): boolean {
  return before !== null && now !== null && before !== now;
}

function megabytes(bytesPerSecond: number | null): number | null {
  return bytesPerSecond === null ? null : bytesPerSecond / BYTES_PER_MB;
}
