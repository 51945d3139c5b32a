// Packs the rows of a group into three arrays in PostgreSQL's own binary form, row by row.
import { type ColumnType, SHARED_TABLES, type SharedColumn, type SharedTable } from "./shared-tables.ts";
import { keyColumns, type TableEffects } from "./table-rows.ts";

/** Parameters of a commit: the steps in their order, and the values of all rows. */
export interface PackedRows {
  /** A table and the kind of its rows: those that are gone, others that may be there, and fresh ones. */
  readonly steps: readonly string[];
  /** Rows of each step. */
  readonly counts: readonly number[];
  readonly numbers: Buffer;
  readonly texts: Buffer;
  readonly bytes: Buffer;
}

/** Kinds of rows in the order in which they are written: what gives a name away comes first. */
const KINDS = ["gone", "rows", "fresh"] as const;

/** Object ids of the element types (pg_type.dat). */
const ELEMENT_TYPES: Readonly<Record<ColumnType, number>> = { BIGINT: 20, TEXT: 25, BYTEA: 17 };

/** Packs rows of some of the given tables. Throws for another one. */
export function packRows(
  effects: readonly TableEffects[],
  tables: readonly SharedTable[] = SHARED_TABLES,
): PackedRows {
  const lists: Record<ColumnType, unknown[]> = { BIGINT: [], TEXT: [], BYTEA: [] };
  const steps: string[] = [];
  const counts: number[] = [];
  for (const effect of effects) {
    const table = tables.find(({ name }) => name === effect.table);
    if (table === undefined) throw new Error(`there is no shared table ${effect.table}`);
    for (const kind of KINDS) {
      const rows = (effect[kind] ?? []) as readonly Readonly<Record<string, unknown>>[];
      if (rows.length === 0) continue;
      steps.push(`${table.name} ${kind}`);
      counts.push(rows.length);
      const columns = packedColumns(table, kind);
      for (const row of rows) {
        for (const { name, type } of columns) lists[type].push(row[name]);
      }
    }
  }
  return {
    steps,
    counts,
    numbers: arrayOf("BIGINT", lists.BIGINT),
    texts: arrayOf("TEXT", lists.TEXT),
    bytes: arrayOf("BYTEA", lists.BYTEA),
  };
}

/** Columns that are sent of a kind of rows, in their order. */
export function packedColumns(table: SharedTable, kind: (typeof KINDS)[number]): readonly SharedColumn[] {
  if (kind !== "gone") return table.columns;
  const keys = keyColumns(table);
  return table.columns.filter(({ name }) => keys.includes(name));
}

/** The form of array_recv: dimensions, nulls, element type, length, first subscript; then each element. */
function arrayOf(type: ColumnType, values: readonly unknown[]): Buffer {
  const lengths = values.map((value) => lengthOf(type, value));
  const header = values.length === 0 ? 12 : 20;
  const size = lengths.reduce((sum, length) => sum + 4 + Math.max(0, length), header);
  const packed = Buffer.allocUnsafe(size);
  packed.writeInt32BE(values.length === 0 ? 0 : 1, 0);
  packed.writeInt32BE(lengths.includes(-1) ? 1 : 0, 4);
  packed.writeInt32BE(ELEMENT_TYPES[type], 8);
  if (values.length === 0) return packed;
  packed.writeInt32BE(values.length, 12);
  packed.writeInt32BE(1, 16);
  let at = header;
  for (const [index, value] of values.entries()) {
    const length = lengths[index] as number;
    at = packed.writeInt32BE(length, at);
    if (length < 0) continue;
    put(packed, at, type, value);
    at += length;
  }
  return packed;
}

/** -1 stands for NULL. */
function lengthOf(type: ColumnType, value: unknown): number {
  if (value === null || value === undefined) return -1;
  if (type === "BIGINT") return 8;
  return type === "TEXT" ? Buffer.byteLength(value as string) : (value as Uint8Array).length;
}

function put(packed: Buffer, at: number, type: ColumnType, value: unknown): void {
  if (type === "TEXT") packed.write(value as string, at);
  else if (type === "BYTEA") packed.set(value as Uint8Array, at);
  else {
    // Every number of the engine is below 2^53.
    const high = Math.floor((value as number) / 2 ** 32);
    packed.writeInt32BE(high, at);
    packed.writeUInt32BE((value as number) - high * 2 ** 32, at + 4);
  }
}
