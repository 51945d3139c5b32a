// The CSV of kept rows: RFC 4180, oldest first, gaps left out, no cell a formula (decision D9, W-11).
import { stringify } from "csv-stringify/sync";
import { POLL_INTERVAL_MS } from "#base/limits.ts";
import { RING_COLUMNS, rounded, SHOWN_COLUMNS } from "./columns.ts";
import type { RowRange } from "./recent-hour.ts";

/** Rows of an export that are made before other work runs: about a millisecond. */
const CSV_ROWS_PER_PIECE = 200;

/** A node whose rows are exported. */
export interface ExportedNode {
  readonly id: string;
  readonly name: string;
  readonly range: RowRange;
}

/** A node's grade by a row's disk usage in percent and temperature in degrees Celsius (spec 3.2). */
export type GradeOf = (diskUsagePercent: number | null, cpuTempCelsius: number | null) => string;

/** The columns in order (decision D9). */
export const CSV_COLUMNS = [
  "timestamp_iso",
  "timestamp_unix",
  "node_id",
  "node_name",
  "status",
  "write_mbps",
  "read_mbps",
  "write_iops",
  "read_iops",
  "error_rate_pct",
  "op_latency_write_ms_p50",
  "op_latency_write_ms_p95",
  "op_latency_write_ms_p99",
  "op_latency_read_ms_p50",
  "op_latency_read_ms_p95",
  "op_latency_read_ms_p99",
  "active_connections",
  "disk_usage_percent",
  "cpu_temp_celsius",
] as const;

/** Columns of the ring in the order of the CSV, after its own five. */
const FIGURES = [
  "write_mbps",
  "read_mbps",
  "write_iops",
  "read_iops",
  "error_rate_pct",
  "p50_write_ms",
  "p95_write_ms",
  "p99_write_ms",
  "p50_read_ms",
  "p95_read_ms",
  "p99_read_ms",
  "active_connections",
  "disk_usage_percent",
  "cpu_temp_celsius",
].map((name) => RING_COLUMNS.findIndex((column) => column.name === name));

/** First characters that make a spreadsheet read a text as a formula. */
const FORMULA_START = /^[=+\-@\t\r\0]/;
const SLOT_SECONDS: number = POLL_INTERVAL_MS / 1_000;

/** Name of the file at a moment: `svc_performance_<YYYYMMDDTHHMMSSZ>.csv`. */
export function csvFileName(wallMs: number): string {
  return `svc_performance_${isoSeconds(wallMs).replaceAll(/[-:]/g, "")}.csv`;
}

/** A text as a cell: one that a spreadsheet would compute gets a leading quote (ASVS 1.2.10). */
export function textCell(text: string): string {
  return FORMULA_START.test(text) ? `'${text}` : text;
}

/**
 * The file in pieces of at most 200 rows. Gaps are left out, and rows that were dropped during the export.
 */
export function* performanceCsv(nodes: readonly ExportedNode[], gradeOf: GradeOf): Generator<string, void> {
  yield csvHead();
  yield* csvRows(nodes, gradeOf, SLOT_SECONDS);
}

/** The line with the names of the columns. */
export function csvHead(): string {
  return lines([CSV_COLUMNS]);
}

/** The rows alone, of slots of any length. */
export function* csvRows(
  nodes: readonly ExportedNode[],
  gradeOf: GradeOf,
  slotSeconds: number,
): Generator<string, void> {
  let first = Number.POSITIVE_INFINITY;
  let last = Number.NEGATIVE_INFINITY;
  for (const { range } of nodes) {
    if (range.lastSlot < range.firstSlot) continue;
    first = Math.min(first, range.firstSlot);
    last = Math.max(last, range.lastSlot);
  }
  const cells = nodes.map(({ id, name }) => [textCell(id), textCell(name)] as const);
  let rows: (readonly (string | number | null)[])[] = [];
  for (let slot = first; slot <= last; slot++) {
    const unix = slot * slotSeconds;
    const iso = isoSeconds(unix * 1_000);
    for (const [index, { range }] of nodes.entries()) {
      const figures = figuresOf(range, slot);
      if (figures === undefined) continue;
      const [id = "", name = ""] = cells[index] ?? [];
      const grade = gradeOf(figures.at(DISK) ?? null, figures.at(TEMPERATURE) ?? null);
      rows.push([iso, unix, id, name, grade, ...figures]);
      if (rows.length < CSV_ROWS_PER_PIECE) continue;
      yield lines(rows);
      rows = [];
    }
  }
  if (rows.length > 0) yield lines(rows);
}

/** Positions of these two columns, from the end. */
const DISK = -2;
const TEMPERATURE = -1;

/** The values of a row in the order of the CSV; undefined for a gap. */
function figuresOf(range: RowRange, slot: number): (number | null)[] | undefined {
  let isGap = true;
  for (let column = 0; column < SHOWN_COLUMNS && isGap; column++)
    isGap = Number.isNaN(range.at(column, slot));
  if (isGap) return undefined;
  return FIGURES.map((column) => {
    const value = range.at(column, slot);
    return Number.isNaN(value) ? null : rounded(value, RING_COLUMNS[column]?.decimals ?? 0);
  });
}

function lines(rows: readonly (readonly (string | number | null)[])[]): string {
  return stringify(rows as unknown[][], { record_delimiter: "windows" });
}

function isoSeconds(wallMs: number): string {
  return `${new Date(wallMs).toISOString().slice(0, 19)}Z`;
}
