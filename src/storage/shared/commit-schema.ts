// The functions of PostgreSQL that take a group of changes under the epochs of its roots.
import { FENCED, RENAMED } from "./fenced.ts";
import { packedColumns } from "./packed-rows.ts";
import { type ColumnType, SHARED_TABLES, type SharedTable, writesOf } from "./shared-tables.ts";

/** Requires epoch and batch of every root, in one order, and that no row is of the time before a rename. */
const GUARD = `
    FOR held IN SELECT h.root_number, h.epoch, h.last_batch FROM holding h
      WHERE h.root_number = ANY (p_roots) ORDER BY h.root_number FOR UPDATE
    LOOP
      seen := seen + 1;
      IF held.root_number <> p_roots[seen] OR held.epoch <> p_epochs[seen] THEN
        RAISE EXCEPTION 'another process holds the root' USING ERRCODE = '${FENCED}';
      END IF;
      IF held.last_batch <> p_batches[seen] - 1 THEN
        RAISE EXCEPTION 'another batch came between' USING ERRCODE = '40001';
      END IF;
    END LOOP;
    IF seen <> cardinality(p_roots) THEN
      RAISE EXCEPTION 'the root is held by no process' USING ERRCODE = '${FENCED}';
    END IF;
    IF EXISTS (SELECT 1 FROM renamed_root r WHERE r.root_number = ANY (p_roots)) THEN
      RAISE EXCEPTION 'a person in these rows has another name now' USING ERRCODE = '${RENAMED}';
    END IF;
    UPDATE holding SET last_batch = last_batch + 1, last_group = p_group WHERE root_number = ANY (p_roots);`;

/** Nodes of before commit by it. */
export const COMMIT_BY_JSON = `
  CREATE OR REPLACE FUNCTION commit_group(
    p_group TEXT, p_roots BIGINT[], p_epochs BIGINT[], p_batches BIGINT[], p_tables TEXT[], p_gone JSON[], p_rows JSON[]
  ) RETURNS VOID LANGUAGE plpgsql AS $body$
  DECLARE
    held RECORD;
    seen INTEGER := 0;
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

/** Declares the variables of those branches. */
export const TAKEN = `v_count BIGINT;
    v_numbers BIGINT := 0;
    v_texts BIGINT := 0;
    v_bytes BIGINT := 0;`;

/** Takes `v_count` rows from the arrays by a statement that gets them as a list in FROM. */
function taking(
  table: SharedTable,
  kind: Parameters<typeof packedColumns>[1],
  statement: (from: string) => string,
): string {
  const taken: Record<ColumnType, number> = { BIGINT: 0, TEXT: 0, BYTEA: 0 };
  const columns = packedColumns(table, kind);
  const slices = columns.map(({ type }) => {
    const [values, before] = ARRAYS[type];
    const at = taken[type]++;
    return `${values}[${before} + ${at} * v_count + 1 : ${before} + ${at + 1} * v_count]`;
  });
  const moves = Object.entries(ARRAYS).flatMap(([type, [, before]]) => {
    const count = taken[type as ColumnType];
    return count === 0 ? [] : [`${before} := ${before} + ${count} * v_count;`];
  });
  const from = `unnest(${slices.join(", ")}) AS r (${columns.map(({ name }) => name).join(", ")})`;
  return `IF v_count > 0 THEN
          ${statement(from)};
          ${moves.join(" ")}
        END IF;`;
}

/**
 * The branch of a table in a function that takes rows as packed-rows.ts sends them, with `p_counts` and the three
 * arrays. What gives a name away comes first: rows that are gone, those that may be there, then those that are new.
 */
export function takesOf(table: SharedTable): string {
  const { name, key, columns } = table;
  const names = columns.map((column) => column.name);
  const set = names
    .filter((column) => !key.includes(column))
    .map((column) => `${column} = excluded.${column}`);
  const same = key.map((column) => `t.${column} = r.${column}`).join(" AND ");
  const insert = (from: string): string =>
    `INSERT INTO ${name} (${names.join(", ")}) SELECT ${names.map((column) => `r.${column}`).join(", ")} FROM ${from}`;
  const conflict = set.length === 0 ? "NOTHING" : `UPDATE SET ${set.join(", ")}`;
  return `WHEN '${name}' THEN
        v_count := p_counts[3 * at - 2];
        ${taking(table, "gone", (from) => `DELETE FROM ${name} t USING ${from} WHERE ${same}`)}
        v_count := p_counts[3 * at - 1];
        ${taking(table, "rows", (from) => `${insert(from)} ON CONFLICT (${key.join(", ")}) DO ${conflict}`)}
        v_count := p_counts[3 * at];
        ${taking(table, "fresh", insert)}`;
}

/** As packed-rows.ts sends them. A row that is said to be new and is there already refuses the group. */
export const COMMIT_PACKED = `
  CREATE FUNCTION commit_group(
    p_group TEXT, p_roots BIGINT[], p_epochs BIGINT[], p_batches BIGINT[], p_tables TEXT[], p_counts BIGINT[],
    p_numbers BIGINT[], p_texts TEXT[], p_bytes BYTEA[]
  ) RETURNS VOID LANGUAGE plpgsql AS $body$
  DECLARE
    held RECORD;
    seen INTEGER := 0;
    ${TAKEN}
  BEGIN
    ${GUARD}
    FOR at IN 1 .. cardinality(p_tables) LOOP
      CASE p_tables[at]
      ${SHARED_TABLES.map(takesOf).join("\n")}
      END CASE;
    END LOOP;
  END $body$;
`;
