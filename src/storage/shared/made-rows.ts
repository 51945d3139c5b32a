// What an INSERT makes of its values: the whole row, as reading it back would tell.
import type { StatementSync } from "node:sqlite";

/** A column's name, and its value: a parameter of the statement by its place, or the same for all rows. */
type Source = readonly [column: string, param: number | undefined, value: number | null];

/** The table of an insert, and the row that it makes of its parameters. */
export interface MadeRow {
  readonly table: string;
  readonly rowOf: (params: readonly unknown[]) => Record<string, unknown>;
}

const INSERT = /^\s*INSERT INTO (?<table>\w+) \((?<columns>[^)]*)\)\s+VALUES \((?<values>[^)]*)\)/;

/**
 * Reads a statement that inserts parameters and whole numbers; columns that it leaves out have the table's
 * defaults. `prepare` asks for these. Throws for a statement of another form.
 */
export function madeRow(sql: string, prepare: (sql: string) => StatementSync): MadeRow {
  const { table, columns, values } = INSERT.exec(sql)?.groups ?? {};
  if (table === undefined || columns === undefined || values === undefined) throw unknown(sql);
  const given = words(values);
  let params = 0;
  const named = words(columns).map((column, at): Source => {
    if (given[at] === "?") return [column, params++, null];
    return [column, undefined, constantOf(given[at], sql)];
  });
  const all = prepare(`SELECT name, dflt_value AS "default" FROM pragma_table_info('${table}')`).all();
  const sources = all.map((column): Source => {
    const { name, default: other } = column as { name: string; default: string | null };
    const source = named.find(([found]) => found === name);
    return source ?? [name, undefined, other === null ? null : constantOf(other, sql)];
  });
  const rowOf = (given: readonly unknown[]): Record<string, unknown> => {
    const row: Record<string, unknown> = {};
    for (const [column, param, value] of sources) row[column] = param === undefined ? value : given[param];
    return row;
  };
  return { table, rowOf };
}

function words(list: string): string[] {
  return list.split(",").map((word) => word.trim());
}

function constantOf(text: string | undefined, sql: string): number {
  if (text === undefined || !/^-?\d+$/.test(text)) throw unknown(sql);
  return Number(text);
}

function unknown(sql: string): Error {
  return new Error(`what a row becomes is not seen in this statement: ${sql}`);
}
