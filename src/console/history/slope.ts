// The rate of growth as the median of the slopes between all points, which resists single jumps and outliers.

/** Shortest time that forecasts need: slopes of minutes do not predict days. */
const FORECAST_MIN_SPAN_MS: number = 6 * 3_600_000;

/** An amount at a moment of wall time. */
export interface Point {
  readonly wallMs: number;
  readonly amount: number;
}

/** Minimum of points for a pace. */
const POINTS_MIN = 4;
/** Slopes between closer points show noise rather than a pace. */
const PAIR_MIN_MS = 3_600_000;
/** Lead of rising pairs over falling ones, as a share of all; below it the amount counts as flat. */
const RISING_LEAD_MIN = 0.2;

/**
 * Growth in amount per millisecond; undefined when the points span less than six hours, or the amount does
 * not clearly rise. Points are in order of time; at most `pointsMax` of them are compared, each with each.
 */
export function pace(points: readonly Point[], pointsMax: number): number | undefined {
  if (!spansEnough(points)) return undefined;
  const slopes = slopesOf(thinned(points, pointsMax));
  slopes.sort();
  const median = slopes[Math.floor((slopes.length - 1) / 2)] ?? 0;
  if (!(median > 0)) return undefined;
  let lead = 0;
  for (const slope of slopes) lead += Math.sign(slope);
  return lead / slopes.length >= RISING_LEAD_MIN ? median : undefined;
}

/** True when the points, in order of time, are enough and span at least six hours. */
export function spansEnough(points: readonly Point[]): boolean {
  const [first, last] = [points[0], points.at(-1)];
  if (first === undefined || last === undefined || points.length < POINTS_MIN) return false;
  return last.wallMs - first.wallMs >= FORECAST_MIN_SPAN_MS;
}

function slopesOf(points: readonly Point[]): Float64Array {
  const slopes = new Float64Array((points.length * (points.length - 1)) / 2);
  let count = 0;
  points.forEach((from, index) => {
    for (let next = index + 1; next < points.length; next++) {
      const to = points[next] as Point;
      const timeMs = to.wallMs - from.wallMs;
      if (timeMs < PAIR_MIN_MS) continue;
      slopes[count] = (to.amount - from.amount) / timeMs;
      count++;
    }
  });
  return slopes.subarray(0, count);
}

/** At most so many of the points, evenly spaced, with the first and the last. */
function thinned(points: readonly Point[], pointsMax: number): readonly Point[] {
  if (points.length <= pointsMax) return points;
  const stride = (points.length - 1) / (pointsMax - 1);
  return Array.from({ length: pointsMax }, (_, index) => points[Math.round(index * stride)] as Point);
}
