// Past alerts as a table: time, text and end.
import type { ReactNode } from "react";
import { Link } from "wouter";
import type { AlertRecord } from "#wire/webapi/alert.ts";
import { measureText } from "../words/alert.ts";
import { formatMoment, formatSpan } from "../words/time.ts";
import { HeldTable } from "./held-box.tsx";
import { StateMark } from "./state-mark.tsx";

const idOf = ({ id }: AlertRecord): string => id;

/** A row for each alert. */
export function AlertTable({ alerts }: { readonly alerts: readonly AlertRecord[] }): ReactNode {
  return (
    <HeldTable
      rows={alerts}
      idOf={idOf}
      head={
        <>
          <th scope="col">Severity</th>
          <th scope="col">What</th>
          <th scope="col">Raised</th>
          <th scope="col">Ended</th>
        </>
      }
    >
      {(alert) => (
        <>
          <td data-head="Severity">
            <StateMark state={alert.severity} />
          </td>
          <td className="whole-line">
            {alert.message}
            <Where alert={alert} />
          </td>
          <td data-head="Raised" className="moment">
            {formatMoment(alert.timestamp)}
          </td>
          <td data-head="Ended" className="moment">
            {endOf(alert)}
          </td>
        </>
      )}
    </HeldTable>
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
  const value = measureText(alert.type, alert.value);
  const limit = measureText(alert.type, alert.threshold);
  if (value !== undefined && limit !== undefined) facts.push(`value ${value}, limit ${limit}`);
  if (alert.raised_count > 1) facts.push(`raised ${alert.raised_count} times`);
  if (alert.acked_by !== undefined) facts.push(`acknowledged by ${alert.acked_by}`);
  if (facts.length === 0) return null;
  return (
    <div className="quiet small">
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
