// The commands of the metadata store about nodes that are administered over SSH (D20), as plans.
import { GroveError } from "#base/errors.ts";
import { NODES_MAX } from "#base/limits.ts";
import { RESERVED_NODE_ID } from "#base/node-id.ts";
import { checkedSshNode, type SshNode } from "#base/ssh-node.ts";
import { all, get, type Plan, run } from "#metaserver/sql/sql-plan.ts";

interface SshNodeRow {
  readonly id: string;
  readonly host: string;
  readonly port: bigint;
  readonly user: string;
  readonly host_key: string;
  readonly repository: string;
  readonly services: string;
}

/** All of them, by id. */
export function* sshNodes(): Plan<SshNode[]> {
  const rows = yield* all<SshNodeRow>(
    // An entry from before its id was reserved must not block the others.
    'SELECT id, host, port, "user", host_key, repository, services FROM ssh_nodes WHERE id <> ? LIMIT ?',
    RESERVED_NODE_ID,
    NODES_MAX,
  );
  // Databases sort text by rules of their own.
  return rows.toSorted((a, b) => (a.id < b.id ? -1 : 1)).map(toNode);
}

/** Records a node in place of the former one of its id. */
export function* putSshNode(node: SshNode): Plan<void> {
  const { id, host, port, user, hostKey, repository, services } = checkedSshNode(node);
  const others = yield* get<{ count: bigint }>("SELECT COUNT(*) AS count FROM ssh_nodes WHERE id <> ?", id);
  if (others !== undefined && others.count >= NODES_MAX) {
    throw new GroveError("OVERLOADED", `a cluster has at most ${NODES_MAX} nodes`, {
      metadata: { limit: String(NODES_MAX) },
    });
  }
  yield* run(
    `INSERT INTO ssh_nodes (id, host, port, "user", host_key, repository, services) VALUES (?, ?, ?, ?, ?, ?, ?)
     ON CONFLICT (id) DO UPDATE SET host = excluded.host, port = excluded.port, "user" = excluded."user",
       host_key = excluded.host_key, repository = excluded.repository, services = excluded.services`,
    id,
    host,
    port,
    user,
    hostKey,
    repository,
    JSON.stringify(services),
  );
}

/** Removes a node and returns whether it was known. */
export function* removeSshNode(id: string): Plan<boolean> {
  return (yield* run("DELETE FROM ssh_nodes WHERE id = ?", id)) > 0;
}

/** The store's text is checked like people's input, since it ends in command lines. */
function toNode(row: SshNodeRow): SshNode {
  const { id, host, user, host_key: hostKey, repository } = row;
  const services = JSON.parse(row.services) as SshNode["services"];
  return checkedSshNode({ id, host, port: Number(row.port), user, hostKey, repository, services });
}
