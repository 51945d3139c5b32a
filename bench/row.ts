// The shape of a row: the two sides of a comparison, and the bar that the figure must reach.
import type { Lab, LabOptions } from "./lab.ts";
import type { Side } from "./measure.ts";

interface Compared {
  readonly name: string;
  readonly against: string;
  sides(lab: Lab): Promise<{ ours: Side; theirs: Side }>;
  /** What to read beside the figures, found after the rounds. */
  note?(lab: Lab): Promise<string>;
}

/** A row whose figure is the ratio of Grove's rate to another side's in the same run. */
export interface RatioRow extends Compared {
  /** The ratio that must be reached; 0 for a row that is told only. */
  readonly atLeast: number;
  /** Unit of the two rates, such as MiB/s: both sides answer in it. */
  readonly rate: string;
}

/** A row whose figure is the ratio of Grove's cost to another side's in the same run. */
export interface CostRow extends Compared {
  /** The ratio that must not be exceeded; 0 for a row that is told only. */
  readonly atMost: number;
  /** Unit of the two costs, such as s/GiB: both sides answer in it. */
  readonly cost: string;
}

/** A row whose figure must stay below a fixed bar. */
export interface LimitRow {
  readonly name: string;
  readonly unit: string;
  /** The figure must be below this, or at most this when it is 0. */
  readonly below: number;
  measure(lab: Lab): Promise<{ value: number /** What to read beside it. */; detail: string }>;
}

export type Row = RatioRow | CostRow | LimitRow;

/** Rows that share processes and data, and that `--only` can name. */
export interface Group {
  readonly name: string;
  readonly rows: (options: LabOptions) => readonly Row[];
}

/** One measured row, as `--json` prints it. A row without a measurement has the value null and is not met. */
export interface Result {
  readonly name: string;
  readonly against: string;
  readonly value: number | null;
  /** "ratio" must be at least the bar, "cost ratio" at most; any other unit is a limit's. */
  readonly unit: string;
  readonly bar: number;
  readonly met: boolean;
}
