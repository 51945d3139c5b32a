// The users whose root is on a node.
import type { ReactNode } from "react";
import { Link } from "wouter";
import { useUsers } from "../live/users.ts";
import { Nothing, Unread } from "./page-state.tsx";
import { BarKey } from "./usage-legend.tsx";
import { MoreUsers, UserTable } from "./user-table.tsx";

/** A table of them, fullest first; each links to the user's panel in the list of this node's users. */
export function NodeUsers({ nodeId }: { readonly nodeId: string }): ReactNode {
  const list = useUsers({ q: "", sort: "usage", node: nodeId });
  if (list.users === undefined) return <Unread what="its users" error={list.error} />;
  if (list.users.length === 0)
    return (
      <Nothing>No user lives on this node. New ones are placed on the node with the most free space.</Nothing>
    );
  const search = new URLSearchParams({ node: nodeId });
  return (
    <>
      <div className="filter-bar">
        <BarKey />
        <Link className="end" href={`/users?${search}`}>
          Search them
        </Link>
      </div>
      <UserTable users={list.users} total={list.total} search={search} isOfOneNode onEnd={list.more} />
      <MoreUsers list={list} />
    </>
  );
}
