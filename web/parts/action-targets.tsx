// What an action runs on each node, word for word, and what became of it.
import type { ReactNode } from "react";
import type { ActionRecord } from "#webapi/action-record.ts";
import { shownState, stateText } from "../words/action.ts";
import { formatSpan } from "../words/time.ts";
import { StateMark } from "./state-mark.tsx";

/** A row for each target. */
export function ActionTargets({ record }: { readonly record: ActionRecord }): ReactNode {
  return (
    <div className="table-scroll">
      <table className="table">
        <thead>
          <tr>
            <th scope="col">Node</th>
            <th scope="col">State</th>
            <th scope="col">Runs</th>
            <th scope="col" className="number">
              Exit code
            </th>
            <th scope="col" className="number">
              Took
            </th>
          </tr>
        </thead>
        <tbody>
          {record.targets.map((target) => (
            <tr key={target.node_id}>
              <th scope="row" style={{ fontSize: 14, color: "inherit" }}>
                {target.node_name}
              </th>
              <td data-head="State">
                <StateMark state={shownState(target.state)} label={stateText(target.state)} />
                {target.reason === undefined ? null : <div className="quiet">{target.reason}</div>}
                {target.git_before === undefined || target.git_after === undefined ? null : (
                  <div className="quiet">
                    {target.git_before.slice(0, 9)} → {target.git_after.slice(0, 9)}
                  </div>
                )}
              </td>
              <td data-head="Runs">
                <code style={{ overflowWrap: "anywhere" }}>{target.argv.join(" ")}</code>
              </td>
              <td data-head="Exit code" className="number">
                {target.exit_code ?? "–"}
              </td>
              <td data-head="Took" className="number">
                {target.started_at === undefined || target.finished_at === undefined
                  ? "–"
                  : formatSpan(target.finished_at - target.started_at)}
              </td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}
