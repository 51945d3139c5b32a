// Begins and ends a node's maintenance: muted alerts and no new users.
import { useMutation } from "@tanstack/react-query";
import type { NodeMaintenance } from "#wire/webapi/maintenance.ts";
import type { LiveNode } from "../words/live-node.ts";
import { call } from "./api.ts";
import { CLUSTER_KEY, type Cluster } from "./cluster.ts";
import { queryClient } from "./query-client.ts";
import { askedEnd } from "./silencing.ts";

/** A requested maintenance: its end and reason. */
export interface MaintenanceRequest {
  readonly endsAt: string;
  readonly comment: string;
}

function show(nodeId: string, maintenance: NodeMaintenance | undefined): void {
  queryClient.setQueryData<Cluster>(CLUSTER_KEY, (cluster) =>
    cluster === undefined
      ? cluster
      : {
          ...cluster,
          nodes: cluster.nodes.map((node) => (node.id === nodeId ? shown(node, maintenance) : node)),
        },
  );
}

function shown(node: LiveNode, maintenance: NodeMaintenance | undefined): LiveNode {
  const { maintenance: _before, maintenance_until: _until, ...bare } = node;
  return maintenance === undefined ? bare : { ...bare, maintenance, maintenance_until: maintenance.ends_at };
}

/** Begins a node's maintenance, changes its end, or ends it (undefined). */
export function useMaintenance(nodeId: string): {
  readonly ask: (request: MaintenanceRequest | undefined) => void;
  readonly isBusy: boolean;
  readonly error: Error | null;
} {
  const path = `/api/maintenance/${encodeURIComponent(nodeId)}`;
  const asking = useMutation({
    mutationFn: (request: MaintenanceRequest | undefined) =>
      request === undefined
        ? call<NodeMaintenance>(path, { method: "DELETE" })
        : call<NodeMaintenance>(path, {
            method: "PUT",
            body: { ...askedEnd(request.endsAt), comment: request.comment },
          }),
    // The console's view of the cluster may lag.
    onSuccess: (answer, request) => show(nodeId, request === undefined ? undefined : answer),
  });
  return { ask: (request) => asking.mutate(request), isBusy: asking.isPending, error: asking.error };
}
