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
  const count = values.length;
  const lengths = new Int32Array(count);
  let hasNulls = 0;
  let size = count === 0 ? 12 : 20;
  for (let index = 0; index < count; index++) {
    const length = lengthOf(type, values[index]);
    lengths[index] = length;
    if (length < 0) hasNulls = 1;
    size += 4 + Math.max(0, length);
  }
  const packed = Buffer.allocUnsafe(size);
  const view = new DataView(packed.buffer, packed.byteOffset, size);
  view.setInt32(0, count === 0 ? 0 : 1);
  view.setInt32(4, hasNulls);
  view.setInt32(8, ELEMENT_TYPES[type]);
  if (count === 0) return packed;
  view.setInt32(12, count);
  view.setInt32(16, 1);
  let at = 20;
  for (let index = 0; index < count; index++) {
    const length = lengths[index] as number;
    view.setInt32(at, length);
    at += 4;
    if (length < 0) continue;
    const value = values[index];
    if (type === "BIGINT") {
      // Every number of the engine is below 2^53.
      const high = Math.floor((value as number) / 2 ** 32);
      view.setInt32(at, high);
      view.setUint32(at + 4, (value as number) - high * 2 ** 32);
    } else if (type === "TEXT") packed.write(value as string, at);
    else packed.set(value as Uint8Array, at);
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
