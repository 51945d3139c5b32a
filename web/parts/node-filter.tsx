// A filter that limits a list to one node.
import { Select } from "@mantine/core";
import type { ReactNode } from "react";
import { useNodeChoices } from "../live/cluster.ts";

/** Offers the nodes by name; sets a node's id, or null for all. */
export function NodeFilter({
  value,
  onChange,
}: {
  readonly value: string | null;
  readonly onChange: (value: string | null) => void;
}): ReactNode {
  return (
    <Select
      aria-label="Node"
      placeholder="Any node"
      clearable
      searchable
      limit={50}
      data={useNodeChoices() ?? []}
      value={value}
      onChange={onChange}
    />
  );
}
