// One connection to the store's file, with cached prepared statements and exact integers.
import { DatabaseSync, type StatementSync } from "node:sqlite";
import type { Plan, SqlAnswer, SqlAsk } from "./sql-plan.ts";

/** How long a command waits for a reader of another process that locks the file. */
const BUSY_TIMEOUT_MS = 5_000;

/** Prepared statements kept; those of many rows come in many lengths. */
const STATEMENTS_KEPT = 128;

interface Prepared {
  readonly statement: StatementSync;
  /** A statement without columns is a change. */
  readonly hasRows: boolean;
}

/** A connection; all methods throw what SQLite throws. */
export class SqlSession {
  readonly database: DatabaseSync;
  readonly #statements = new Map<string, Prepared>();

  /** FULL flushes each commit before it returns; NORMAL leaves that to the next FULL one or to the OS. */
  constructor(path: string, mode: "FULL" | "NORMAL" | "read-only") {
    const readOnly = mode === "read-only";
    this.database = new DatabaseSync(path, { timeout: BUSY_TIMEOUT_MS, readOnly });
    this.database.exec(
      `${readOnly ? "" : `PRAGMA journal_mode = WAL; PRAGMA synchronous = ${mode};`} PRAGMA foreign_keys = ON;
       PRAGMA trusted_schema = OFF; PRAGMA cell_size_check = ON; PRAGMA mmap_size = 0`,
    );
  }

  /** Runs a plan statement by statement, outside of any transaction of its own. */
  follow<Result>(plan: Plan<Result>): Result {
    let step = plan.next();
    while (step.done !== true) step = plan.next(this.#answer(step.value));
    return step.value;
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

  #answer(ask: SqlAsk): SqlAnswer {
    const { statement, hasRows } = this.#prepared(ask.sql);
    if (hasRows) return { rows: statement.all(...ask.values), changes: 0 };
    return { rows: [], changes: Number(statement.run(...ask.values).changes) };
  }

  #prepared(sql: string): Prepared {
    let prepared = this.#statements.get(sql);
    if (prepared === undefined) {
      if (this.#statements.size >= STATEMENTS_KEPT) this.#statements.clear();
      const statement = this.database.prepare(sql);
      statement.setReadBigInts(true);
      prepared = { statement, hasRows: statement.columns().length > 0 };
      this.#statements.set(sql, prepared);
    }
    return prepared;
  }
}
