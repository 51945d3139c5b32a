// The statements of plans in PostgreSQL's syntax: numbered marks, values as text.
import type { ClientBase } from "pg";
import type { SqlAnswer, SqlAsk } from "./sql-plan.ts";

/** Statements with numbered marks that are kept; those of many rows come in many lengths. */
const STATEMENTS_KEPT = 256;

/** Runs the statements of plans on the database. */
export class PostgresStatements {
  readonly #texts = new Map<string, string>();

  /** Runs one statement. Throws what pg throws. */
  async ask(client: ClientBase, ask: SqlAsk): Promise<SqlAnswer> {
    let text = this.#texts.get(ask.sql);
    if (text === undefined) {
      let mark = 0;
      text = ask.sql.replaceAll("?", () => `$${++mark}`);
      if (this.#texts.size >= STATEMENTS_KEPT) this.#texts.clear();
      this.#texts.set(ask.sql, text);
    }
    const values = ask.values.map((value) => (value === null ? null : String(value)));
    const { rows, rowCount } = await client.query(ask.locks === true ? `${text} FOR UPDATE` : text, values);
    return { rows, changes: rowCount ?? 0 };
  }
}

/** Rolls a transaction back; false when the connection is broken. */
export async function rolledBack(client: ClientBase): Promise<boolean> {
  return client.query("ROLLBACK").then(
    () => true,
    () => false,
  );
}
