// Commands as plans: what is asked of the database, one statement after the other, without saying which database it is.

/** What a statement's `?` stand for. */
export type SqlValue = string | bigint | number | null;

/** One statement that a plan asks for. */
export interface SqlAsk {
  readonly sql: string;
  readonly values: readonly SqlValue[];
  /** The rows that it finds are locked until the plan ends, where several processes write to the database. */
  readonly locks?: boolean;
}

/** What the database says. */
export interface SqlAnswer {
  /** Integers as bigint. */
  readonly rows: readonly unknown[];
  /** Rows that a change touched. */
  readonly changes: number;
}

/** A command that yields its statements and is given their answers, so that the same words run on every database. */
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

/** Runs a change and tells how many rows it touched. */
export function* run(sql: string, ...values: SqlValue[]): Plan<number> {
  return (yield { sql, values }).changes;
}

/** `(?, ?), (?, ?)` for that many rows. */
export function rowsOfMarks(rows: number, columns: number): string {
  const row = `(${Array.from({ length: columns }, () => "?").join(", ")})`;
  return Array.from({ length: rows }, () => row).join(", ");
}
