// The nodes as a table: one row each with state, disk, temperature, load and throughput. Long lists are drawn as far as they are in sight.
import { memo, type ReactNode, useState } from "react";
import { Link } from "wouter";
import type { LiveNode } from "../live/connection.ts";
import { useRecentRates } from "../live/recent-rates.ts";
import { plainNumber, rateText, UNKNOWN } from "../words/number.ts";
import { formatSpan } from "../words/time.ts";
import { Sparkline } from "./sparkline.tsx";
import { StateMark } from "./state-mark.tsx";
import { Spacer, useTableWindow } from "./table-window.tsx";
import { UsageBar } from "./usage-bar.tsx";

/** A row for each node, in the order given. */
export function NodeTable({ nodes }: { readonly nodes: readonly LiveNode[] }): ReactNode {
  const [held, setHeld] = useState<readonly string[]>();
  const rows = inOrder(nodes, held);
  const { body, first, end, before, after, measure } = useTableWindow(rows.length);
  const hold = (): void => setHeld((before) => before ?? rows.map(({ id }) => id));
  const release = (): void => setHeld(undefined);
  const isOperator = nodes.some((node) => node.users_assigned_count !== undefined);
  const columns = isOperator ? 8 : 7;
  return (
    // What somebody points at stays where it is, until they have gone on.
    <div
      className="table-scroll"
      onPointerEnter={hold}
      onPointerLeave={release}
      onFocus={hold}
      onBlur={release}
    >
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
          <Spacer px={before} columns={columns} />
          {rows.slice(first, end).map((node, index) => (
            <Row key={node.id} node={node} index={first + index} measure={measure} isOperator={isOperator} />
          ))}
          <Spacer px={after} columns={columns} />
        </tbody>
      </table>
    </div>
  );
}

/** The nodes in an order that was held; new ones stand at the end. */
function inOrder(nodes: readonly LiveNode[], held: readonly string[] | undefined): readonly LiveNode[] {
  if (held === undefined) return nodes;
  const byId = new Map(nodes.map((node) => [node.id, node]));
  const kept = held.flatMap((id) => byId.get(id) ?? []);
  const known = new Set(held);
  return [...kept, ...nodes.filter(({ id }) => !known.has(id))];
}

const Row = memo(function Row({
  node,
  index,
  measure,
  isOperator,
}: {
  readonly node: LiveNode;
  readonly index: number;
  readonly measure: (row: Element | null) => void;
  readonly isOperator: boolean;
}): ReactNode {
  const recent = useRecentRates(node.id);
  const isOff = node.status === "offline";
  return (
    <tr
      ref={measure}
      data-index={index}
      aria-rowindex={index + 2}
      className={node.stale || isOff ? "is-stale" : undefined}
    >
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
          <Sparkline values={recent} label={`Throughput of ${node.name} over the last minutes`} />
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
});
