// Forwards conditions and alerts to the notification layer.
import type { Notifier } from "#console/alerts/notifier.ts";
import type { ClusterState } from "#console/cluster/cluster-state.ts";
import type { AlertService } from "./alert-service.ts";
import { GoneNodes } from "./gone-nodes.ts";

/** The joined parts. */
export interface NotificationFeedDeps {
  readonly notifier: Notifier;
  readonly service: AlertService;
  readonly cluster: Pick<ClusterState, "nodes" | "node" | "isStarting">;
}

/** Joins them; the returned function disconnects them. */
export function feedNotifications({ notifier, service, cluster }: NotificationFeedDeps): () => void {
  const gone = new GoneNodes(cluster);
  const ends = [
    service.onConditions((conditions, happened, at) => {
      notifier.occurred(happened);
      notifier.observe(conditions, at);
      // A notice outlives its alert where an operator resolved that, and where it ends at a lower value.
      for (const nodeId of gone.of(notifier.nodeIds(), at)) notifier.forgetNode(nodeId);
    }),
    service.onHandled((key) => notifier.acked(key)),
    service.onEvent(({ kind, alert }) => {
      if (kind !== "resolved") return;
      // A removed node, or an action that has succeeded since, raises no condition that would end the notice.
      const isGone = alert.node_id !== undefined && cluster.node(alert.node_id) === undefined;
      if (isGone || (alert.type === "action_failed" && alert.resolved_by === "auto"))
        notifier.forget(alert.key, isGone);
    }),
  ];
  return () => {
    for (const end of ends) end();
  };
}
