// Counts how often rows are looked up, for tests of work that must not grow with what lies below a directory.
import type { DatabaseSync, StatementSync } from "node:sqlite";

/** Prepares statements of a database, and counts the look-ups of those whose SQL has the text. */
export class CountedLooks {
  readonly #db: DatabaseSync;
  readonly #text: string;
  /** Look-ups up to now. */
  count = 0;

  constructor(db: DatabaseSync, text: string) {
    this.#db = db;
    this.#text = text;
  }

  /** Of a counted statement only `get` works. */
  readonly prepare = (sql: string): StatementSync => {
    const statement = this.#db.prepare(sql);
    if (!sql.includes(this.#text)) return statement;
    return {
      get: (id: number) => {
        this.count++;
        return statement.get(id);
      },
    } as StatementSync;
  };
}
