// One node: its state and reason, an hour of charts under one cursor, its alerts and facts.
import { Button, Tabs } from "@mantine/core";
import { type ReactNode, type RefObject, useEffect, useRef, useState } from "react";
import { Link, useParams } from "wouter";
import type { HistoryReply } from "#wire/webapi/performance.ts";
import { useAddressSearch } from "../live/address-search.ts";
import { useAlertList } from "../live/alerts.ts";
import { useCluster, useNowMs } from "../live/cluster.ts";
import { columnOf, linesOf, type PlannedLine, useHistory } from "../live/history.ts";
import { useSpan } from "../live/long-history.ts";
import { useIsOperator } from "../live/session.ts";
import { useSilencing } from "../live/silencing.ts";
import { ActionRecords } from "../parts/action-records.tsx";
import { AlertTable } from "../parts/alert-table.tsx";
import { Chart } from "../parts/chart.tsx";
import type { ChartLimit } from "../parts/chart-limits.ts";
import { ZoomGroup } from "../parts/chart-zoom.tsx";
import { HowToEnrol } from "../parts/enrolment.tsx";
import { LogView } from "../parts/log-view.tsx";
import { LongHistoryCharts } from "../parts/long-history-charts.tsx";
import { MaintenanceButton } from "../parts/maintenance-button.tsx";
import { NodeUsers } from "../parts/node-users.tsx";
import { Nothing, Unread } from "../parts/page-state.tsx";
import { SilenceMenu } from "../parts/silence-menu.tsx";
import { SpanPicker } from "../parts/span-picker.tsx";
import { StateMark } from "../parts/state-mark.tsx";
import { bytesForUploads, inodesLeftText } from "../words/disk-room.ts";
import type { LiveNode } from "../words/live-node.ts";
import { maintenanceMeans, maintenanceText } from "../words/maintenance.ts";
import { isUnusualReserve, reasonOf, reserveText, stateOf } from "../words/node-state.ts";
import { bytesText, percentText, plainNumber, UNKNOWN } from "../words/number.ts";
import { OUT_OF_SERVICE } from "../words/root-move.ts";
import { sentence } from "../words/sentence.ts";
import { lastAndHighest } from "../words/summary.ts";
import { DISK_LIMITS, HEAT_LIMITS } from "../words/thresholds.ts";
import { formatDaysUntil, formatMoment, formatSpan } from "../words/time.ts";

