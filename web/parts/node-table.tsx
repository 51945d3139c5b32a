// The nodes as a table: state, disk, temperature, load and throughput. Only visible rows are drawn.
import { memo, type ReactNode } from "react";
import { Link } from "wouter";
import { useHeldRows } from "../live/held-rows.ts";
import { useRecentRates } from "../live/recent-rates.ts";
import { refusesUploads } from "../words/disk-room.ts";
import type { LiveNode } from "../words/live-node.ts";
import { stateOf } from "../words/node-state.ts";
import { bytesText, plainNumber, UNKNOWN } from "../words/number.ts";
import { formatDaysUntil, formatSpan } from "../words/time.ts";
import { HeldBox } from "./held-box.tsx";
import { Sparkline } from "./sparkline.tsx";
import { StateMark } from "./state-mark.tsx";
import { Spacer, useTableWindow } from "./table-window.tsx";
import { UsageBar } from "./usage-bar.tsx";

const idOf = ({ id }: LiveNode): string => id;

/** A row for each node, in the given order; rows under the pointer stay in place until it leaves. */
export function NodeTable({ nodes }: { readonly nodes: readonly LiveNode[] }): ReactNode {
  const held = useHeldRows(nodes, idOf);
  const { rows } = held;
  const { body, first, end, before, after, measure } = useTableWindow(rows.length);
  const isOperator = nodes.some((node) => node.users_assigned_count !== undefined);
  const columns = isOperator ? 9 : 8;
  return (
    <HeldBox held={held} className="table-scroll">
      <table className="table" aria-rowcount={nodes.length + 1}>
        <thead>
          <tr>
            <th scope="col">Node</th>
            <th scope="col">State</th>
            <th scope="col">Disk</th>
            <th scope="col" className="number">
              Temperature
            </th>
            <th scope="col" className="number roomy-only">
              Load
            </th>
            <th scope="col" className="number">
              Write / read
            </th>
            <th scope="col" className="roomy-only">
              Last minutes
            </th>
            {isOperator ? (
              <th scope="col" className="number">
                Users
              </th>
            ) : null}
            <th scope="col" className="number roomy-only">
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
    </HeldBox>
  );
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
      <th scope="row">
        <Link className="row-link" title={node.name} href={`/nodes/${encodeURIComponent(node.id)}`}>
          {node.name}
        </Link>
      </th>
      <td data-head="State">
        <StateMark state={stateOf(node)} />
        {node.drained === true ? <span className="quiet"> out of service</span> : null}
      </td>
      <td data-head="Disk" className="no-wrap">
        <span>
          <UsageBar percent={node.disk_usage_percent} />{" "}
          <span className="quiet spacious-only">
            {node.disk_free_bytes === null ? "" : `${bytesText(node.disk_free_bytes)} free`}
            {refusesUploads(node)
              ? ", refuses uploads"
              : node.disk_full_in_days === undefined
                ? ""
                : `, full ${formatDaysUntil(node.disk_full_in_days)}`}
          </span>
        </span>
      </td>
      <td data-head="Temperature" className="number">
        {node.cpu_temp_celsius === null ? UNKNOWN : `${plainNumber(node.cpu_temp_celsius)} °C`}
      </td>
      <td data-head="Load" className="number roomy-only">
        {plainNumber(node.load_avg_1m)}
      </td>
      <td data-head="Write / read" className="number">
        {writeRead(node)}
      </td>
      <td data-head="Last minutes" className="roomy-only">
        <Sparkline values={recent} label={`Throughput of ${node.name} over the last minutes`} />
      </td>
      {isOperator ? (
        <td data-head="Users" className="number">
          {node.users_assigned_count?.toLocaleString() ?? UNKNOWN}
        </td>
      ) : null}
      <td data-head="Up" className="number roomy-only">
        {isOff || node.uptime_seconds === null ? UNKNOWN : formatSpan(node.uptime_seconds)}
      </td>
    </tr>
  );
});

/** "80 / 11 MB/s": both in one unit. */
function writeRead({ write_mbps: write, read_mbps: read }: LiveNode): string {
  return write === null && read === null ? UNKNOWN : `${plainNumber(write)} / ${plainNumber(read)} MB/s`;
}
