// Actions on nodes: put one together and run it, and see what was run before.
import type { ReactNode } from "react";
import { Link } from "wouter";
import type { ActionRecord } from "#webapi/action-record.ts";
import { useActionHistory } from "../live/actions.ts";
import { ActionComposer } from "../parts/action-composer.tsx";
import { Failed, Nothing, Reading } from "../parts/page-state.tsx";
import { StateMark } from "../parts/state-mark.tsx";
import { ACTION_LABELS, shownState, stateText } from "../words/action.ts";
import { formatMoment, formatSpan } from "../words/time.ts";

/** The page at "/actions". */
export function Page(): ReactNode {
  const { records, error } = useActionHistory();
  return (
    <>
      <h1>Actions</h1>
      <ActionComposer />
      <h2>What was run</h2>
      {records === undefined ? (
        error === null ? (
          <Reading what="what was run" />
        ) : (
          <Failed what="What was run" error={error} />
        )
      ) : records.length === 0 ? (
        <Nothing>
          Nothing was run yet. Every action is kept here with who ran it, where, and what came of it.
        </Nothing>
      ) : (
        <Records records={records} />
      )}
    </>
  );
}

function Records({ records }: { readonly records: readonly ActionRecord[] }): ReactNode {
  return (
    <div className="table-scroll">
      <table className="table">
        <thead>
          <tr>
            <th scope="col">When</th>
            <th scope="col">What</th>
            <th scope="col">State</th>
            <th scope="col">Where</th>
            <th scope="col" className="number">
              Took
            </th>
            <th scope="col">Who</th>
          </tr>
        </thead>
        <tbody>
          {records.map((record) => (
            <tr key={record.id}>
              <th scope="row" style={{ fontSize: 14, color: "inherit", fontWeight: 500 }}>
                <Link href={`/actions/${encodeURIComponent(record.id)}`}>
                  {formatMoment(record.created_at)}
                </Link>
              </th>
              <td data-head="What">{ACTION_LABELS[record.action]}</td>
              <td data-head="State">
                <StateMark state={shownState(record.state)} label={stateText(record.state)} />
              </td>
              <td data-head="Where">{record.targets.map((target) => target.node_name).join(", ")}</td>
              <td data-head="Took" className="number">
                {record.finished_at === undefined ? "–" : formatSpan(record.finished_at - record.created_at)}
              </td>
              <td data-head="Who" className="quiet">
                {record.operator.session} from {record.operator.ip}
              </td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}
