// Brings what the alert desk finds to the notification layer.
import type { Notifier } from "#alerts/notifier.ts";
import type { AlertDesk } from "./alert-desk.ts";
import type { ClusterState } from "./cluster-state.ts";

/** What is joined. */
export interface NoticeFeedDeps {
  readonly notifier: Notifier;
  readonly desk: AlertDesk;
  readonly cluster: Pick<ClusterState, "node">;
}

/** Joins them; the returned function parts them again. */
export function feedNotices({ notifier, desk, cluster }: NoticeFeedDeps): () => void {
  const ends = [
    desk.onConditions((conditions, happened, at) => {
      notifier.occurred(happened);
      notifier.observe(conditions, at);
    }),
    desk.onHandled((key) => notifier.acked(key)),
    desk.onEvent(({ kind, alert }) => {
      if (kind !== "resolved") return;
      // What is about a node that is gone gets no more conditions, and what failed and then went well none either: their end comes from the book.
      const isGone = alert.node_id !== undefined && cluster.node(alert.node_id) === undefined;
      if (isGone || (alert.type === "action_failed" && alert.resolved_by === "auto"))
        notifier.forget(alert.key);
    }),
  ];
  return () => {
    for (const end of ends) end();
  };
}
