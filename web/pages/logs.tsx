// The log of one service on one node; node, service and filter are in the address.
import { Select } from "@mantine/core";
import type { ReactNode } from "react";
import { useAddressSearch } from "../live/address-search.ts";
import { useNodeChoices } from "../live/cluster.ts";
import { LogView } from "../parts/log-view.tsx";
import { Nothing, Reading } from "../parts/page-state.tsx";

/** The page at "/logs". */
export function Page(): ReactNode {
  const nodes = useNodeChoices();
  const choice = useAddressSearch();
  const node = choice.search.get("node") ?? nodes?.[0]?.value;
  return (
    <>
      <h1>Logs</h1>
      {nodes === undefined ? (
        <Reading what="the nodes" />
      ) : node === undefined ? (
        <Nothing>
          No node has registered yet. The log of one that has can be read here: over SSH once it is enrolled,
          or a file of this machine that <code>-local_log</code> names.
        </Nothing>
      ) : (
        <LogView node={node} choice={choice}>
          <Select
            label="Node"
            searchable
            allowDeselect={false}
            limit={100}
            data={nodes}
            value={node}
            onChange={(value) => choice.set("node", value)}
          />
        </LogView>
      )}
    </>
  );
}
