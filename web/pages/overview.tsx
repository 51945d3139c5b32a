// The overview: problems and next steps in words, then the cluster in figures.
import { type ReactNode, useMemo } from "react";
import { Link } from "wouter";
import type { AlertRecord } from "#wire/webapi/alert.ts";
import { useAlertSummary, useGravest } from "../live/alerts.ts";
import { type Cluster, useCluster, useNowMs } from "../live/cluster.ts";
import { useClusterRates } from "../live/recent-rates.ts";
import { useIsOperator } from "../live/session.ts";
import { useUserCount } from "../live/users.ts";
import { type Fact, FactList } from "../parts/fact-list.tsx";
import { MaintainedNodes } from "../parts/maintained-nodes.tsx";
import { NodeTable } from "../parts/node-table.tsx";
import { NoNodes, Unread } from "../parts/page-state.tsx";
import { Sparkline } from "../parts/sparkline.tsx";
import { StateMark } from "../parts/state-mark.tsx";
import { StepButtons } from "../parts/step-buttons.tsx";
import { furtherAlerts, nothingOpen } from "../words/alert.ts";
import { answeredText, calmTitle, isLate } from "../words/answers.ts";
import { allBytesForUploads, fillsFirst } from "../words/disk-room.ts";
import { isMaintained } from "../words/maintenance.ts";
import { nextSteps } from "../words/next-step.ts";
import { byNeed } from "../words/node-state.ts";
import { bytesText, countText, percentText, rateText } from "../words/number.ts";
import { formatMoment, formatSpan } from "../words/time.ts";

const NEEDS_SHOWN = 8;

/** The page at "/". */
export function Page(): ReactNode {
  const { cluster, isStale, error } = useCluster();
  const nodes = useMemo(() => [...(cluster?.nodes ?? [])].sort(byNeed), [cluster?.nodes]);
  if (cluster === undefined) {
    return <Unread what="the cluster" error={error} />;
  }
  return (
    <div className={isStale ? "is-stale" : undefined}>
      <Needs cluster={cluster} />
      <MaintainedNodes nodes={nodes} />
      {cluster.nodes.length === 0 ? null : <Totals cluster={cluster} />}
      <h2>Nodes</h2>
      {cluster.nodes.length === 0 ? <NoNodes /> : <NodeTable nodes={nodes} />}
    </div>
  );
}

function Needs({ cluster }: { readonly cluster: Cluster }): ReactNode {
  const { alerts, total: open, error } = useGravest(NEEDS_SHOWN);
  const summary = useAlertSummary();
  const further = furtherAlerts(summary?.for_operators);
  const now = useNowMs() / 1_000;
  if (alerts === undefined) return <Unread what="what needs you" error={error} />;
  const { nodes } = cluster;
  if (alerts.length === 0) {
    return (
      <section>
        <h1>{calmTitle(nodes)}</h1>
        {nodes.length === 0 ? (
          further !== undefined && <p className="quiet">{further}.</p>
        ) : (
          <p className="quiet" style={{ margin: 0 }}>
            {answeredText(nodes, now)}, and {nothingOpen(summary)}
            {further === undefined ? "" : `; ${further}`}.
          </p>
        )}
      </section>
    );
  }
  return (
    <section aria-labelledby="needs-title">
      <h1 id="needs-title">{countText(open, "thing needs you", "things need you")}</h1>
      <ul className="needs">
        {alerts.map((alert) => (
          <Need
            key={alert.id}
            alert={alert}
            now={now}
            isMaintained={nodes.some((node) => node.id === alert.node_id && isMaintained(node))}
          />
        ))}
      </ul>
      {open > alerts.length ? (
        <p>
          {alerts.length} are shown, the gravest first. <Link href="/alerts">All {open} alerts</Link>
        </p>
      ) : null}
      {nodes.some(isLate) ? <p className="quiet">{answeredText(nodes, now)}.</p> : null}
      {further === undefined ? null : <p className="quiet">{further}.</p>}
    </section>
  );
}

function Need({
  alert,
  now,
  isMaintained: isExpected,
}: {
  readonly alert: AlertRecord;
  readonly now: number;
  readonly isMaintained: boolean;
}): ReactNode {
  const isOperator = useIsOperator();
  return (
    <li>
      <StateMark state={alert.severity} />
      <span>
        {alert.message}{" "}
        <span className="quiet no-wrap" title={formatMoment(alert.timestamp)}>
          for {formatSpan(now - alert.timestamp)}
          {alert.acked_by === undefined ? "" : ", acknowledged"}
          {isExpected ? ", in maintenance" : ""}
        </span>
      </span>
      <span className="end button-row">
        <StepButtons alert={alert} steps={nextSteps(alert, isOperator)} />
      </span>
    </li>
  );
}

function Totals({ cluster }: { readonly cluster: Cluster }): ReactNode {
  const recent = useClusterRates();
  // Snapshots have no users.
  const users = useUserCount({ mayAsk: !cluster.redacted }) ?? cluster.total_users;
  const { cluster: sums, nodes } = cluster;
  // By the nodes' figures: a filesystem's space for root is neither used nor free.
  const free = nodes.reduce((sum, node) => sum + Number(node.disk_free_bytes ?? 0), 0);
  const used = Number(sums.disk_used_bytes);
  const write = nodes.reduce((sum, node) => sum + (node.write_mbps ?? 0), 0);
  const read = nodes.reduce((sum, node) => sum + (node.read_mbps ?? 0), 0);
  const share = percentText(used + free === 0 ? 0 : (used / (used + free)) * 100);
  const left = allBytesForUploads(nodes);
  const first = fillsFirst(nodes);
  const facts: readonly Fact[] = [
    ["Nodes", nodeCount(sums)],
    [
      "Capacity",
      `${bytesText(sums.disk_used_bytes)} of ${bytesText(used + free)} used (${share}), ${bytesText(left)} left for uploads`,
    ],
    [
      "Fills first",
      first.node === undefined ? (
        first.text
      ) : (
        <>
          <Link href={`/nodes/${encodeURIComponent(first.node.id)}?tab=users`}>{first.node.name}</Link>,{" "}
          {first.text}
        </>
      ),
    ],
    ["Write", rateText(write)],
    ["Read", rateText(read)],
    [
      "Last minutes",
      <Sparkline
        key="line"
        values={recent}
        label={`Throughput of the last minutes, now ${rateText(write + read)}`}
      />,
    ],
    ...(cluster.redacted ? [] : ([["Users", users.toLocaleString()]] as const)),
  ];
  return <FactList facts={facts} />;
}

/** "2 of 4 online, 1 unknown": unknown nodes count as neither online nor offline. */
function nodeCount({
  nodes_total: total,
  nodes_online: online,
  nodes_unknown: unknown,
}: Cluster["cluster"]): string {
  if (online === total) return `${total} online`;
  return `${online} of ${total} online${unknown === 0 ? "" : `, ${unknown} unknown`}`;
}
