// Roots that move between nodes, nodes that are out of service, and the plan that brings nodes into balance.
import { Button, TextInput } from "@mantine/core";
import { type ReactNode, type SubmitEvent, useState } from "react";
import { Link } from "wouter";
import type { MoveList, RebalancePlanView } from "#wire/webapi/root-move.ts";
import { useMoves, useRebalance, useRebalanceEnd, useRebalancePlan } from "../live/root-moves.ts";
import { MoveTable } from "../parts/move-table.tsx";
import { Nothing, Unread } from "../parts/page-state.tsx";
import { PlannedMoves } from "../parts/planned-moves.tsx";
import { bytesText, countText } from "../words/number.ts";
import { drainText } from "../words/root-move.ts";
import { sentence } from "../words/sentence.ts";

/** The word that starts a rebalancing. */
const WORD = "rebalance";

/** The page at "/moves". */
export function Page(): ReactNode {
  const { list, error } = useMoves();
  if (list === undefined) {
    return (
      <>
        <h1>Moves</h1>
        <Unread what="the moves" error={error} />
      </>
    );
  }
  return (
    <div className="breaks">
      <h1>{list.moves_total === 0 ? "No root moves" : countText(list.moves_total, "move")}</h1>
      {list.moves_total === 0 ? (
        <Nothing>
          Roots move when a node is taken out of service, on its page, when nodes are rebalanced, below, and
          by <code>grove root move USER -to NODE</code>. Until a move is confirmed it stays listed here.
        </Nothing>
      ) : (
        <MoveTable moves={list.moves} />
      )}
      {list.moves_total > list.moves.length ? (
        <p className="quiet">And {countText(list.moves_total - list.moves.length, "move")} more.</p>
      ) : null}
      <Drains list={list} />
      <Rebalance list={list} />
    </div>
  );
}

function Drains({ list }: { readonly list: MoveList }): ReactNode {
  if (list.drains.length === 0) return null;
  return (
    <section aria-labelledby="drains">
      <h2 id="drains">Out of service</h2>
      <ul className="plain-list">
        {list.drains.map((drain) => (
          <li key={drain.node_id}>
            <Link href={`/nodes/${encodeURIComponent(drain.node_id)}/service`}>{drain.node_name}</Link>
            <span className="quiet">{drainText(drain)}</span>
          </li>
        ))}
      </ul>
    </section>
  );
}

function Rebalance({ list }: { readonly list: MoveList }): ReactNode {
  const plan = useRebalancePlan();
  const ending = useRebalanceEnd();
  return (
    <section aria-labelledby="rebalance">
      <h2 id="rebalance">Bring nodes into balance</h2>
      {list.rebalance === null ? (
        <p>
          Roots go from the nodes with the least free share of their disks to those with the most, then by
          number. The plan begins nothing.
        </p>
      ) : (
        <p role="status">
          {list.rebalance.waiting === 0
            ? ""
            : `${countText(list.rebalance.waiting, "root")} still to begin. `}
          {list.rebalance.problem === null ? "" : `One stays where it is: ${list.rebalance.problem}.`}
        </p>
      )}
      <div className="button-row">
        <Button variant="default" loading={plan.isBusy} onClick={() => plan.ask()}>
          {plan.answer === undefined ? "Show the plan" : "Plan anew"}
        </Button>
        {list.rebalance === null ? null : (
          <Button variant="default" loading={ending.isBusy} onClick={() => ending.ask()}>
            Begin no more
          </Button>
        )}
        {plan.isBusy ? <span role="status">The nodes are asked how large their roots are …</span> : null}
      </div>
      {plan.error === null ? null : <p role="alert">{sentence(plan.error.message)}</p>}
      {plan.answer === undefined ? null : <Plan plan={plan.answer} forget={plan.forget} />}
    </section>
  );
}

function Plan({
  plan,
  forget,
}: {
  readonly plan: RebalancePlanView;
  readonly forget: () => void;
}): ReactNode {
  const { moves, silent_nodes: silent } = plan;
  return (
    <>
      {silent.length === 0 ? null : (
        <p>
          {silent.join(", ")} {silent.length === 1 ? "does" : "do"} not tell how large their roots are, so
          those stay.
        </p>
      )}
      {moves.length === 0 ? (
        <Nothing>The nodes are in balance: nothing would move.</Nothing>
      ) : (
        <>
          <p>
            {countText(moves.length, "root")} with {bytesText(plan.bytes_total)} would move, while their users
            work.
          </p>
          <PlannedMoves moves={moves} total={moves.length} />
          <Begin plan={plan} forget={forget} />
        </>
      )}
    </>
  );
}

function Begin({
  plan,
  forget,
}: {
  readonly plan: RebalancePlanView;
  readonly forget: () => void;
}): ReactNode {
  const rebalance = useRebalance();
  const [typed, setTyped] = useState("");
  const submit = (event: SubmitEvent): void => {
    event.preventDefault();
    if (typed === WORD) rebalance.ask(plan.plan_id);
  };
  if (rebalance.answer !== undefined) {
    return (
      <p role="status">
        {countText(rebalance.answer.decided, "root")} will move, four at a time.{" "}
        <Button variant="default" size="compact-sm" onClick={forget}>
          Close the plan
        </Button>
      </p>
    );
  }
  return (
    <form onSubmit={submit} className="stack typed-word">
      <TextInput
        label={`Type “${WORD}” to move them`}
        value={typed}
        onChange={(event) => setTyped(event.currentTarget.value)}
        autoComplete="off"
      />
      <div>
        <Button type="submit" color="red" disabled={typed !== WORD} loading={rebalance.isBusy}>
          Move {countText(plan.moves.length, "root")}
        </Button>
      </div>
      {rebalance.error === null ? null : <p role="alert">{sentence(rebalance.error.message)}</p>}
    </form>
  );
}
