// The first screen: whether anything is wrong and what to do, in words; then the cluster in figures.
import { Button } from "@mantine/core";
import type { ReactNode } from "react";
import { Link } from "wouter";
import type { AlertRecord } from "#webapi/alert.ts";
import { useUnresolved } from "../live/alerts.ts";
import { type Cluster, useCluster, useNowMs } from "../live/cluster.ts";
import { ALL_NODES, useRecentRates } from "../live/recent-rates.ts";
import { NodeTable } from "../parts/node-table.tsx";
import { Failed, Nothing, Reading } from "../parts/page-state.tsx";
import { Sparkline } from "../parts/sparkline.tsx";
import { StateMark } from "../parts/state-mark.tsx";
import { byNeed } from "../words/node-state.ts";
import { bytesText, countText, percentText, rateText } from "../words/number.ts";
import { formatAgo, formatMoment } from "../words/time.ts";

const NEEDS_SHOWN = 8;

/** The page at "/". */
export function Page(): ReactNode {
  const { cluster, isStale, error } = useCluster();
  if (cluster === undefined) {
    return error === null ? <Reading what="the cluster" /> : <Failed what="The cluster" error={error} />;
  }
  return (
    <div className={isStale ? "is-stale" : undefined}>
      <Needs cluster={cluster} />
      <Totals cluster={cluster} />
      <h2>Nodes</h2>
      {cluster.nodes.length === 0 ? (
        <Nothing>
          No FileServer has registered yet. Start one with <code>grove fileserver</code>, pointed at this
          cluster's MetaServer; it appears here within ten seconds.
        </Nothing>
      ) : (
        <NodeTable nodes={[...cluster.nodes].sort(byNeed)} />
      )}
    </div>
  );
}

function Needs({ cluster }: { readonly cluster: Cluster }): ReactNode {
  const { alerts, error } = useUnresolved(NEEDS_SHOWN);
  const now = useNowMs() / 1_000;
  if (error !== null && alerts === undefined) return <Failed what="What needs you" error={error} />;
  if (alerts === undefined) return <Reading what="what needs you" />;
  const { nodes_total: total, nodes_online: online } = cluster.cluster;
  if (alerts.length === 0) {
    return (
      <section>
        <h1>{total === 0 ? "This cluster has no nodes yet" : "Nothing needs you"}</h1>
        {total === 0 ? null : (
          <p className="quiet" style={{ margin: 0 }}>
            {online === total
              ? `All ${countText(total, "node")} answer`
              : `${online} of ${countText(total, "node")} answer`}
            , and no alert is open.
          </p>
        )}
      </section>
    );
  }
  return (
    <section aria-labelledby="needs-title">
      <h1 id="needs-title">
        {alerts.length === NEEDS_SHOWN
          ? `${NEEDS_SHOWN} things or more need you`
          : countText(alerts.length, "thing needs you", "things need you")}
      </h1>
      <ul className="needs">
        {alerts.map((alert) => (
          <Need key={alert.id} alert={alert} now={now} />
        ))}
      </ul>
    </section>
  );
}

function Need({ alert, now }: { readonly alert: AlertRecord; readonly now: number }): ReactNode {
  const target = alert.node_id === undefined ? "/alerts" : `/nodes/${encodeURIComponent(alert.node_id)}`;
  return (
    <li>
      <StateMark state={alert.severity} />
      <span>{alert.message}</span>
      <span className="quiet" title={formatMoment(alert.timestamp)}>
        since {formatAgo(alert.timestamp, now)}
      </span>
      <Button
        className="end"
        component={Link}
        href={target}
        variant="default"
        size="compact-sm"
        aria-label={`Open ${alert.title}`}
      >
        Open
      </Button>
    </li>
  );
}

function Totals({ cluster }: { readonly cluster: Cluster }): ReactNode {
  const recent = useRecentRates().get(ALL_NODES) ?? [];
  const { cluster: sums, nodes } = cluster;
  const total = Number(sums.disk_total_bytes);
  const used = Number(sums.disk_used_bytes);
  const write = nodes.reduce((sum, node) => sum + (node.write_mbps ?? 0), 0);
  const read = nodes.reduce((sum, node) => sum + (node.read_mbps ?? 0), 0);
  const facts: readonly (readonly [string, ReactNode])[] = [
    ["Nodes", `${sums.nodes_online} of ${sums.nodes_total} online`],
    [
      "Capacity",
      `${bytesText(sums.disk_used_bytes)} of ${bytesText(sums.disk_total_bytes)} (${percentText(total === 0 ? 0 : (used / total) * 100)})`,
    ],
    ["Write", rateText(write)],
    ["Read", rateText(read)],
    ...(cluster.redacted ? [] : ([["Users", cluster.total_users.toLocaleString()]] as const)),
  ];
  return (
    <dl className="facts">
      {facts.map(([name, value]) => (
        <div className="fact" key={name}>
          <dt>{name}</dt>
          <dd>{value}</dd>
        </div>
      ))}
      {recent.length < 2 ? null : (
        <div className="fact">
          <dt>Last minutes</dt>
          <dd>
            <Sparkline
              values={recent}
              label={`Throughput of the last minutes, now ${rateText(write + read)}`}
            />
          </dd>
        </div>
      )}
    </dl>
  );
}
