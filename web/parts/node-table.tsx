// The nodes as a table: one row each with state, disk, temperature, load and throughput. Long lists are drawn as far as they are in sight.
import { useWindowVirtualizer } from "@tanstack/react-virtual";
import { type ReactNode, useLayoutEffect, useRef, useState } from "react";
import { Link } from "wouter";
import type { LiveNode } from "../live/connection.ts";
import { useRecentRates } from "../live/recent-rates.ts";
import { plainNumber, rateText, UNKNOWN } from "../words/number.ts";
import { formatSpan } from "../words/time.ts";
import { Sparkline } from "./sparkline.tsx";
import { StateMark } from "./state-mark.tsx";
import { UsageBar } from "./usage-bar.tsx";

const ROW_PX = 45;

/** A row for each node, in the order given. */
export function NodeTable({ nodes }: { readonly nodes: readonly LiveNode[] }): ReactNode {
  const body = useRef<HTMLTableSectionElement>(null);
  const [top, setTop] = useState(0);
  useLayoutEffect(() => setTop(body.current?.offsetTop ?? 0), []);
  const rows = useWindowVirtualizer({
    count: nodes.length,
    estimateSize: () => ROW_PX,
    overscan: 12,
    scrollMargin: top,
  });
  const shown = rows.getVirtualItems();
  const first = shown[0]?.index ?? 0;
  const last = shown.at(-1)?.index ?? -1;
  const isOperator = nodes.some((node) => node.users_assigned_count !== undefined);
  const columns = isOperator ? 8 : 7;
  return (
    <div className="table-scroll">
      <table className="table" aria-rowcount={nodes.length + 1}>
        <thead>
          <tr>
            <th scope="col">Node</th>
            <th scope="col">State</th>
            <th scope="col">Disk</th>
            <th scope="col" className="number">
              Temperature
            </th>
            <th scope="col" className="number">
              Load
            </th>
            <th scope="col">Write / read</th>
            {isOperator ? (
              <th scope="col" className="number">
                Users
              </th>
            ) : null}
            <th scope="col" className="number">
              Up
            </th>
          </tr>
        </thead>
        <tbody ref={body}>
          <Spacer rows={first} columns={columns} />
          {nodes.slice(first, last + 1).map((node, index) => (
            <Row key={node.id} node={node} rowIndex={first + index + 2} isOperator={isOperator} />
          ))}
          <Spacer rows={nodes.length - 1 - last} columns={columns} />
        </tbody>
      </table>
    </div>
  );
}

/** Stands for rows that are out of sight. */
function Spacer({ rows, columns }: { readonly rows: number; readonly columns: number }): ReactNode {
  if (rows <= 0) return null;
  return (
    <tr aria-hidden="true">
      <td colSpan={columns} style={{ height: rows * ROW_PX, padding: 0, border: 0 }} />
    </tr>
  );
}

function Row({
  node,
  rowIndex,
  isOperator,
}: {
  readonly node: LiveNode;
  readonly rowIndex: number;
  readonly isOperator: boolean;
}): ReactNode {
  const recent = useRecentRates().get(node.id) ?? [];
  const isOff = node.status === "offline";
  return (
    <tr aria-rowindex={rowIndex} className={node.stale || isOff ? "is-stale" : undefined}>
      <th scope="row" style={{ fontSize: 14, color: "inherit" }}>
        <Link href={`/nodes/${encodeURIComponent(node.id)}`}>{node.name}</Link>
      </th>
      <td data-head="State">
        <StateMark state={node.status} />
      </td>
      <td data-head="Disk" style={{ whiteSpace: "nowrap" }}>
        <UsageBar percent={node.disk_usage_percent} />
      </td>
      <td data-head="Temperature" className="number">
        {node.cpu_temp_celsius === null ? UNKNOWN : `${plainNumber(node.cpu_temp_celsius)} °C`}
      </td>
      <td data-head="Load" className="number">
        {plainNumber(node.load_avg_1m)}
      </td>
      <td data-head="Write / read">
        <span style={{ display: "flex", gap: 8, alignItems: "center" }}>
          {recent.length < 2 ? null : (
            <Sparkline values={recent} label={`Throughput of ${node.name} over the last minutes`} />
          )}
          <span className="number">
            {rateText(node.write_mbps)} / {rateText(node.read_mbps)}
          </span>
        </span>
      </td>
      {isOperator ? (
        <td data-head="Users" className="number">
          {node.users_assigned_count?.toLocaleString() ?? UNKNOWN}
        </td>
      ) : null}
      <td data-head="Up" className="number">
        {isOff || node.uptime_seconds === null ? UNKNOWN : formatSpan(node.uptime_seconds)}
      </td>
    </tr>
  );
}
