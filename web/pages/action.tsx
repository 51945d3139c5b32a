// One action: its state, its targets, and its live output.
import { Button } from "@mantine/core";
import { useMutation } from "@tanstack/react-query";
import type { ReactNode } from "react";
import { Link, useParams } from "wouter";
import { cancel, isRunning, useAction } from "../live/actions.ts";
import { useNowMs } from "../live/cluster.ts";
import { ActionTargets } from "../parts/action-targets.tsx";
import { OutputView } from "../parts/output-view.tsx";
import { Unread } from "../parts/page-state.tsx";
import { StateMark } from "../parts/state-mark.tsx";
import { ACTION_LABELS, isDryRun, shownState, stateText } from "../words/action.ts";
import { formatMoment, formatSpan } from "../words/time.ts";

/** The page at "/actions/:id". */
export function Page(): ReactNode {
  const { id } = useParams<{ id: string }>();
  const { record, error } = useAction(id);
  const now = useNowMs() / 1_000;
  const stop = useMutation({ mutationFn: () => cancel(id) });
  if (record === undefined) {
    return (
      <>
        <h1>Action</h1>
        <Unread what="the action" error={error} />
      </>
    );
  }
  const isShownOnly = isDryRun(record);
  return (
    <>
      <p className="crumb">
        <Link href="/actions">Actions</Link>
      </p>
      <div className="title-line">
        <h1>{ACTION_LABELS[record.action]}</h1>
        {isShownOnly ? (
          <StateMark state="info" label="only shown, not run" />
        ) : (
          <StateMark state={shownState(record.state)} label={stateText(record.state)} />
        )}
        {isRunning(record) ? (
          <Button variant="default" size="compact-sm" loading={stop.isPending} onClick={() => stop.mutate()}>
            Cancel
          </Button>
        ) : null}
      </div>
      <p className="quiet">
        Begun {formatMoment(record.created_at)} by {record.operator.session} from {record.operator.ip}
        {record.finished_at === undefined
          ? `, ${formatSpan(now - record.created_at)} ago`
          : `; it took ${formatSpan(record.finished_at - record.created_at)}`}
        .
      </p>
      {stop.error === null ? null : <p role="alert">{stop.error.message}</p>}
      <ActionTargets record={record} />
      {isShownOnly ? null : (
        <OutputView
          key={id}
          id={id}
          nameOf={(nodeId) => record.targets.find((target) => target.node_id === nodeId)?.node_name ?? nodeId}
        />
      )}
    </>
  );
}
