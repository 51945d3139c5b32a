// The overview's line about nodes in maintenance: names, end and reason.
import type { ReactNode } from "react";
import { Link } from "wouter";
import type { LiveNode } from "../words/live-node.ts";
import { isMaintained, maintenanceText } from "../words/maintenance.ts";

const NAMED_MAX = 3;

/** The line; empty without such nodes. */
export function MaintainedNodes({ nodes }: { readonly nodes: readonly LiveNode[] }): ReactNode {
  const maintained = nodes.filter(isMaintained);
  if (maintained.length === 0) return null;
  const more = maintained.length - NAMED_MAX;
  return (
    <p>
      {maintained.slice(0, NAMED_MAX).map((node, at) => (
        <span key={node.id}>
          {at === 0 ? "" : "; "}
          <Link href={`/nodes/${encodeURIComponent(node.id)}`}>{node.name}</Link> is {maintenanceText(node)}
        </span>
      ))}
      {more > 0 ? `; and ${more} more` : ""}.
    </p>
  );
}
