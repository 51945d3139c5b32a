// One node: what state it is in and why, an hour of figures under one cursor, its alerts and facts.
import { Tabs } from "@mantine/core";
import type { ReactNode } from "react";
import { Link, useParams, useSearchParams } from "wouter";
import type { HistoryColumn, HistoryReply } from "#webapi/performance.ts";
import { useAlertList } from "../live/alerts.ts";
import { useCluster, useNowMs } from "../live/cluster.ts";
import type { LiveNode } from "../live/connection.ts";
import { columnOf, useHistory } from "../live/history.ts";
import { useIsOperator } from "../live/session.ts";
import { AlertTable } from "../parts/alert-table.tsx";
import { Chart, type ChartLimit } from "../parts/chart.tsx";
import { NodeUsers } from "../parts/node-users.tsx";
import { Failed, Nothing, Reading } from "../parts/page-state.tsx";
import { StateMark } from "../parts/state-mark.tsx";
import { reasonOf } from "../words/node-state.ts";
import { bytesText, percentText, plainNumber, UNKNOWN } from "../words/number.ts";
import { lastAndHighest } from "../words/summary.ts";
import { formatDaysUntil, formatMoment, formatSpan } from "../words/time.ts";

/** The page at "/nodes/:id". */
export function Page(): ReactNode {
  const { id } = useParams<{ id: string }>();
  const { cluster, isStale, error } = useCluster();
  if (cluster === undefined) {
    return error === null ? <Reading what="the node" /> : <Failed what="The node" error={error} />;
  }
  const node = cluster.nodes.find((candidate) => candidate.id === id);
  if (node === undefined) {
    return (
      <>
        <h1>There is no such node</h1>
        <p>
          No node of this cluster has the id “{id}”. It may have been gone for more than a day;{" "}
          <Link href="/nodes">see those that are there</Link>.
        </p>
      </>
    );
  }
  return (
    <div className={isStale ? "is-stale" : undefined}>
      <Headline node={node} />
      <Charts node={node} />
      <Details node={node} />
    </div>
  );
}

function Headline({ node }: { readonly node: LiveNode }): ReactNode {
  const isOperator = useIsOperator();
  const now = useNowMs() / 1_000;
  return (
    <>
      <h1>
        {node.name} <StateMark state={node.status} />
      </h1>
      <p>
        {sentence(reasonOf(node, now))}.
        {node.maintenance_until === undefined
          ? null
          : ` In maintenance until ${formatMoment(node.maintenance_until)}.`}
        {node.locked_by === undefined ? null : (
          <>
            {" "}
            Held by <Link href={`/actions/${encodeURIComponent(node.locked_by)}`}>an action</Link>.
          </>
        )}
      </p>
      {isOperator ? (
        <p style={{ display: "flex", gap: 16, flexWrap: "wrap" }}>
          <Link href={`/logs?node=${encodeURIComponent(node.id)}`}>Read its log</Link>
          <Link href="/actions">Run an action</Link>
          <Link href={`/audit?node=${encodeURIComponent(node.id)}`}>Its audit log</Link>
        </p>
      ) : null}
    </>
  );
}

function sentence(text: string): string {
  return text.charAt(0).toUpperCase() + text.slice(1);
}

interface Plan {
  readonly title: string;
  readonly unit: string;
  readonly top?: number;
  readonly limits?: readonly ChartLimit[];
  readonly lines: readonly (readonly [HistoryColumn, string, string, boolean?])[];
}

const PLANS: readonly Plan[] = [
  {
    title: "Throughput",
    unit: "MB/s",
    lines: [
      ["write_mbps", "Write", "--grove-accent"],
      ["read_mbps", "Read", "--grove-quiet", true],
    ],
  },
  {
    title: "Latency",
    unit: "ms",
    lines: [
      ["p95_write_ms", "p95 write", "--grove-accent"],
      ["p95_read_ms", "p95 read", "--grove-quiet", true],
      ["p99_write_ms", "p99 write", "--grove-warning"],
    ],
  },
  {
    title: "Disk",
    unit: "%",
    top: 100,
    limits: [
      { label: "warning above 80 %", value: 80 },
      { label: "critical above 95 %", value: 95 },
    ],
    lines: [["disk_usage_percent", "Disk", "--grove-accent"]],
  },
  {
    title: "Temperature",
    unit: "°C",
    top: 100,
    limits: [
      { label: "warning above 65 °C", value: 65 },
      { label: "critical above 85 °C", value: 85 },
    ],
    lines: [["cpu_temp_celsius", "Processor", "--grove-accent"]],
  },
  {
    title: "Processor and memory",
    unit: "%",
    top: 100,
    lines: [
      ["cpu_usage_percent", "Processor", "--grove-accent"],
      ["mem_usage_percent", "Memory", "--grove-quiet", true],
    ],
  },
];

