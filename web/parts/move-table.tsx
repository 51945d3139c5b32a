// Roots that move, with how far each is, and the decision that it waits for.
import { Button } from "@mantine/core";
import { type ReactNode, useState } from "react";
import { Link } from "wouter";
import type { RootMoveView } from "#wire/webapi/root-move.ts";
import { useNowMs } from "../live/cluster.ts";
import { useDecision } from "../live/root-moves.ts";
import { isLostThere, mayBeUndone, moveText } from "../words/root-move.ts";
import { capital } from "../words/sentence.ts";
import { formatAgo, formatMoment } from "../words/time.ts";
import { UsageBar } from "./usage-bar.tsx";

/** A row for each move. */
export function MoveTable({ moves }: { readonly moves: readonly RootMoveView[] }): ReactNode {
  const decision = useDecision();
  // The owner of the move whose copy may go.
  const [asked, setAsked] = useState<string>();
  const now = useNowMs() / 1_000;
  return (
    <>
      {decision.error === null ? null : <p role="alert">{decision.error.message}</p>}
      <div className="table-scroll breaks">
        <table className="table">
          <thead>
            <tr>
              <th scope="col">User</th>
              <th scope="col">From</th>
              <th scope="col">To</th>
              <th scope="col">State</th>
              <th scope="col" className="roomy-only">
                Begun
              </th>
              <th scope="col">Decide</th>
            </tr>
          </thead>
          <tbody>
            {moves.map((move) => (
              <tr key={move.owner}>
                <th scope="row">{move.owner}</th>
                <td data-head="From" className="node-name">
                  <Link href={`/nodes/${encodeURIComponent(move.from)}`}>{move.from_name}</Link>
                </td>
                <td data-head="To" className="node-name">
                  <Link href={`/nodes/${encodeURIComponent(move.to)}`}>{move.to_name}</Link>
                </td>
                <td data-head="State">
                  <span>
                    {move.percent === null ? null : <Progress percent={move.percent} />}{" "}
                    {capital(moveText(move))}
                  </span>
                </td>
                <td data-head="Begun" title={formatMoment(move.started_at)} className="no-wrap roomy-only">
                  {formatAgo(move.started_at, now)}
                </td>
                <td data-head="Decide">
                  <Decision
                    move={move}
                    decision={decision}
                    isAsked={asked === move.owner}
                    ask={(isAsked) => setAsked(isAsked ? move.owner : undefined)}
                  />
                </td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </>
  );
}

function Progress({ percent }: { readonly percent: number }): ReactNode {
  return <UsageBar percent={percent} parts={[{ percent, color: "var(--grove-accent)" }]} />;
}

function Decision({
  move,
  decision,
  isAsked,
  ask,
}: {
  readonly move: RootMoveView;
  readonly decision: ReturnType<typeof useDecision>;
  readonly isAsked: boolean;
  readonly ask: (isAsked: boolean) => void;
}): ReactNode {
  const { owner, state } = move;
  if (mayBeUndone(move)) {
    return (
      <Button
        variant="default"
        size="compact-sm"
        loading={decision.isBusy}
        aria-label={`Undo the move of ${owner}`}
        onClick={() => decision.ask({ owner, decision: "undo" })}
      >
        Undo
      </Button>
    );
  }
  if (isLostThere(move)) return <span className="quiet">by that command</span>;
  if (state !== "switched") return <span className="quiet">nothing to decide</span>;
  // It stands where "Undo" was until the switch, so that one click alone removes nothing.
  if (!isAsked) {
    return (
      <Button
        variant="default"
        size="compact-sm"
        loading={decision.isBusy}
        aria-label={`Confirm the move of ${owner} …`}
        onClick={() => ask(true)}
      >
        Confirm …
      </Button>
    );
  }
  return (
    <span className="button-row">
      <Button variant="default" size="compact-sm" onClick={() => ask(false)}>
        Not now
      </Button>
      <Button
        color="red"
        size="compact-sm"
        loading={decision.isBusy}
        aria-label={`Let ${move.from_name} remove its copy of ${owner}`}
        onClick={() => {
          ask(false);
          decision.ask({ owner, decision: "confirm" });
        }}
      >
        Remove its copy
      </Button>
    </span>
  );
}
