// Alerts as a table: when, what, and how each ended.
import type { ReactNode } from "react";
import { Link } from "wouter";
import type { AlertRecord } from "#webapi/alert.ts";
import { plainNumber } from "../words/number.ts";
import { formatMoment, formatSpan } from "../words/time.ts";
import { StateMark } from "./state-mark.tsx";

/** A row for each alert; what `renderActions` gives stands at the end of each. */
export function AlertTable({
  alerts,
  renderActions,
}: {
  readonly alerts: readonly AlertRecord[];
  readonly renderActions?: (alert: AlertRecord) => ReactNode;
}): ReactNode {
  return (
    <div className="table-scroll">
      <table className="table">
        <thead>
          <tr>
            <th scope="col">Severity</th>
            <th scope="col">What</th>
            <th scope="col">Raised</th>
            <th scope="col">Ended</th>
            {renderActions === undefined ? null : <th scope="col">To do</th>}
          </tr>
        </thead>
        <tbody>
          {alerts.map((alert) => (
            <tr key={alert.id}>
              <td data-head="Severity">
                <StateMark state={alert.severity} />
              </td>
              <td>
                {alert.message}
                <Where alert={alert} />
              </td>
              <td data-head="Raised" style={{ whiteSpace: "nowrap" }}>
                {formatMoment(alert.timestamp)}
              </td>
              <td data-head="Ended" style={{ whiteSpace: "nowrap" }}>
                {endOf(alert)}
              </td>
              {renderActions === undefined ? null : <td>{renderActions(alert)}</td>}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

function Where({ alert }: { readonly alert: AlertRecord }): ReactNode {
  const facts: ReactNode[] = [];
  if (alert.node_id !== undefined) {
    facts.push(
      <Link key="node" href={`/nodes/${encodeURIComponent(alert.node_id)}`}>
        {alert.node_name ?? alert.node_id}
      </Link>,
    );
  }
  if (alert.value !== undefined && alert.threshold !== undefined) {
    facts.push(`value ${plainNumber(alert.value)}, limit ${plainNumber(alert.threshold)}`);
  }
  if (alert.raised_count > 1) facts.push(`raised ${alert.raised_count} times`);
  if (alert.acked_by !== undefined) facts.push(`acknowledged by ${alert.acked_by}`);
  if (facts.length === 0) return null;
  return (
    <div className="quiet" style={{ fontSize: 12 }}>
      {facts.map((fact, index) => (
        <span key={index}>
          {index === 0 ? "" : " · "}
          {fact}
        </span>
      ))}
    </div>
  );
}

function endOf(alert: AlertRecord): string {
  if (!alert.resolved) return "still open";
  if (alert.resolved_at === undefined) return "a record only";
  const span = formatSpan(alert.resolved_at - alert.timestamp);
  return alert.resolved_by === "operator" ? `resolved by hand after ${span}` : `after ${span}`;
}