function Charts({ node }: { readonly node: LiveNode }): ReactNode {
  const { history, error } = useHistory(node.id);
  if (history === undefined) {
    return error === null ? <Reading what="the last hour" /> : <Failed what="The last hour" error={error} />;
  }
  if (history.points.length < 2) {
    return (
      <Nothing>
        The console has only just begun to watch this node; its first figures are here in ten seconds.
      </Nothing>
    );
  }
  const times = columnOf(history, "ts").map((time) => time ?? 0);
  return (
    <section aria-label="The last hour" className="chart-grid">
      {PLANS.map((plan) => (
        <PlannedChart key={plan.title} plan={plan} history={history} times={times} node={node} />
      ))}
    </section>
  );
}

function PlannedChart({
  plan,
  history,
  times,
  node,
}: {
  readonly plan: Plan;
  readonly history: HistoryReply;
  readonly times: readonly number[];
  readonly node: LiveNode;
}): ReactNode {
  const lines = plan.lines.map(([column, label, color, isDashed]) => ({
    label,
    color,
    values: columnOf(history, column),
    ...(isDashed === true ? { isDashed } : {}),
  }));
  const sentences = lines.map(({ label, values }) => lastAndHighest(label, times, values, plan.unit));
  if (plan.title === "Disk" && node.disk_full_in_days !== undefined) {
    sentences.push(`full ${formatDaysUntil(node.disk_full_in_days)} at the pace of the last days`);
  }
  return (
    <Chart
      title={plan.title}
      unit={plan.unit}
      times={times}
      lines={lines}
      sentence={`${sentences.join("; ")}.`}
      {...(plan.top === undefined ? {} : { top: plan.top })}
      {...(plan.limits === undefined ? {} : { limits: plan.limits })}
    />
  );
}

function Details({ node }: { readonly node: LiveNode }): ReactNode {
  const isOperator = useIsOperator();
  const [search, setSearch] = useSearchParams();
  const tab = search.get("tab") ?? "alerts";
  return (
    <Tabs
      value={tab}
      onChange={(value) => setSearch(value === null ? {} : { tab: value }, { replace: true })}
      keepMounted={false}
    >
      <Tabs.List>
        <Tabs.Tab value="alerts">Alerts</Tabs.Tab>
        {isOperator ? <Tabs.Tab value="users">Users</Tabs.Tab> : null}
        <Tabs.Tab value="details">Details</Tabs.Tab>
      </Tabs.List>
      <Tabs.Panel value="alerts" pt="md">
        <NodeAlerts id={node.id} />
      </Tabs.Panel>
      {isOperator ? (
        <Tabs.Panel value="users" pt="md">
          <NodeUsers nodeId={node.id} />
        </Tabs.Panel>
      ) : null}
      <Tabs.Panel value="details" pt="md">
        <Facts node={node} />
      </Tabs.Panel>
    </Tabs>
  );
}

function NodeAlerts({ id }: { readonly id: string }): ReactNode {
  const { alerts, error } = useAlertList(new URLSearchParams({ node_id: id, limit: "100" }));
  if (alerts === undefined) {
    return error === null ? <Reading what="its alerts" /> : <Failed what="Its alerts" error={error} />;
  }
  if (alerts.length === 0) return <Nothing>No alert was raised for this node in the last 30 days.</Nothing>;
  return <AlertTable alerts={alerts} />;
}

function Facts({ node }: { readonly node: LiveNode }): ReactNode {
  const facts: readonly (readonly [string, ReactNode])[] = [
    ["Id", node.id],
    ...(node.address === undefined ? [] : ([["Address", node.address]] as const)),
    [
      "Version",
      `${node.version || UNKNOWN}${node.git_commit === null ? "" : ` (${node.git_commit.slice(0, 12)})`}`,
    ],
    ["Up", node.uptime_seconds === null ? UNKNOWN : formatSpan(node.uptime_seconds)],
    ["Started", node.last_restart_unix === null ? UNKNOWN : formatMoment(node.last_restart_unix)],
    [
      "Disk",
      `${bytesText(node.disk_used_bytes)} of ${bytesText(node.disk_total_bytes)}, ${bytesText(node.disk_free_bytes)} free`,
    ],
    ["Kept free", bytesText(node.reserve_bytes)],
    [
      "Memory",
      `${bytesText(node.mem_used_bytes)} of ${bytesText(node.mem_total_bytes)} (${percentText(node.mem_usage_percent)})`,
    ],
    ["Load", `${plainNumber(node.load_avg_1m)} over 1 min, ${plainNumber(node.load_avg_5m)} over 5 min`],
    ["Chunk files", node.chunk_count?.toLocaleString() ?? UNKNOWN],
    ["Connections", node.active_connections?.toLocaleString() ?? UNKNOWN],
    ["Certificate", node.cert_days_left === null ? "none" : `ends ${formatDaysUntil(node.cert_days_left)}`],
    [
      "Clock",
      node.clock_skew_ms === null
        ? UNKNOWN
        : `${plainNumber(node.clock_skew_ms / 1_000)} s off the MetaServer's`,
    ],
  ];
  return (
    <table className="table" style={{ maxWidth: 640 }}>
      <tbody>
        {facts.map(([name, value]) => (
          <tr key={name}>
            <th scope="row">{name}</th>
            <td>{value}</td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}
