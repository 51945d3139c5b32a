// The cluster's performance: sums with an hour of history, then all nodes, sortable and as CSV.
import { Button } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { memo, type ReactNode, useMemo } from "react";
import { Link, useSearchParams } from "wouter";
import type { PerformanceReply } from "#wire/webapi/performance.ts";
import { call } from "../live/api.ts";
import { columnOf, useHistory } from "../live/history.ts";
import { useSpan } from "../live/long-history.ts";
import { Chart } from "../parts/chart.tsx";
import { ZoomGroup } from "../parts/chart-zoom.tsx";
import { FactList } from "../parts/fact-list.tsx";
import { type ChartPlan, LongHistoryCharts } from "../parts/long-history-charts.tsx";
import { NoNodes, Nothing, Unread } from "../parts/page-state.tsx";
import { SpanPicker } from "../parts/span-picker.tsx";
import { StateMark } from "../parts/state-mark.tsx";
import { Spacer, useTableWindow } from "../parts/table-window.tsx";
import { stateOf } from "../words/node-state.ts";
import { plainNumber } from "../words/number.ts";
import { lastAndHighest } from "../words/summary.ts";

type Row = PerformanceReply["nodes"][number];
/** The fields with a column. */
type Field = Exclude<keyof Row, "unknown">;

const COLUMNS: readonly (readonly [Field, string])[] = [
  ["node_name", "Node"],
  ["status", "State"],
  ["write_mbps", "Write MB/s"],
  ["read_mbps", "Read MB/s"],
  ["write_iops", "Writes/s"],
  ["read_iops", "Reads/s"],
  ["error_rate_pct", "Errors %"],
  ["op_latency_write_ms_p50", "Write p50 ms"],
  ["op_latency_write_ms_p95", "Write p95 ms"],
  ["op_latency_write_ms_p99", "Write p99 ms"],
  ["op_latency_read_ms_p50", "Read p50 ms"],
  ["op_latency_read_ms_p95", "Read p95 ms"],
  ["op_latency_read_ms_p99", "Read p99 ms"],
  ["active_connections", "Connections"],
];

/** Columns hidden at a tablet's width. */
const ROOMY: readonly Field[] = [
  "write_iops",
  "read_iops",
  "op_latency_write_ms_p50",
  "op_latency_read_ms_p50",
  "active_connections",
];

const HEADS = new Map<Field, string>(COLUMNS);

/** The page at "/performance". */
export function Page(): ReactNode {
  const query = useQuery({
    queryKey: ["performance"],
    queryFn: ({ signal }) => call<PerformanceReply>("/api/performance", { signal }),
    refetchInterval: 5_000,
  });
  const { data } = query;
  if (data === undefined) {
    return <Unread what="the figures" error={query.error} />;
  }
  return (
    <>
      <h1>Performance</h1>
      <p className="quiet">
        Rates of the last polls; MB are 10⁶ bytes. Percentiles are of each node's last 1024 operations.
      </p>
      {data.nodes.length === 0 ? <NoNodes /> : <Figures data={data} />}
    </>
  );
}

const LONG_HISTORY_PLANS: readonly ChartPlan[] = [
  {
    title: "Throughput of all nodes",
    unit: "MB/s",
    lines: [
      ["write_mbps", "Write", "--grove-accent"],
      ["read_mbps", "Read", "--grove-quiet", true],
    ],
  },
  {
    title: "Latency of the worst node",
    unit: "ms",
    lines: [
      ["p95_write_ms", "p95 write", "--grove-accent"],
      ["p95_read_ms", "p95 read", "--grove-quiet", true],
    ],
  },
  { title: "Errors", unit: "%", lines: [["error_rate_pct", "Errors", "--grove-accent"]] },
];

function Figures({ data }: { readonly data: PerformanceReply }): ReactNode {
  return (
    <>
      <FactList
        facts={[
          ["Write", `${plainNumber(data.cluster_write_mbps)} MB/s`],
          ["Read", `${plainNumber(data.cluster_read_mbps)} MB/s`],
          ["Writes", `${plainNumber(data.cluster_write_iops)}/s`],
          ["Reads", `${plainNumber(data.cluster_read_iops)}/s`],
          ["Errors", `${plainNumber(data.cluster_error_rate_pct)} %`],
        ]}
      />
      <SpanPicker />
      {useSpan().name === "hour" ? (
        <ClusterCharts />
      ) : (
        <LongHistoryCharts id="cluster" plans={LONG_HISTORY_PLANS} />
      )}
      <h2>Nodes</h2>
      <Button component="a" href="/api/performance/export" download variant="default" size="xs" mb="sm">
        Download the last hour as CSV
      </Button>
      <NodeRows rows={data.nodes} />
    </>
  );
}

