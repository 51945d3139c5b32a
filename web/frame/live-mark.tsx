// Shows the age of the figures: live, stale, or reconnecting with the seconds.
import type { ReactNode } from "react";
import { useCluster, useConnection, useNowMs } from "../live/cluster.ts";
import { formatSpan } from "../words/time.ts";

/** The mark in the header. */
export function LiveMark(): ReactNode {
  const { phase, lastSnapshotAtMs, retryAtMs } = useConnection();
  const { cluster, isStale } = useCluster();
  const now = useNowMs();
  if (phase === "live") {
    const age = lastSnapshotAtMs === undefined ? undefined : (now - lastSnapshotAtMs) / 1_000;
    if (age === undefined) return <Mark state="online" text="live" />;
    return age > 15 ? (
      <Mark state="warning" text={`stale, ${formatSpan(age)} old`} />
    ) : (
      <Mark state="online" text={`live ${formatSpan(age)} ago`} />
    );
  }
  if (phase === "connecting") return <Mark state="info" text="connecting" />;
  const wait = retryAtMs === undefined ? 0 : Math.max(0, Math.ceil((retryAtMs - now) / 1_000));
  const how = cluster !== undefined && !isStale ? <span className="wide-only">polling; </span> : null;
  return (
    <Mark
      state="warning"
      text={
        <>
          {how}reconnecting{wait > 0 ? ` in ${wait} s` : ""}
        </>
      }
    />
  );
}

const SHAPE = { online: "●", warning: "▲", info: "○" } as const;

function Mark({ state, text }: { readonly state: keyof typeof SHAPE; readonly text: ReactNode }): ReactNode {
  return (
    <span className="state number live-mark" data-state={state} title="How old the figures on this page are">
      <span aria-hidden="true">{SHAPE[state]}</span>
      <span>{text}</span>
    </span>
  );
}
