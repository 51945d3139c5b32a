// Reads rows out of the arrays in which a commit brings them, as PostgreSQL's array_recv does.
import { packedColumns } from "#storage/shared/packed-rows.ts";
import type { ColumnType, SharedTable } from "#storage/shared/shared-tables.ts";

/** A table's rows: keys of those that go, and whole ones. */
export interface UnpackedRows {
  readonly table: string;
  readonly gone: readonly Record<string, unknown>[];
  readonly rows: readonly Record<string, unknown>[];
  /** Those that must not be there yet. */
  readonly fresh: readonly Record<string, unknown>[];
}

const KINDS = ["gone", "rows", "fresh"] as const;

/** Unpacks the arguments of a commit. Throws for what packRows does not send. */
export function unpackRows(
  shapes: readonly SharedTable[],
  [tables, counts, numbers, texts, bytes]: readonly unknown[],
): UnpackedRows[] {
  const lists: Record<ColumnType, unknown[]> = {
    BIGINT: valuesOf(numbers as Buffer, (value) => Number(value.readBigInt64BE())),
    TEXT: valuesOf(texts as Buffer, (value) => value.toString("utf8")),
    BYTEA: valuesOf(bytes as Buffer, (value) => Buffer.from(value)),
  };
  const left = [...(counts as readonly number[])];
  const unpacked = (tables as readonly string[]).map((table) => {
    const shape = shapes.find(({ name }) => name === table);
    if (shape === undefined) throw new Error(`unknown: ${table}`);
    const [gone = [], rows = [], fresh = []] = KINDS.map((kind) => {
      const count = left.shift() ?? 0;
      const found = Array.from({ length: count }, (): Record<string, unknown> => ({}));
      for (const { name, type } of packedColumns(shape, kind)) {
        const values = lists[type].splice(0, count);
        for (const [at, row] of found.entries()) row[name] = values[at];
      }
      return found;
    });
    return { table, gone, rows, fresh };
  });
  if (Object.values(lists).some(({ length }) => length > 0)) throw new Error("values are left");
  return unpacked;
}

function valuesOf(array: Buffer, read: (value: Buffer) => unknown): unknown[] {
  if (array.readInt32BE(0) === 0) return [];
  const values: unknown[] = [];
  let at = 20;
  for (let count = array.readInt32BE(12); count > 0; count--) {
    const length = array.readInt32BE(at);
    at += 4;
    values.push(length < 0 ? null : read(array.subarray(at, at + length)));
    at += Math.max(0, length);
  }
  return values;
}
