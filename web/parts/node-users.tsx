// The users whose root lives on a node.
import type { ReactNode } from "react";
import { Link } from "wouter";
import { useCluster } from "../live/cluster.ts";
import { bytesText, percentText } from "../words/number.ts";
import { Nothing, Reading } from "./page-state.tsx";

const SHOWN = 200;

/** A table of them, the fullest first. */
export function NodeUsers({ nodeId }: { readonly nodeId: string }): ReactNode {
  const { cluster } = useCluster({ showsUsers: true });
  if (cluster === undefined) return <Reading what="its users" />;
  const users = Object.entries(cluster.users)
    .filter(([, user]) => user.node_id === nodeId)
    .sort(([, a], [, b]) => b.usage_percent - a.usage_percent);
  if (users.length === 0)
    return (
      <Nothing>No user lives on this node. New ones are placed on the node with the most free space.</Nothing>
    );
  return (
    <>
      <table className="table" style={{ maxWidth: 720 }}>
        <thead>
          <tr>
            <th scope="col">User</th>
            <th scope="col" className="number">
              Used
            </th>
            <th scope="col" className="number">
              Quota
            </th>
            <th scope="col" className="number">
              Full
            </th>
          </tr>
        </thead>
        <tbody>
          {users.slice(0, SHOWN).map(([name, user]) => (
            <tr key={name}>
              <th scope="row">
                <Link href={`/users?user=${encodeURIComponent(name)}`}>{name}</Link>
              </th>
              <td className="number">{bytesText(user.used_bytes)}</td>
              <td className="number">{bytesText(user.quota_limit)}</td>
              <td className="number">{percentText(user.usage_percent)}</td>
            </tr>
          ))}
        </tbody>
      </table>
      {users.length > SHOWN ? (
        <p className="quiet">
          The {SHOWN} fullest of {users.length}. <Link href="/users">All users</Link>
        </p>
      ) : null}
    </>
  );
}
