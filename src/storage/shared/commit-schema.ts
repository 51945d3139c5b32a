// The functions of PostgreSQL that take a group of changes under the epochs of its roots.
import { noneDeparts } from "./departure-schema.ts";
import { FENCED, RENAMED } from "./fenced.ts";
import { packedColumns } from "./packed-rows.ts";
import { type ColumnType, SHARED_TABLES, type SharedTable, writesOf } from "./shared-tables.ts";
import { GIVEN_OUT, keyColumns } from "./table-rows.ts";

/** Takes the next batch of every root, in one order. No row may be of the time before a rename. */
const GUARD = `
    FOR at IN 1 .. cardinality(p_roots) LOOP
      UPDATE holding h SET last_batch = h.last_batch + 1, last_group = p_group
        WHERE h.root_number = p_roots[at] AND h.epoch = p_epochs[at] AND h.last_batch = p_batches[at] - 1;
      IF NOT FOUND THEN
        IF EXISTS (SELECT 1 FROM holding h WHERE h.root_number = p_roots[at] AND h.epoch = p_epochs[at]) THEN
          RAISE EXCEPTION 'another batch came between' USING ERRCODE = '40001';
        END IF;
        RAISE EXCEPTION 'another process holds the root' USING ERRCODE = '${FENCED}';
      END IF;
    END LOOP;
    -- A statement of its own: what a rename has marked before it gave the locks back is seen only by a new one.
    IF EXISTS (SELECT 1 FROM renamed_root r WHERE r.root_number = ANY (p_roots)) THEN
      RAISE EXCEPTION 'a person in these rows has another name now' USING ERRCODE = '${RENAMED}';
    END IF;`;

/** Nodes of before commit by it. */
export const COMMIT_BY_JSON = `
  CREATE OR REPLACE FUNCTION commit_group(
    p_group TEXT, p_roots BIGINT[], p_epochs BIGINT[], p_batches BIGINT[], p_tables TEXT[], p_gone JSON[], p_rows JSON[]
  ) RETURNS VOID LANGUAGE plpgsql AS $body$
  BEGIN
    ${GUARD}
    FOR at IN 1 .. cardinality(p_tables) LOOP
      CASE p_tables[at]
      ${SHARED_TABLES.map(writesOf).join("\n")}
      END CASE;
    END LOOP;
  END $body$;
`;

/** The array of a column's type, and the variable that counts what was taken from it. */
const ARRAYS: Readonly<Record<ColumnType, readonly [values: string, taken: string]>> = {
  BIGINT: ["p_numbers", "v_numbers"],
  TEXT: ["p_texts", "v_texts"],
  BYTEA: ["p_bytes", "v_bytes"],
};

/** PostgreSQL would plan the statements anew for each group, as the numbers of rows say that it pays. */
export const PLANNED_ONCE = "SET plan_cache_mode TO force_generic_plan";

/** Declares the variables of those branches. */
export const TAKEN = `v_count INTEGER;
    v_numbers INTEGER := 0;
    v_texts INTEGER := 0;
    v_bytes INTEGER := 0;`;

/** Where the values of a row lie: those of a type one after the other, behind what was taken. */
interface Place {
  /** The element of each column, where `r` has as much of each array as lies before the row. */
  readonly values: readonly string[];
  /** Columns of each type. */
  readonly widths: readonly (readonly [taken: string, width: number])[];
}

function placeOf(table: SharedTable, kind: Parameters<typeof packedColumns>[1], before: string): Place {
  const widths = new Map<string, number>();
  const values = packedColumns(table, kind).map(({ type }) => {
    const [array, taken] = ARRAYS[type];
    const at = (widths.get(taken) ?? 0) + 1;
    widths.set(taken, at);
    return `${array}[${before}${taken} + ${at}]`;
  });
  return { values, widths: [...widths] };
}

/** Takes `v_count` rows from the arrays by one statement that gets them as a list in FROM. */
function inserts(table: SharedTable, kind: "rows" | "fresh", conflict: string): string {
  const { values, widths } = placeOf(table, kind, "r.");
  const starts = widths.map(([taken, width]) => {
    return `generate_series(${taken}, ${taken} + (v_count - 1) * ${width}, ${width})`;
  });
  const names = table.columns.map(({ name }) => name).join(", ");
  return `WHEN '${table.name} ${kind}' THEN
        INSERT INTO ${table.name} (${names}) SELECT ${values.join(", ")}
          FROM ROWS FROM (${starts.join(", ")}) AS r (${widths.map(([taken]) => taken).join(", ")})${conflict};
        ${widths.map(([taken, width]) => `${taken} := ${taken} + v_count * ${width};`).join(" ")}`;
}

/** Row by row: of a list of keys PostgreSQL may expect so many that it looks through the whole table. */
function deletes(table: SharedTable): string {
  const { values, widths } = placeOf(table, "gone", "");
  const same = keyColumns(table).map((name, at) => `${name} = ${values[at]}`);
  return `WHEN '${table.name} gone' THEN
        FOR i IN 1 .. v_count LOOP
          DELETE FROM ${table.name} WHERE ${same.join(" AND ")};
          ${widths.map(([taken, width]) => `${taken} := ${taken} + ${width};`).join(" ")}
        END LOOP;`;
}

/** The branches of a table for steps as packed-rows.ts sends them, with the three arrays and `v_count`. */
function stepsOf(table: SharedTable): string {
  const { key, columns } = table;
  const set = columns.flatMap(({ name }) => (key.includes(name) ? [] : [`${name} = excluded.${name}`]));
  const conflict = set.length === 0 ? "NOTHING" : `UPDATE SET ${set.join(", ")}`;
  const branches = [
    inserts(table, "rows", ` ON CONFLICT (${key.join(", ")}) DO ${conflict}`),
    ...(GIVEN_OUT[table.name] === undefined ? [] : [inserts(table, "fresh", "")]),
    deletes(table),
  ];
  return branches.join("\n      ");
}

/** Takes all rows, with `p_steps` and `p_counts`. */
export function takeRows(tables: readonly SharedTable[]): string {
  return `FOR at IN 1 .. cardinality(p_steps) LOOP
      v_count := p_counts[at];
      CASE p_steps[at]
      ${tables.map(stepsOf).join("\n      ")}
      END CASE;
    END LOOP;`;
}

/** As packed-rows.ts sends them. A row that is said to be new and is there already refuses the group. */
export const COMMIT_ROWS = `
  CREATE FUNCTION commit_rows(
    p_group TEXT, p_roots BIGINT[], p_epochs BIGINT[], p_batches BIGINT[], p_steps TEXT[], p_counts INTEGER[],
    p_numbers BIGINT[], p_texts TEXT[], p_bytes BYTEA[]
  ) RETURNS VOID LANGUAGE plpgsql ${PLANNED_ONCE} AS $body$
  DECLARE
    ${TAKEN}
  BEGIN
    ${GUARD}
    ${noneDeparts("p_roots")}
    ${takeRows(SHARED_TABLES)}
  END $body$;
`;
