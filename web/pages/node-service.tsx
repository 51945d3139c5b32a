// Takes a node out of service: the plan, the confirmation, what is left, and the way back.
import { Button, TextInput } from "@mantine/core";
import { type ReactNode, type SubmitEvent, useState } from "react";
import { Link, useParams } from "wouter";
import type { DrainPlanView, DrainView } from "#wire/webapi/root-move.ts";
import { useCluster } from "../live/cluster.ts";
import {
  type DrainWay,
  useConfirmedCopies,
  useDraining,
  useDrainPlan,
  useMoves,
} from "../live/root-moves.ts";
import { CommandLine } from "../parts/command-line.tsx";
import { MoveTable } from "../parts/move-table.tsx";
import { Nothing, Unread } from "../parts/page-state.tsx";
import { PlannedMoves } from "../parts/planned-moves.tsx";
import type { LiveNode } from "../words/live-node.ts";
import { bytesText, countText } from "../words/number.ts";
import { drainText } from "../words/root-move.ts";
import { sentence } from "../words/sentence.ts";

/** The page at "/nodes/:id/service". */
export function Page(): ReactNode {
  const { id } = useParams<{ id: string }>();
  const { cluster, error } = useCluster();
  const moves = useMoves();
  if (cluster === undefined) return <Unread what="the node" error={error} />;
  const node = cluster.nodes.find((candidate) => candidate.id === id);
  if (node === undefined) {
    return (
      <>
        <h1>There is no such node</h1>
        <p>
          <Link href="/nodes">See those that are there</Link>.
        </p>
      </>
    );
  }
  const drain = moves.list?.drains.find(({ node_id: nodeId }) => nodeId === id);
  return (
    <div className="breaks">
      <p className="crumb">
        <Link href="/nodes">Nodes</Link> / <Link href={`/nodes/${encodeURIComponent(id)}`}>{node.name}</Link>
      </p>
      <h1>{drain === undefined ? `Take ${node.name} out of service` : `${node.name} is out of service`}</h1>
      {moves.list === undefined ? (
        <Unread what="the moves" error={moves.error} />
      ) : drain === undefined ? (
        <TakeOut node={node} />
      ) : (
        <OutOfService drain={drain} />
      )}
      <MovesOf id={id} />
    </div>
  );
}

function TakeOut({ node }: { readonly node: LiveNode }): ReactNode {
  const plan = useDrainPlan(node.id);
  const [way, setWay] = useState<DrainWay>("nodes");
  const { answer } = plan;
  const other = way === "nodes" ? "engine" : "nodes";
  const planFor = (wanted: DrainWay): void => {
    setWay(wanted);
    plan.ask(wanted);
  };
  return (
    <>
      <p className="lead">
        All roots of {node.name} move to the other nodes while their users work; for some seconds at the end
        of each move its calls wait. It gets no new users. Nothing is deleted before you confirm.
      </p>
      <div className="button-row">
        <Button
          variant={answer === undefined ? "filled" : "default"}
          loading={plan.isBusy}
          onClick={() => planFor(way)}
        >
          {answer === undefined ? "Show the plan" : "Plan anew"}
        </Button>
        {answer === undefined || answer.on_engine || (way === "nodes" && answer.engine_nodes === 0) ? null : (
          <Button variant="default" disabled={plan.isBusy} onClick={() => planFor(other)}>
            {other === "engine" ? "Plan for the shared engine instead" : "Plan for nodes with disks instead"}
          </Button>
        )}
        {plan.isBusy ? <span role="status">The nodes are asked how large their roots are …</span> : null}
      </div>
      {plan.error === null ? null : <p role="alert">{sentence(plan.error.message)}</p>}
      {answer === undefined ? null : <Plan node={node} plan={answer} />}
    </>
  );
}

function Plan({ node, plan }: { readonly node: LiveNode; readonly plan: DrainPlanView }): ReactNode {
  const { moves_total: total, without_room: withoutRoom, blocked_by: blocked } = plan;
  const mayBegin = blocked.length === 0 && plan.without_room_total === 0;
  return (
    <>
      <section aria-labelledby="plan">
        <h2 id="plan">What goes where</h2>
        <p>
          {total === 0
            ? "No root has to move."
            : `${countText(total, "root")} with ${plan.sizes_known ? bytesText(plan.bytes_total) : "sizes that it does not tell"} ${total === 1 ? "goes" : "go"}, the largest first.`}
          {plan.under_way === 0 ? "" : ` ${countText(plan.under_way, "root")} on the way already.`}
        </p>
        {plan.to_engine ? <p>{engineText(plan)}</p> : null}
        {total === 0 ? null : (
          <PlannedMoves moves={plan.moves} total={total} areSizesKnown={plan.sizes_known} />
        )}
      </section>
      {mayBegin ? null : (
        <section aria-labelledby="blocks">
          <h2 id="blocks">What is in the way</h2>
          {blocked.map((why) => (
            <p key={why}>{sentence(why)}</p>
          ))}
          {withoutRoom.length === 0 ? null : (
            <>
              <p>
                No node has room for {countText(plan.without_room_total, "root")}, so nothing begins. Free
                space on the others, or add a node, and plan anew.
              </p>
              <ul className="plain-list">
                {withoutRoom.slice(0, 20).map(({ owner, bytes, missing_bytes: missing }) => (
                  <li key={owner}>
                    <span>{owner}</span>
                    <span className="quiet">
                      {bytesText(bytes)}, {bytesText(missing)} more than the roomiest node has above its
                      reserve
                    </span>
                  </li>
                ))}
              </ul>
            </>
          )}
        </section>
      )}
      {mayBegin ? <Begin node={node} plan={plan} /> : null}
    </>
  );
}

