// The history of actions, newest first: time, kind, nodes and outcome.
import type { ReactNode } from "react";
import { Link } from "wouter";
import type { ActionRecord } from "#wire/webapi/action-record.ts";
import { useActionHistory } from "../live/actions.ts";
import { ACTION_LABELS, isDryRun, shownState, stateText } from "../words/action.ts";
import { formatMoment, formatSpan } from "../words/time.ts";
import { HeldTable } from "./held-box.tsx";
import { Nothing, Unread } from "./page-state.tsx";
import { StateMark } from "./state-mark.tsx";

const idOf = ({ id }: ActionRecord): string => id;
const NAMES_SHOWN = 4;

/** The history; of one node if its id is given. */
export function ActionRecords({ nodeId }: { readonly nodeId?: string }): ReactNode {
  const { records, error } = useActionHistory();
  if (records === undefined) {
    return <Unread what="what was run" error={error} />;
  }
  const shown =
    nodeId === undefined
      ? records
      : records.filter(({ targets }) => targets.some((target) => target.node_id === nodeId));
  return shown.length === 0 ? (
    <Nothing>
      Nothing was run {nodeId === undefined ? "yet" : "on this node yet"}. Every action is kept here with who
      ran it, where, and what came of it.
    </Nothing>
  ) : (
    <Records records={shown} />
  );
}

function Records({ records }: { readonly records: readonly ActionRecord[] }): ReactNode {
  return (
    <HeldTable
      rows={records}
      idOf={idOf}
      head={
        <>
          <th scope="col">What</th>
          <th scope="col">State</th>
          <th scope="col">Where</th>
          <th scope="col">When</th>
          <th scope="col" className="number">
            Took
          </th>
          <th scope="col" className="roomy-only">
            Who
          </th>
        </>
      }
    >
      {(record) => (
        <>
          <th scope="row">
            <Link className="row-link is-whole" href={`/actions/${encodeURIComponent(record.id)}`}>
              {ACTION_LABELS[record.action]}
            </Link>
          </th>
          <td data-head="State">
            {isDryRun(record) ? (
              <StateMark state="info" label="only shown, not run" />
            ) : (
              <StateMark state={shownState(record.state)} label={stateText(record.state)} />
            )}
          </td>
          <td data-head="Where" className="subject">
            {namesText(record)}
          </td>
          <td data-head="When" className="moment">
            {formatMoment(record.created_at)}
          </td>
          <td data-head="Took" className="number">
            {record.finished_at === undefined || isDryRun(record)
              ? "–"
              : formatSpan(record.finished_at - record.created_at)}
          </td>
          <td data-head="Who" className="quiet roomy-only">
            {record.operator.session} from {record.operator.ip}
          </td>
        </>
      )}
    </HeldTable>
  );
}

function namesText({ targets }: ActionRecord): string {
  const names = targets.slice(0, NAMES_SHOWN).map((target) => target.node_name);
  const rest = targets.length - names.length;
  return `${names.join(", ")}${rest > 0 ? ` and ${rest} more` : ""}`;
}
