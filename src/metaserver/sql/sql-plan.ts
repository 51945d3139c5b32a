// Commands as plans: sequences of statements that are independent of the database.

/** Values for a statement's `?`. */
export type SqlValue = string | bigint | number | null;

/** One statement of a plan. */
export interface SqlAsk {
  readonly sql: string;
  readonly values: readonly SqlValue[];
  /** Locks the found rows until the plan ends, where several processes write to the database. */
  readonly locks?: boolean;
}

/** The database's answer. */
export interface SqlAnswer {
  /** Integers as bigint. */
  readonly rows: readonly unknown[];
  /** Rows that a change touched. */
  readonly changes: number;
}

/** A command that yields statements and receives answers, so that the same code runs on every database. */
export type Plan<Result> = Generator<SqlAsk, Result, SqlAnswer>;

/** All rows of a query. */
export function* all<Row>(sql: string, ...values: SqlValue[]): Plan<Row[]> {
  return (yield { sql, values }).rows as Row[];
}

/** The first row of a query; undefined when there is none. */
export function* get<Row>(sql: string, ...values: SqlValue[]): Plan<Row | undefined> {
  return (yield { sql, values }).rows[0] as Row | undefined;
}

/** The same, with the row locked until the plan ends. */
export function* getLocked<Row>(sql: string, ...values: SqlValue[]): Plan<Row | undefined> {
  return (yield { sql, values, locks: true }).rows[0] as Row | undefined;
}

/** Runs a change and returns how many rows it touched. */
export function* run(sql: string, ...values: SqlValue[]): Plan<number> {
  return (yield { sql, values }).changes;
}

/** `(?, ?), (?, ?)` for that many rows. */
export function rowsOfMarks(rows: number, columns: number): string {
  const row = `(${Array.from({ length: columns }, () => "?").join(", ")})`;
  return Array.from({ length: rows }, () => row).join(", ");
}

/** The items in batches of at most that many, one for each statement. */
export function* batchesOf<Item>(items: readonly Item[], size: number): Generator<readonly Item[]> {
  for (let at = 0; at < items.length; at += size) yield items.slice(at, at + size);
}
