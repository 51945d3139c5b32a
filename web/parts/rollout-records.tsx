// Rollouts that were run, the newest first.
import type { ReactNode } from "react";
import { Link } from "wouter";
import type { RolloutRecord } from "#webapi/rollout.ts";
import { useHeldRows } from "../live/held-rows.ts";
import { useRollouts } from "../live/rollouts.ts";
import { progressText, rolloutState, rolloutTitle } from "../words/rollout.ts";
import { formatMoment } from "../words/time.ts";
import { NewRows } from "./new-rows.tsx";
import { Failed, Nothing, Reading } from "./page-state.tsx";
import { StateMark } from "./state-mark.tsx";

const NONE: readonly RolloutRecord[] = [];
const idOf = ({ id }: RolloutRecord): string => id;

/** The list. */
export function RolloutRecords(): ReactNode {
  const { rollouts, error } = useRollouts();
  const { rows, waiting, showNew, holder } = useHeldRows(rollouts ?? NONE, idOf);
  if (rollouts === undefined) {
    return error === null ? <Reading what="the rollouts" /> : <Failed what="The rollouts" error={error} />;
  }
  if (rows.length === 0) {
    return <Nothing>Nothing was rolled out yet. Every rollout is kept here with what came of it.</Nothing>;
  }
  return (
    <div className="table-scroll held" {...holder}>
      <NewRows waiting={waiting} onShow={showNew} />
      <table className="table">
        <thead>
          <tr>
            <th scope="col">What</th>
            <th scope="col">State</th>
            <th scope="col">How far</th>
            <th scope="col">When</th>
            <th scope="col">Who</th>
          </tr>
        </thead>
        <tbody>
          {rows.map((rollout) => (
            <tr key={rollout.id}>
              <th scope="row">
                <Link className="row-link" href={`/actions/rollouts/${encodeURIComponent(rollout.id)}`}>
                  {rolloutTitle(rollout)}
                </Link>
              </th>
              <td data-head="State">
                <StateMark state={rolloutState(rollout.state)} label={rollout.state} />
              </td>
              <td data-head="How far">{progressText(rollout)}</td>
              <td data-head="When" className="no-wrap">
                {formatMoment(rollout.created_at)}
              </td>
              <td data-head="Who" className="quiet">
                {rollout.operator.session} from {rollout.operator.ip}
              </td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}
