// Asks PostgreSQL for the rows behind facts, in one statement and so in one version.
import type pg from "pg";
import { fetchStatement } from "./fetch-statement.ts";
import type { FetchedRows } from "./row-cache.ts";
import { type Fact, LIST_START } from "./row-facts.ts";
import type { TableEffects } from "./table-rows.ts";

/** A root's holder as the database has it. */
export interface Holding {
  readonly number: number;
  readonly instance: string;
  readonly epoch: number;
  readonly batch: number;
}

/** Rows, and the holders of all roots that they belong to. */
export interface Fetched extends FetchedRows {
  readonly holdings: readonly Holding[];
}

/** Bytes of a small file's content that count as much as a row does. */
const BYTES_OF_A_ROW = 2_048;

/** What rows take of the cache, in rows of the usual size. */
export function weightOf(rows: Fetched["rows"]): number {
  return rows.reduce((sum, { table, row }) => {
    // As JSON, bytes are \x and two digits for each.
    const digits = table === "inline_content" ? String(row["data"]).length - 2 : 0;
    return sum + 1 + Math.floor(digits / 2 / BYTES_OF_A_ROW);
  }, 0);
}

/** What the rows that a group has made take of it. A row that has changed takes no more, but for its bytes. */
export function weightOfMade(effects: readonly TableEffects[]): number {
  return effects.reduce((sum, { table, fresh = [], rows }) => {
    if (table !== "inline_content") return sum + fresh.length;
    const bytes = [...fresh, ...rows].map((row) => (row as { data: Uint8Array }).data.length);
    return sum + fresh.length + bytes.reduce((all, one) => all + Math.floor(one / BYTES_OF_A_ROW), 0);
  }, 0);
}

/** Reads the rows of facts. Throws what pg throws. */
export async function fetchRows(client: pg.ClientBase, facts: readonly Fact[]): Promise<Fetched> {
  const { rows } = await client.query(fetchStatement(facts));
  const found = rows as { table: string; row: Record<string, unknown> }[];
  return {
    facts: [
      ...facts.filter(({ kind }) => kind !== "start"),
      ...otherNames(found),
      ...absentNames(found),
      ...reaches(found),
    ],
    rows: found.filter(({ table }) => table !== "holding" && table !== "absent" && table !== "reach"),
    holdings: found.filter(({ table }) => table === "holding").map(({ row }) => holdingOf(row)),
  };
}

/** Who asks by one name of a root need not ask again by the other. */
function otherNames(rows: readonly { table: string; row: Record<string, unknown> }[]): Fact[] {
  return rows.flatMap(({ table, row }) =>
    table === "root"
      ? [
          { kind: "root", owner: String(row["owner"]) },
          { kind: "number", id: Number(row["number"]) },
        ]
      : [],
  );
}

/** Names at which asked paths end. */
function absentNames(rows: readonly { table: string; row: Record<string, unknown> }[]): Fact[] {
  return rows.flatMap(({ table, row }) =>
    table === "absent" ? [{ kind: "name", id: Number(row["id"]), name: String(row["name"]) }] : [],
  );
}

/** How far lists are known that were fetched from their start on: as a whole where less came than may. */
function reaches(rows: readonly { table: string; row: Record<string, unknown> }[]): Fact[] {
  return rows.flatMap(({ table, row }): Fact[] => {
    if (table !== "reach") return [];
    const id = Number(row["id"]);
    if (Number(row["count"]) < LIST_START) return [{ kind: "list", id }];
    return [{ kind: "reach", id, from: Number(row["next"]) }];
  });
}

function holdingOf(row: Record<string, unknown>): Holding {
  return {
    number: Number(row["root_number"]),
    instance: String(row["instance"]),
    epoch: Number(row["epoch"]),
    batch: Number(row["last_batch"]),
  };
}
