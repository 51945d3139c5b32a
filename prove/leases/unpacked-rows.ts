// Reads rows out of the arrays in which a commit brings them, as PostgreSQL's array_recv does.
import { packedColumns } from "#storage/shared/packed-rows.ts";
import type { ColumnType, SharedTable } from "#storage/shared/shared-tables.ts";

/** A table's rows of one step: keys of those that go, or whole ones. */
export interface UnpackedRows {
  readonly table: string;
  readonly gone: readonly Record<string, unknown>[];
  readonly rows: readonly Record<string, unknown>[];
  /** Those that must not be there yet. */
  readonly fresh: readonly Record<string, unknown>[];
}

const NONE = { gone: [], rows: [], fresh: [] } as const;

/** Unpacks the arguments of a commit. Throws for what packRows does not send. */
export function unpackRows(
  shapes: readonly SharedTable[],
  [steps, counts, numbers, texts, bytes]: readonly unknown[],
): UnpackedRows[] {
  const lists: Record<ColumnType, unknown[]> = {
    BIGINT: valuesOf(numbers as Buffer, (value) => Number(value.readBigInt64BE())),
    TEXT: valuesOf(texts as Buffer, (value) => value.toString("utf8")),
    BYTEA: valuesOf(bytes as Buffer, (value) => Buffer.from(value)),
  };
  const unpacked = (steps as readonly string[]).map((step, at) => {
    const [table = "", kind = ""] = step.split(" ");
    const shape = shapes.find(({ name }) => name === table);
    if (shape === undefined) throw new Error(`unknown: ${table}`);
    const columns = packedColumns(shape, kind as keyof typeof NONE);
    const rows = Array.from({ length: Number((counts as readonly number[])[at]) }, () =>
      Object.fromEntries(columns.map(({ name, type }) => [name, lists[type].shift()])),
    );
    return { table, ...NONE, [kind]: rows };
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
