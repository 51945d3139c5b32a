// The long trend of one amount, coarser with age, and the forecast of when it reaches its limit.
import { rounded } from "./columns.ts";
import { type Point, pace, spansEnough } from "./slope.ts";
import { SlotRing } from "./slot-ring.ts";
import { slotOf } from "./slots.ts";

/** Window of the pace that forecasts follow: a week. */
const FORECAST_WINDOW_MS: number = 7 * 24 * 3_600_000;
/** Longest forecast in days: ten years. */
const FORECAST_DAYS_MAX = 3_650;

/** Columns of a trend: the amount, and its time within the slot. */
export const TREND_COLUMNS: readonly { readonly name: string; readonly decimals: number }[] = [
  { name: "used_mb", decimals: 3 },
  { name: "after_seconds", decimals: 0 },
];

const BYTES_PER_MB = 1_000_000;
const MS_PER_DAY = 86_400_000;
/** Number of coarser points that suffices for a forecast. */
const COARSE_POINTS_MIN = 48;
/** A clock that went back by less is waited for; beyond, points of the time to come are dropped. */
const CLOCK_BACK_MS: number = 2 * MS_PER_DAY;
/** Largest age of the latest amount for a forecast. */
const LATEST_MAX_AGE_MS = 3_600_000;
/** Interval of retries for a trend without a pace. */
const NO_PACE_MS = 60_000;

/** Initial room of a trend; most are short in a young console, and room grows with the points. */
const ROOM = 16;

/** One resolution of a trend. */
export interface Tier {
  readonly slotMs: number;
  readonly ring: SlotRing;
}

/** The amount of one thing with a limit: bytes of a disk, bytes of a user. */
export class Trend {
  /** The finest first. */
  readonly tiers: readonly Tier[];
  readonly #comparedPoints: number;
  #latest: (Point & { readonly limit: number }) | undefined;
  /** Bytes per millisecond, with the time of the newest point; undefined before it is computed. */
  #pace: { readonly value: number | undefined; readonly isKnown: boolean; readonly atMs: number } | undefined;

  constructor(
    tiers: readonly { readonly slotMs: number; readonly points: number }[],
    comparedPoints: number,
  ) {
    this.#comparedPoints = comparedPoints;
    this.tiers = tiers.map(({ slotMs, points }) => ({
      slotMs,
      ring: new SlotRing(TREND_COLUMNS.length, points, ROOM),
    }));
  }

  /** Wall time of the last record; 0 before. */
  get heardAtMs(): number {
    return this.#latest?.wallMs ?? 0;
  }

  /** Records the amount and its limit at a moment; both in bytes. Returns true when that made a new point. */
  record(wallMs: number, bytes: number, limitBytes: number): boolean {
    this.#latest = { wallMs, amount: bytes, limit: limitBytes };
    let isNew = false;
    for (const { slotMs, ring } of this.tiers) {
      const slot = slotOf(wallMs, slotMs);
      const behindMs = (ring.newestSlot - slot) * slotMs;
      if (!ring.isEmpty && behindMs >= 0 && behindMs < CLOCK_BACK_MS) continue;
      ring.put(slot, [rounded(bytes / BYTES_PER_MB, 3), Math.floor((wallMs - slot * slotMs) / 1_000)]);
      isNew = true;
    }
    if (isNew) this.#pace = undefined;
    return isNew;
  }

  /** Days until the limit; undefined when unknown, too far away, or when the amount does not rise. */
  daysLeft(nowMs: number): number | undefined {
    const latest = this.#latestAt(nowMs);
    const perMs = latest === undefined ? undefined : this.#paceAt(latest).value;
    if (latest === undefined || perMs === undefined) return undefined;
    const days = Math.max(0, latest.limit - latest.amount) / perMs / MS_PER_DAY;
    return days <= FORECAST_DAYS_MAX ? rounded(days, days < 10 ? 2 : 1) : undefined;
  }

  /** True when the points suffice to tell whether the amount rises, and the last is fresh. */
  isKnown(nowMs: number): boolean {
    const latest = this.#latestAt(nowMs);
    return latest !== undefined && this.#paceAt(latest).isKnown;
  }

  #latestAt(nowMs: number): (Point & { readonly limit: number }) | undefined {
    const latest = this.#latest;
    return latest === undefined || nowMs - latest.wallMs > LATEST_MAX_AGE_MS ? undefined : latest;
  }

  /** Computed again with each new point, and each minute while there is none. */
  #paceAt(latest: Point): { readonly value: number | undefined; readonly isKnown: boolean } {
    const before = this.#pace;
    if (before !== undefined && (before.value !== undefined || latest.wallMs - before.atMs < NO_PACE_MS)) {
      return before;
    }
    const points = this.#points(latest);
    const value = pace(points, this.#comparedPoints);
    this.#pace = { value, isKnown: spansEnough(points), atMs: latest.wallMs };
    return this.#pace;
  }

  /** The points of the last week, of the coarsest tier that has enough of them, and the latest amount. */
  #points(latest: Point): readonly Point[] {
    let points: Point[] = [];
    for (const { slotMs, ring } of this.tiers) {
      const coarser: Point[] = [];
      const first = Math.max(ring.firstSlot, slotOf(latest.wallMs - FORECAST_WINDOW_MS, slotMs) + 1);
      for (let slot = first; slot <= ring.newestSlot; slot++) {
        const amount = ring.at(0, slot) * BYTES_PER_MB;
        const wallMs = slot * slotMs + ring.at(1, slot) * 1_000;
        if (Number.isNaN(amount) || Number.isNaN(wallMs) || wallMs >= latest.wallMs) continue;
        coarser.push({ wallMs, amount });
      }
      if (points.length === 0 || coarser.length >= COARSE_POINTS_MIN) points = coarser;
    }
    points.push(latest);
    return points;
  }
}