/** The page at "/nodes/:id". */
export function Page(): ReactNode {
  const { id } = useParams<{ id: string }>();
  const { cluster, isStale, error } = useCluster();
  if (cluster === undefined) {
    return <Unread what="the node" error={error} />;
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
  const maintained = maintenanceText(node);
  return (
    <>
      <p className="crumb">
        <Link href="/nodes">Nodes</Link>
      </p>
      <div className="title-line">
        <h1>{node.name}</h1>
        <StateMark state={stateOf(node)} />
      </div>
      <p className="lead">
        {sentence(reasonOf(node, now))}
        {isUnusualReserve(node.reserve_bytes) ? ` It keeps free ${reserveText(node.reserve_bytes)}.` : null}
        {maintained === undefined ? null : ` ${sentence(maintained)} ${maintenanceMeans(node)}`}
        {node.drained === true ? ` ${OUT_OF_SERVICE}` : null}
        {node.locked_by === undefined ? null : (
          <>
            {" "}
            Held by <Link href={`/actions/${encodeURIComponent(node.locked_by)}`}>an action</Link>.
          </>
        )}
      </p>
      {isOperator ? (
        <>
          <ToDo node={node} />
          <HowToEnrol nodeIds={[node.id]} />
        </>
      ) : null}
    </>
  );
}

/** An operator's most frequent tasks on a node. */
function ToDo({ node }: { readonly node: LiveNode }): ReactNode {
  const [said, setSaid] = useState("");
  const silencing = useSilencing(({ ends_at: endsAt }) =>
    setSaid(`Nobody is told of alerts of this node until ${formatMoment(endsAt)}.`),
  );
  const id = encodeURIComponent(node.id);
  return (
    <div className="button-row">
      <Button component={Link} href={`/actions?do=restart&node=${id}`} variant="default" size="compact-sm">
        Restart …
      </Button>
      <Button component={Link} href={`/nodes/${id}?tab=users`} variant="default" size="compact-sm">
        Its users
      </Button>
      <Button component={Link} href={`/logs?node=${id}`} variant="default" size="compact-sm">
        Read its log
      </Button>
      <SilenceMenu
        of={node.name}
        isBusy={silencing.isBusy}
        onChoose={(endsAt) =>
          silencing.silence({
            matchers: [{ name: "node_id", value: node.id, is_regex: false }],
            endsAt,
            comment: node.name,
          })
        }
      />
      <MaintenanceButton node={node} />
      <Button component={Link} href={`/nodes/${id}/service`} variant="default" size="compact-sm">
        {node.drained === true ? "Out of service: see what is left" : "Take out of service …"}
      </Button>
      <Button component={Link} href={`/audit?node=${id}`} variant="default" size="compact-sm">
        Its audit log
      </Button>
      <span role="status">{said}</span>
      {silencing.error === null ? null : <span role="alert">{silencing.error.message}</span>}
    </div>
  );
}

interface Plan {
  readonly title: string;
  readonly unit: string;
  readonly top?: number;
  readonly limits?: readonly ChartLimit[];
  readonly lines: readonly PlannedLine[];
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
    limits: DISK_LIMITS,
    lines: [["disk_usage_percent", "Disk", "--grove-accent"]],
  },
  {
    title: "Temperature",
    unit: "°C",
    top: 100,
    limits: HEAT_LIMITS,
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
  const isHour = useSpan().name === "hour";
  return (
    <>
      <SpanPicker />
      {isHour ? <HourCharts node={node} /> : <LongHistoryCharts id={node.id} plans={PLANS} />}
    </>
  );
}

function HourCharts({ node }: { readonly node: LiveNode }): ReactNode {
  const { history, error } = useHistory(node.id);
  if (history === undefined) {
    return <Unread what="the last hour" error={error} />;
  }
  if (history.points.length < 2) {
    return (
      <Nothing>
        {node.last_seen === 0
          ? "This node has told no figures yet; they are here ten seconds after its first answer."
          : "The console has only just begun to watch this node; its first figures are here in ten seconds."}
      </Nothing>
    );
  }
  const times = columnOf(history, "ts").map((time) => time ?? 0);
  return (
    <ZoomGroup label="The last hour">
      {plansFor(history).map((plan) => (
        <PlannedChart key={plan.title} plan={plan} history={history} times={times} node={node} />
      ))}
    </ZoomGroup>
  );
}

/** Series without figures become sentences after the charts. */
function plansFor(history: HistoryReply): readonly Plan[] {
  const isEmpty = ({ lines }: Plan): boolean =>
    lines.every(([column]) => columnOf(history, column).every((value) => value === null));
  return [...PLANS.filter((plan) => !isEmpty(plan)), ...PLANS.filter(isEmpty)];
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
  const lines = linesOf(plan.lines, history);
  const sentences = lines.map(({ label, values }, index) =>
    lastAndHighest(index === 0 ? label : label.toLowerCase(), times, values, plan.unit),
  );
  if (plan.title === "Temperature" && lines[0]?.values.every((value) => value === null) === true) {
    sentences.splice(0, 1, "This machine tells none");
  }
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

/** Operators' tabs come first, since operators come for them. */
function Details({ node }: { readonly node: LiveNode }): ReactNode {
  const isOperator = useIsOperator();
  const { search, set } = useAddressSearch();
  const tabs: readonly (readonly [string, string, () => ReactNode])[] = [
    ...(isOperator ? ([["users", "Users", () => <NodeUsers nodeId={node.id} />]] as const) : []),
    ["alerts", "Alerts", () => <NodeAlerts id={node.id} />],
    ...(isOperator
      ? ([
          ["actions", "Actions", () => <ActionRecords nodeId={node.id} />],
          ["log", "Log", () => <LogView node={node.id} choice={{ search, set }} />],
        ] as const)
      : []),
    ["details", "Details", () => <Facts node={node} />],
  ];
  const wanted = search.get("tab");
  const tab = tabs.some(([value]) => value === wanted) ? wanted : "alerts";
  const box = useShownWhenNamed(wanted, useHistory(node.id).history !== undefined);
  return (
    <Tabs
      ref={box}
      className={wanted === null ? undefined : "node-tabs"}
      value={tab}
      onChange={(value) => set("tab", value)}
      keepMounted={false}
    >
      <Tabs.List>
        {tabs.map(([value, label]) => (
          <Tabs.Tab key={value} value={value}>
            {label}
          </Tabs.Tab>
        ))}
      </Tabs.List>
      {tabs.map(([value, , content]) => (
        <Tabs.Panel key={value} value={value} pt="md">
          {content()}
        </Tabs.Panel>
      ))}
    </Tabs>
  );
}

/** Scrolls to the tabs when the address names one, once the charts above have their height. */
function useShownWhenNamed(tab: string | null, isReady: boolean): RefObject<HTMLDivElement | null> {
  const box = useRef<HTMLDivElement>(null);
  useEffect(() => {
    if (tab === null || !isReady) return;
    // After the page has scrolled to its top.
    const frame = requestAnimationFrame(() => {
      const { top = 0 } = box.current?.getBoundingClientRect() ?? {};
      if (top < 0 || top > innerHeight / 2) box.current?.scrollIntoView({ block: "start" });
    });
    return () => cancelAnimationFrame(frame);
  }, [tab, isReady]);
  return box;
}

function NodeAlerts({ id }: { readonly id: string }): ReactNode {
  const { alerts, error } = useAlertList(new URLSearchParams({ node_id: id, limit: "100" }));
  if (alerts === undefined) {
    return <Unread what="its alerts" error={error} />;
  }
  if (alerts.length === 0) return <Nothing>No alert was raised for this node in the last 30 days.</Nothing>;
  return <AlertTable alerts={alerts} />;
}

/** Below a tenth of a second the clocks count as equal. */
function clockOffText(seconds: number): string {
  if (Math.abs(seconds) < 0.1) return "in step with the MetaServer's";
  return `${plainNumber(Math.abs(seconds))} s ${seconds > 0 ? "ahead of" : "behind"} the MetaServer's`;
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
      `${bytesText(node.disk_used_bytes)} of ${bytesText(node.disk_total_bytes)}, ${bytesText(node.disk_free_bytes)} free, ${bytesText(bytesForUploads(node)?.toString())} left for uploads`,
    ],
    ["Kept free", reserveText(node.reserve_bytes)],
    ["Inodes", inodesLeftText(node)],
    [
      "Memory",
      `${bytesText(node.mem_used_bytes)} of ${bytesText(node.mem_total_bytes)} (${percentText(node.mem_usage_percent)})`,
    ],
    ["Load", `${plainNumber(node.load_avg_1m)} over 1 min, ${plainNumber(node.load_avg_5m)} over 5 min`],
    ["Chunk files", node.chunk_count?.toLocaleString() ?? UNKNOWN],
    ["Connections", node.active_connections?.toLocaleString() ?? UNKNOWN],
    ["Certificate", node.cert_days_left === null ? "none" : `ends ${formatDaysUntil(node.cert_days_left)}`],
    ["Clock", node.clock_skew_ms === null ? UNKNOWN : clockOffText(node.clock_skew_ms / 1_000)],
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
