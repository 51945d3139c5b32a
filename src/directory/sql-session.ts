// One connection to the store's file, with its prepared statements kept and its integers exact.
import { DatabaseSync, type SQLInputValue, type StatementSync } from "node:sqlite";

/** How long a command waits for a reader of another process that holds the file. */
const BUSY_TIMEOUT_MS = 5_000;

/** A connection; all methods throw what SQLite throws. */
export class SqlSession {
  readonly database: DatabaseSync;
  readonly #statements = new Map<string, StatementSync>();

  /** FULL flushes each commit before it returns; NORMAL leaves that to the next FULL one or to the operating system. */
  constructor(path: string, synchronous: "FULL" | "NORMAL") {
    this.database = new DatabaseSync(path, { timeout: BUSY_TIMEOUT_MS });
    this.database.exec(
      `PRAGMA journal_mode = WAL; PRAGMA synchronous = ${synchronous}; PRAGMA foreign_keys = ON;
       PRAGMA trusted_schema = OFF; PRAGMA cell_size_check = ON; PRAGMA mmap_size = 0`,
    );
  }

  /** The first row, integers as bigint; undefined when there is none. */
  get(sql: string, ...values: SQLInputValue[]): unknown {
    return this.#statement(sql).get(...values);
  }

  /** All rows, integers as bigint. */
  all(sql: string, ...values: SQLInputValue[]): unknown[] {
    return this.#statement(sql).all(...values);
  }

  /** Runs a change and tells how many rows it touched. */
  run(sql: string, ...values: SQLInputValue[]): number {
    return Number(this.#statement(sql).run(...values).changes);
  }

  /** Runs several changes as one: all of them are kept, or none. */
  write<Result>(change: () => Result): Result {
    this.database.exec("BEGIN IMMEDIATE");
    try {
      const result = change();
      this.database.exec("COMMIT");
      return result;
    } catch (error) {
      if (this.database.isTransaction) this.database.exec("ROLLBACK");
      throw error;
    }
  }

  close(): void {
    this.#statements.clear();
    this.database.close();
  }

  #statement(sql: string): StatementSync {
    let statement = this.#statements.get(sql);
    if (statement === undefined) {
      statement = this.database.prepare(sql);
      statement.setReadBigInts(true);
      this.#statements.set(sql, statement);
    }
    return statement;
  }
}
