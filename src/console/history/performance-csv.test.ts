// Tests of the CSV: RFC 4180 by an independent reader, escaped formulas, gaps, order (decision D9, W-11).
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import fc from "fast-check";
import { RING_COLUMNS } from "./columns.ts";
import { CSV_COLUMNS, csvFileName, type ExportedNode, performanceCsv, textCell } from "./performance-csv.ts";

const SLOT = 358_000_000;
const HEADER =
  "timestamp_iso,timestamp_unix,node_id,node_name,status,write_mbps,read_mbps,write_iops,read_iops,error_rate_pct," +
  "op_latency_write_ms_p50,op_latency_write_ms_p95,op_latency_write_ms_p99,op_latency_read_ms_p50,op_latency_read_ms_p95," +
  "op_latency_read_ms_p99,active_connections,disk_usage_percent,cpu_temp_celsius";

const ROW: Readonly<Record<string, number>> = {
  write_mbps: 1.5,
  read_mbps: 2,
  write_iops: 3,
  read_iops: 4,
  error_rate_pct: 5,
  disk_usage_percent: 55.5,
  cpu_temp_celsius: -3.5,
  cpu_usage_percent: 99,
  mem_usage_percent: 98,
  active_connections: 7,
  p50_write_ms: 11,
  p95_write_ms: 12,
  p99_write_ms: 13,
  p50_read_ms: 14,
  p95_read_ms: 15,
  p99_read_ms: 16,
  ops: 97,
};

function node(id: string, name: string, slots: readonly number[], row = ROW): ExportedNode {
  const at = (column: number, slot: number): number =>
    slots.includes(slot) ? (row[RING_COLUMNS[column]?.name ?? ""] ?? Number.NaN) : Number.NaN;
  return { id, name, range: { firstSlot: Math.min(...slots), lastSlot: Math.max(...slots), at } };
}

const text = (...nodes: readonly ExportedNode[]): string =>
  [...performanceCsv(nodes, () => "online")].join("");

/** A reader of RFC 4180, independent of the writer. */
function parse(csv: string): string[][] {
  const rows: string[][] = [];
  let cells: string[] = [];
  let index = 0;
  while (index < csv.length) {
    let cell = "";
    if (csv[index] === '"') {
      index++;
      while (csv[index] !== '"' || csv[index + 1] === '"') {
        if (csv[index] === '"') index++;
        cell += csv[index];
        index++;
      }
      index++;
    } else {
      while (index < csv.length && csv[index] !== "," && !csv.startsWith("\r\n", index)) {
        cell += csv[index];
        index++;
      }
    }
    cells.push(cell);
    if (csv[index] === ",") {
      index++;
      continue;
    }
    assert.ok(csv.startsWith("\r\n", index), "every row ends in CRLF");
    index += 2;
    rows.push(cells);
    cells = [];
  }
  return rows;
}

describe("CSV of the kept rows", () => {
  it("has the header of D9, and a row for each kept snapshot with its figures in their places", () => {
    assert.equal(CSV_COLUMNS.join(","), HEADER);
    assert.equal(
      text(node("n1", "one", [SLOT])),
      `${HEADER}\r\n2026-09-21T14:13:20Z,1790000000,n1,one,online,1.5,2,3,4,5,11,12,13,14,15,16,7,55.5,-3.5\r\n`,
    );
  });

  it("without rows is the header alone", () => {
    assert.equal(text(), `${HEADER}\r\n`);
  });

  it("the oldest come first, nodes side by side, gaps left out", () => {
    const rows = parse(text(node("a", "a", [SLOT, SLOT + 2]), node("b", "b", [SLOT + 1, SLOT + 2])));
    assert.deepEqual(
      rows.slice(1).map(([, unix, id]) => [Number(unix) / 5 - SLOT, id]),
      [
        [0, "a"],
        [1, "b"],
        [2, "a"],
        [2, "b"],
      ],
    );
  });

  it("what is not known is an empty cell; a number below zero stays a number", () => {
    const cells = parse(text(node("a", "a", [SLOT], { cpu_temp_celsius: -40 })))[1] ?? [];
    assert.deepEqual(cells.slice(5), [...Array.from({ length: 13 }, () => ""), "-40"]);
  });

  it("the status is what the row's disk and temperature make it", () => {
    const seen: unknown[] = [];
    const pieces = performanceCsv([node("a", "a", [SLOT])], (...graded) => {
      seen.push(graded);
      return "warning";
    });
    assert.match([...pieces].join(""), /,a,a,warning,/);
    assert.deepEqual(seen, [[55.5, -3.5]]);
  });

  it("names that would be formulas get a quote before them, and others are left alone", () => {
    for (const start of ["=", "+", "-", "@", "\t", "\r", "\0"])
      assert.equal(textCell(`${start}1+1`), `'${start}1+1`);
    for (const plain of ["fs-pi4", "a=b", " =1", "'=1", "", "1"]) assert.equal(textCell(plain), plain);
  });

  it("whatever a node is called, another reader gets it back, or with one quote before it", () => {
    const name = fc.oneof(
      fc.string(),
      fc.string({ unit: fc.constantFrom('"', ",", "\r", "\n", "=", "a", " ", "é", "\0", "'") }),
    );
    fc.assert(
      fc.property(name, name, (id, called) => {
        const rows = parse(text(node(id, called, [SLOT])));
        assert.equal(rows.length, 2);
        assert.equal(rows[1]?.length, CSV_COLUMNS.length);
        assert.deepEqual(rows[1]?.slice(2, 4), [textCell(id), textCell(called)]);
        for (const cell of rows[1]?.slice(2, 4) ?? []) assert.doesNotMatch(cell, /^[=+\-@\t\r\0]/);
      }),
    );
  });

  it("comes in pieces of at most 200 rows", () => {
    const slots = Array.from({ length: 500 }, (_, index) => SLOT + index);
    const pieces = [...performanceCsv([node("a", "a", slots)], () => "online")];
    assert.deepEqual(
      pieces.map((piece) => piece.split("\r\n").length - 1),
      [1, 200, 200, 100],
    );
  });

  it("is named for its moment", () => {
    assert.equal(csvFileName(1_790_000_000_999), "svc_performance_20260921T141320Z.csv");
  });
});
