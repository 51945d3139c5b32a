// All nodes, with filters by name and state in the address.
import { Select, TextInput } from "@mantine/core";
import type { ReactNode } from "react";
import { useAddressSearch } from "../live/address-search.ts";
import { useCluster } from "../live/cluster.ts";
import { NodeTable } from "../parts/node-table.tsx";
import { NoNodes, Nothing, Unread } from "../parts/page-state.tsx";
import { byNeed, NODE_STATES, stateOf } from "../words/node-state.ts";
import { countText } from "../words/number.ts";

/** The page at "/nodes". */
export function Page(): ReactNode {
  const { cluster, isStale, error } = useCluster();
  const { search, set } = useAddressSearch();
  const text = search.get("q") ?? "";
  const state = search.get("state");
  if (cluster === undefined) {
    return <Unread what="the nodes" error={error} />;
  }
  const shown = cluster.nodes
    .filter(
      (node) =>
        node.name.toLowerCase().includes(text.toLowerCase()) && (state === null || stateOf(node) === state),
    )
    .sort(byNeed);
  return (
    <div className={isStale ? "is-stale" : undefined}>
      <h1>{countText(cluster.nodes.length, "node")}</h1>
      <div className="filter-bar">
        <TextInput
          aria-label="Name"
          placeholder="Name"
          value={text}
          onChange={(event) => set("q", event.currentTarget.value)}
        />
        <Select
          aria-label="State"
          placeholder="Any state"
          clearable
          data={NODE_STATES.toReversed()}
          value={state}
          onChange={(value) => set("state", value)}
        />
      </div>
      {cluster.nodes.length === 0 ? (
        <NoNodes />
      ) : shown.length === 0 ? (
        <Nothing>No node has this name and state. Clear the filter to see all.</Nothing>
      ) : (
        <NodeTable key={JSON.stringify([text, state])} nodes={shown} />
      )}
    </div>
  );
}
