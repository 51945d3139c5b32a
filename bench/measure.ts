// Alternating rounds of two sides and the median of their pairwise ratios, robust on shared machines.

/** One side of a comparison: does its work once and returns its rate per second, or its cost. */
export type Side = () => Promise<number>;

/** The result of a comparison. */
export interface Comparison {
  /** Median over the rounds of (ours / theirs), each pair measured back to back. */
  readonly ratio: number;
  /** Median of each side, to read beside the ratio; on a busy machine it means little by itself. */
  readonly ours: number;
  readonly theirs: number;
  readonly ratios: readonly number[];
}

/** Rounds of every comparison; the sides take turns in leading, so that a drift of the machine cancels. */
export const ROUNDS = 5;

/** Warms both sides once, then runs them in turn. `rounds` is at least 5 and best odd. */
export async function compare(ours: Side, theirs: Side, rounds: number = ROUNDS): Promise<Comparison> {
  if (rounds < ROUNDS) throw new RangeError(`a comparison takes at least ${ROUNDS} rounds`);
  await theirs();
  await ours();
  const pairs: { ours: number; theirs: number }[] = [];
  for (let round = 0; round < rounds; round += 1) {
    if (round % 2 === 0) {
      const first = await ours();
      pairs.push({ ours: first, theirs: await theirs() });
    } else {
      const first = await theirs();
      pairs.push({ theirs: first, ours: await ours() });
    }
  }
  const ratios = pairs.map((pair) => pair.ours / pair.theirs);
  return {
    ratio: median(ratios),
    ours: median(pairs.map((pair) => pair.ours)),
    theirs: median(pairs.map((pair) => pair.theirs)),
    ratios,
  };
}

/** The middle value, or the mean of the two in the middle. Throws RangeError for an empty list. */
export function median(values: readonly number[]): number {
  return (quantile(values, 0.5, Math.floor) + quantile(values, 0.5, Math.ceil)) / 2;
}

/** The smallest value that at least `share` (0 to 1) of the values do not exceed. */
export function percentile(values: readonly number[], share: number): number {
  const sorted = values.toSorted((a, b) => a - b);
  const value = sorted[Math.max(0, Math.ceil(share * sorted.length) - 1)];
  if (value === undefined) throw new RangeError("no values");
  return value;
}

function quantile(values: readonly number[], share: number, round: (at: number) => number): number {
  const value = values.toSorted((a, b) => a - b)[round(share * (values.length - 1))];
  if (value === undefined) throw new RangeError("no values");
  return value;
}