function engineText({ on_engine: isWithin, engine_nodes: count }: DrainPlanView): string {
  return isWithin
    ? "They change hands within the shared engine: nothing is copied, and nothing waits to be confirmed."
    : `They go to the shared engine, which ${count === 1 ? "1 running node serves" : `${countText(count, "running node")} serve`}: rows to its database, chunks to its object store. Any of its nodes goes on when one dies.`;
}

function Begin({ node, plan }: { readonly node: LiveNode; readonly plan: DrainPlanView }): ReactNode {
  const { moves_total: total, to_engine: toEngine, on_engine: isWithin } = plan;
  const draining = useDraining(node.id);
  const [typed, setTyped] = useState("");
  const submit = (event: SubmitEvent): void => {
    event.preventDefault();
    if (typed === node.name) draining.ask(toEngine ? "engine" : "nodes");
  };
  return (
    <form onSubmit={submit} className="stack typed-word">
      <h2>What stays</h2>
      <p>
        {isWithin
          ? "Nothing stays on it: files and rows of the shared engine lie on none of its nodes."
          : `${node.name} keeps its copies until you confirm them, so its disk gets no emptier before.`}{" "}
        Roots that are on their way arrive even if you bring the node back meanwhile.
      </p>
      <TextInput
        label={`Type “${node.name}” to go on`}
        value={typed}
        onChange={(event) => setTyped(event.currentTarget.value)}
        autoComplete="off"
      />
      <div>
        <Button type="submit" color="red" disabled={typed !== node.name} loading={draining.isBusy}>
          {total === 0
            ? "Take it out of service"
            : `Take it out of service and move ${countText(total, "root")}`}
        </Button>
      </div>
      {draining.error === null ? null : <p role="alert">{sentence(draining.error.message)}</p>}
    </form>
  );
}

function OutOfService({ drain }: { readonly drain: DrainView }): ReactNode {
  const { node_id: id, node_name: name, roots_left: left, kept_copies: copies } = drain;
  const draining = useDraining(id);
  const confirming = useConfirmedCopies(id);
  const [typed, setTyped] = useState("");
  return (
    <>
      <p className="lead" role="status">
        {drainText(drain)}
      </p>
      {left === 0 && copies === 0 && drain.removing_copies === 0 ? (
        <>
          <p>Where the metadata store can be reached, this takes it out of the cluster:</p>
          <CommandLine command={drain.remove_command} />
        </>
      ) : null}
      <div className="button-row">
        {left > 0 && !drain.driven ? (
          <Button
            variant="default"
            loading={draining.isBusy}
            onClick={() => draining.ask(drain.to_engine ? "engine" : "nodes")}
          >
            Go on moving its roots
          </Button>
        ) : null}
        <Button variant="default" loading={draining.isBusy} onClick={() => draining.ask("back")}>
          Bring back into service
        </Button>
        <span className="quiet">
          It then gets new users again; roots that have moved away stay where they are.
        </span>
      </div>
      {draining.error === null ? null : <p role="alert">{sentence(draining.error.message)}</p>}
      {copies === 0 ? null : (
        <form
          className="stack typed-word"
          onSubmit={(event) => {
            event.preventDefault();
            if (typed === name) confirming.ask();
          }}
        >
          <h2>Copies that it keeps</h2>
          <TextInput
            label={`After a look at the ${countText(copies, "root")} on the other nodes: type “${name}” to let it remove its copies`}
            value={typed}
            onChange={(event) => setTyped(event.currentTarget.value)}
            autoComplete="off"
          />
          <div>
            <Button type="submit" color="red" disabled={typed !== name} loading={confirming.isBusy}>
              Remove its copies
            </Button>
          </div>
          {confirming.error === null ? null : <p role="alert">{sentence(confirming.error.message)}</p>}
        </form>
      )}
    </>
  );
}

function MovesOf({ id }: { readonly id: string }): ReactNode {
  const { list } = useMoves();
  const moves = list?.moves.filter(({ from, to }) => from === id || to === id) ?? [];
  if (list === undefined) return null;
  return (
    <section aria-labelledby="moves">
      <h2 id="moves">Its moves</h2>
      {moves.length > 0 ? (
        <MoveTable moves={moves} />
      ) : list.moves_total > list.moves.length ? null : (
        <Nothing>No root moves to this node or from it, and no copy waits to be confirmed.</Nothing>
      )}
      {list.moves_total > list.moves.length ? (
        <p className="quiet">
          There are {countText(list.moves_total, "move")} in the cluster. Looked through for this node:{" "}
          {list.moves.length.toLocaleString()} of them, those under way first.
        </p>
      ) : null}
    </section>
  );
}
