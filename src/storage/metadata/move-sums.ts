// The running sum of what has arrived of a moving root, so that both ends compare at once, whatever its size.
import { hash } from "node:crypto";
import type { DatabaseSync, StatementSync } from "node:sqlite";
import type { MoveBucketKey, MoveTotals } from "#storage/contract/root-move.ts";

/** Kind of the one row of `move_bucket` that has the sum of a root's others. */
export const SUM_KIND = 3;

/** Reads that row. */
export const MOVE_SUM = `SELECT checksum, row_count FROM move_bucket WHERE number = ? AND kind = ${SUM_KIND}`;

/** What has arrived of a bucket; without rows it counts for nothing. */
export interface BucketState {
  readonly checksum: string;
  readonly rows: number;
}

/** Checksums of all buckets are added up in this many values, so that their order does not matter. */
const MODULUS = 1n << 256n;
const EMPTY: MoveTotals = { rows: 0, checksum: "0".repeat(64) };

/** The totals of a row that was read as an array; of a root without one, those of nothing. */
export function totalsOf(row: unknown): MoveTotals {
  if (row === undefined) return EMPTY;
  const [checksum, rows] = row as [string, number];
  return { rows, checksum };
}

/** Keeps the sums, in the transactions that change buckets. */
export class MoveSums {
  readonly #find: StatementSync;
  readonly #all: StatementSync;
  readonly #one: StatementSync;
  readonly #put: StatementSync;

  constructor(db: DatabaseSync) {
    const prepare = (sql: string): StatementSync => {
      const statement = db.prepare(sql);
      statement.setReturnArrays(true);
      return statement;
    };
    this.#find = prepare(MOVE_SUM);
    this.#all = prepare(
      "SELECT kind, a, b, checksum, row_count FROM move_bucket WHERE number = ? AND row_count > 0",
    );
    this.#one = prepare(
      "SELECT checksum, row_count FROM move_bucket WHERE number = ? AND kind = ? AND a = ? AND b = ?",
    );
    this.#put = prepare(
      `INSERT INTO move_bucket (number, kind, a, b, changes, sent, checksum, row_count) VALUES (?, ${SUM_KIND}, 0, 0, 0, 0, ?, ?)
       ON CONFLICT (number, kind, a, b) DO UPDATE SET checksum = excluded.checksum, row_count = excluded.row_count`,
    );
  }

  /** Does work that changes buckets of a root; it says which, by the returned function, before it changes one. */
  changing<T>(number: number, work: (about: (key: MoveBucketKey) => void) => T): T {
    const before = new Map<string, readonly [MoveBucketKey, BucketState | undefined]>();
    const sum = this.#sum(number);
    const result = work((key) => {
      const name = nameOf(key);
      if (!before.has(name)) before.set(name, [key, this.#bucket(number, key)]);
    });
    if (before.size === 0) return result;
    let { rows } = sum;
    let value = BigInt(`0x${sum.checksum}`);
    for (const [key, was] of before.values()) {
      const is = this.#bucket(number, key);
      value += MODULUS + partOf(key, is) - partOf(key, was);
      rows += (is?.rows ?? 0) - (was?.rows ?? 0);
    }
    this.#put.run(number, (value % MODULUS).toString(16).padStart(64, "0"), rows);
    return result;
  }

  /** A root that began to move before sums were kept has none yet. */
  #sum(number: number): MoveTotals {
    const known = this.#find.get(number);
    if (known !== undefined) return totalsOf(known);
    let value = 0n;
    let rows = 0;
    for (const row of this.#all.iterate(number)) {
      const [kind, a, b, checksum, count] = row as unknown as [0 | 1 | 2, number, number, string, number];
      value += partOf({ kind, a, b }, { checksum, rows: count });
      rows += count;
    }
    return { rows, checksum: (value % MODULUS).toString(16).padStart(64, "0") };
  }

  #bucket(number: number, { kind, a, b }: MoveBucketKey): BucketState | undefined {
    const row = this.#one.get(number, kind, a, b) as unknown as [string, number] | undefined;
    return row === undefined ? undefined : { checksum: row[0], rows: row[1] };
  }
}

function partOf(key: MoveBucketKey, state: BucketState | undefined): bigint {
  if (state === undefined || state.rows === 0) return 0n;
  return BigInt(`0x${hash("sha256", `${nameOf(key)}:${state.checksum}`, "hex")}`);
}

function nameOf({ kind, a, b }: MoveBucketKey): string {
  return `${kind}.${a}.${b}`;
}
