// One action: its state, what runs where, and its output as it comes.
import { Button } from "@mantine/core";
import { useMutation } from "@tanstack/react-query";
import type { ReactNode } from "react";
import { useParams } from "wouter";
import { cancel, isRunning, useAction } from "../live/actions.ts";
import { ActionTargets } from "../parts/action-targets.tsx";
import { OutputView } from "../parts/output-view.tsx";
import { Failed, Reading } from "../parts/page-state.tsx";
import { StateMark } from "../parts/state-mark.tsx";
import { ACTION_LABELS, shownState, stateText } from "../words/action.ts";
import { formatMoment } from "../words/time.ts";

/** The page at "/actions/:id". */
export function Page(): ReactNode {
  const { id } = useParams<{ id: string }>();
  const { record, error } = useAction(id);
  const stop = useMutation({ mutationFn: () => cancel(id) });
  if (record === undefined)
    return error === null ? <Reading what="the action" /> : <Failed what="The action" error={error} />;
  return (
    <>
      <h1>
        {ACTION_LABELS[record.action]}{" "}
        <StateMark state={shownState(record.state)} label={stateText(record.state)} />
      </h1>
      <p className="quiet">
        Begun {formatMoment(record.created_at)} by {record.operator.session} from {record.operator.ip}
        {record.finished_at === undefined ? "" : `, ended ${formatMoment(record.finished_at)}`}. Id{" "}
        {record.id}.
      </p>
      {isRunning(record) ? (
        <Button variant="default" size="xs" loading={stop.isPending} onClick={() => stop.mutate()}>
          Cancel
        </Button>
      ) : null}
      {stop.error === null ? null : <p role="alert">{stop.error.message}</p>}
      <ActionTargets record={record} />
      <OutputView id={id} />
    </>
  );
}
