// The history of rollouts, newest first.
import type { ReactNode } from "react";
import { Link } from "wouter";
import type { RolloutRecord } from "#wire/webapi/rollout.ts";
import { useRollouts } from "../live/rollouts.ts";
import { progressText, rolloutState, rolloutTitle } from "../words/rollout.ts";
import { formatMoment } from "../words/time.ts";
import { HeldTable } from "./held-box.tsx";
import { Nothing, Unread } from "./page-state.tsx";
import { StateMark } from "./state-mark.tsx";

const idOf = ({ id }: RolloutRecord): string => id;

/** The list. */
export function RolloutRecords(): ReactNode {
  const { rollouts, error } = useRollouts();
  if (rollouts === undefined) {
    return <Unread what="the rollouts" error={error} />;
  }
  if (rollouts.length === 0) {
    return <Nothing>Nothing was rolled out yet. Every rollout is kept here with what came of it.</Nothing>;
  }
  return (
    <HeldTable
      rows={rollouts}
      idOf={idOf}
      head={
        <>
          <th scope="col">What</th>
          <th scope="col">State</th>
          <th scope="col">How far</th>
          <th scope="col">When</th>
          <th scope="col" className="roomy-only">
            Who
          </th>
        </>
      }
    >
      {(rollout) => (
        <>
          <th scope="row">
            <Link className="row-link is-whole" href={`/actions/rollouts/${encodeURIComponent(rollout.id)}`}>
              {rolloutTitle(rollout)}
            </Link>
          </th>
          <td data-head="State">
            <StateMark state={rolloutState(rollout.state)} label={rollout.state} />
          </td>
          <td data-head="How far" className="subject">
            {progressText(rollout)}
          </td>
          <td data-head="When" className="moment">
            {formatMoment(rollout.created_at)}
          </td>
          <td data-head="Who" className="quiet roomy-only">
            {rollout.operator.session} from {rollout.operator.ip}
          </td>
        </>
      )}
    </HeldTable>
  );
}