function ClusterCharts(): ReactNode {
  const { history, error } = useHistory("cluster");
  if (history === undefined) return <Unread what="the last hour" error={error} />;
  if (history.points.length < 2) return <Nothing>The first figures are here in ten seconds.</Nothing>;
  const times = columnOf(history, "ts").map((time) => time ?? 0);
  const write = columnOf(history, "write_mbps");
  const read = columnOf(history, "read_mbps");
  const p95 = columnOf(history, "p95_write_ms");
  const p95Read = columnOf(history, "p95_read_ms");
  return (
    <ZoomGroup label="The last hour">
      <Chart
        title="Throughput of all nodes"
        unit="MB/s"
        times={times}
        lines={[
          { label: "Write", values: write, color: "--grove-accent" },
          { label: "Read", values: read, color: "--grove-quiet", isDashed: true },
        ]}
        sentence={`${lastAndHighest("Write", times, write, "MB/s")}; ${lastAndHighest("read", times, read, "MB/s")}.`}
      />
      <Chart
        title="Latency of the worst node"
        unit="ms"
        times={times}
        lines={[
          { label: "p95 write", values: p95, color: "--grove-accent" },
          { label: "p95 read", values: p95Read, color: "--grove-quiet", isDashed: true },
        ]}
        sentence={`${lastAndHighest("p95 write", times, p95, "ms")}; ${lastAndHighest("p95 read", times, p95Read, "ms")}.`}
      />
    </ZoomGroup>
  );
}

function NodeRows({ rows }: { readonly rows: readonly Row[] }): ReactNode {
  const [search, setSearch] = useSearchParams();
  const by = COLUMNS.find(([field]) => field === search.get("sort"))?.[0] ?? "node_name";
  const isDown = search.get("down") === "1";
  const sorted = useMemo(
    () => [...rows].sort((a, b) => (isDown ? -1 : 1) * compare(a[by], b[by])),
    [rows, by, isDown],
  );
  const { body, first, end, before, after, measure } = useTableWindow(sorted.length);
  const choose = (field: Field): void =>
    setSearch({ sort: field, ...(field === by && !isDown ? { down: "1" } : {}) }, { replace: true });
  return (
    <div className="table-scroll">
      <table className="table dense" aria-rowcount={sorted.length + 1}>
        <thead>
          <tr>
            {COLUMNS.map(([field, label]) => (
              <th
                key={field}
                scope="col"
                className={field === "node_name" || field === "status" ? undefined : numberClass(field)}
                aria-sort={field === by ? (isDown ? "descending" : "ascending") : "none"}
              >
                <button type="button" className="sort-button" onClick={() => choose(field)}>
                  {label}
                  {field === by ? (isDown ? " ↓" : " ↑") : ""}
                </button>
              </th>
            ))}
          </tr>
        </thead>
        <tbody ref={body}>
          <Spacer px={before} columns={COLUMNS.length} />
          {sorted.slice(first, end).map((row, index) => (
            <NodeRow key={row.node_id} row={row} index={first + index} measure={measure} />
          ))}
          <Spacer px={after} columns={COLUMNS.length} />
        </tbody>
      </table>
    </div>
  );
}

const NodeRow = memo(function NodeRow({
  row,
  index,
  measure,
}: {
  readonly row: Row;
  readonly index: number;
  readonly measure: (row: Element | null) => void;
}): ReactNode {
  return (
    <tr ref={measure} data-index={index} aria-rowindex={index + 2}>
      {COLUMNS.map(([field]) => (
        <Cell key={field} row={row} field={field} />
      ))}
    </tr>
  );
});

function Cell({ row, field }: { readonly row: Row; readonly field: Field }): ReactNode {
  if (field === "node_name") {
    return (
      <th scope="row">
        <Link className="row-link" title={row.node_name} href={`/nodes/${encodeURIComponent(row.node_id)}`}>
          {row.node_name}
        </Link>
      </th>
    );
  }
  if (field === "status") {
    return (
      <td data-head="State">
        <StateMark state={stateOf(row)} />
      </td>
    );
  }
  const value = row[field];
  return (
    <td data-head={HEADS.get(field)} className={numberClass(field)}>
      {typeof value === "number" ? plainNumber(value) : "–"}
    </td>
  );
}

function numberClass(field: Field): string {
  return ROOMY.includes(field) ? "number roomy-only" : "number";
}

const NAMES = new Intl.Collator(undefined, { numeric: true });

/** Unknown values come last in ascending order. */
function compare(a: string | number | null, b: string | number | null): number {
  if (typeof a === "string" && typeof b === "string") return NAMES.compare(a, b);
  return (
    (typeof a === "number" ? a : Number.POSITIVE_INFINITY) -
      (typeof b === "number" ? b : Number.POSITIVE_INFINITY) || 0
  );
}
