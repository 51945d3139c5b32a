// One rollout: its progress, each node's step and gate, and buttons to cancel or revert it.
import { Button, Modal } from "@mantine/core";
import { useDisclosure } from "@mantine/hooks";
import { useMutation, useQuery } from "@tanstack/react-query";
import type { ReactNode } from "react";
import { Link, useLocation, useParams } from "wouter";
import type { RolloutRecord } from "#wire/webapi/rollout.ts";
import { useNowMs } from "../live/cluster.ts";
import { cancelRollout, goBack, planBack, useRollout } from "../live/rollouts.ts";
import { Unread } from "../parts/page-state.tsx";
import { RolloutStrip } from "../parts/rollout-strip.tsx";
import { StateMark } from "../parts/state-mark.tsx";
import { countText } from "../words/number.ts";
import { progressText, rolloutState, rolloutTitle } from "../words/rollout.ts";
import { standText } from "../words/rollout-end.ts";
import { formatMoment, formatSpan } from "../words/time.ts";

/** The page at "/actions/rollouts/:id". */
export function Page(): ReactNode {
  const { id } = useParams<{ id: string }>();
  const { rollout, error } = useRollout(id);
  if (rollout === undefined) {
    return (
      <>
        <h1>Rollout</h1>
        <Unread what="the rollout" error={error} />
      </>
    );
  }
  const stand = standText(rollout);
  return (
    <>
      <p className="crumb">
        <Link href="/actions?tab=rollouts">Rollouts</Link>
      </p>
      <div className="title-line">
        <h1>{rolloutTitle(rollout)}</h1>
        <StateMark state={rolloutState(rollout.state)} label={rollout.state} />
      </div>
      <p className="lead" role="status">
        {progressText(rollout)}.
      </p>
      {stand === "" ? null : <p>{stand}</p>}
      <Facts rollout={rollout} />
      <ToDo rollout={rollout} />
      <RolloutStrip rollout={rollout} />
    </>
  );
}

function Facts({ rollout }: { readonly rollout: RolloutRecord }): ReactNode {
  const now = useNowMs() / 1_000;
  const { created_at: from, finished_at: to, operator, back_of: backOf, back_by: backBy } = rollout;
  return (
    <p className="quiet">
      Begun {formatMoment(from)} by {operator.session} from {operator.ip},{" "}
      {to === undefined ? `${formatSpan(now - from)} ago` : `it took ${formatSpan(to - from)}`}.
      {backOf === undefined ? null : (
        <>
          {" "}
          It goes back from <Link href={`/actions/rollouts/${encodeURIComponent(backOf)}`}>this rollout</Link>
          .
        </>
      )}
      {backBy === undefined ? null : (
        <>
          {" "}
          <Link href={`/actions/rollouts/${encodeURIComponent(backBy)}`}>Another one went back from it</Link>.
        </>
      )}
    </p>
  );
}

function ToDo({ rollout }: { readonly rollout: RolloutRecord }): ReactNode {
  const [isAsking, { open, close }] = useDisclosure(false);
  const stop = useMutation({ mutationFn: () => cancelRollout(rollout.id) });
  return (
    <>
      <div className="button-row">
        {rollout.state === "running" ? (
          <Button variant="default" size="compact-sm" loading={stop.isPending} onClick={() => stop.mutate()}>
            Stop
          </Button>
        ) : null}
        {rollout.can_go_back ? (
          <Button variant="default" size="compact-sm" onClick={open}>
            Go back …
          </Button>
        ) : null}
      </div>
      {stop.error === null ? null : <p role="alert">{stop.error.message}</p>}
      <Modal
        lockScroll={false}
        opened={isAsking}
        onClose={close}
        title="Go back to what was there before"
        size="lg"
        closeButtonProps={{ "aria-label": "Close" }}
      >
        <Back id={rollout.id} />
      </Modal>
    </>
  );
}

/** Shows the plan of going back, and starts it. */
function Back({ id }: { readonly id: string }): ReactNode {
  const [, navigate] = useLocation();
  const plan = useQuery({ queryKey: ["rollout-back", id], queryFn: () => planBack(id), staleTime: 0 });
  const back = useMutation({
    mutationFn: () => goBack(id),
    onSuccess: (record) => navigate(`/actions/rollouts/${encodeURIComponent(record.id)}`),
  });
  if (plan.data === undefined) {
    return <Unread what="the plan" error={plan.error} />;
  }
  const going = plan.data.nodes.filter(({ state }) => state !== "skipped");
  return (
    <>
      <RolloutStrip rollout={plan.data} />
      {back.error === null ? null : <p role="alert">{back.error.message}</p>}
      <Button data-autofocus loading={back.isPending} onClick={() => back.mutate()}>
        Go back on {countText(going.length, "node")}
      </Button>
    </>
  );
}
