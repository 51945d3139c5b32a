// The node that a user's root lives on, for what an operator asks of it, and what is said when it refuses or does not answer.
import { isGroveError } from "#base/errors.ts";
import type { ClusterState, NodeState } from "#console/cluster/cluster-state.ts";
import type { UserList } from "#console/cluster/user-list.ts";
import { type OperatorSession, ProblemError } from "#console/http/route.ts";
import type { Directory } from "#metaserver/directory/directory.ts";
import { Code, codeName, StatusError } from "#wire/framing/status.ts";

/** What knows where roots are. */
export interface HomeNodeDeps {
  readonly cluster: ClusterState;
  readonly directory: Pick<Directory, "findRoot">;
  readonly users: Pick<UserList, "find">;
}

/** The node. Throws ProblemError: STARTING, NO_SUCH_USER, NODE_OFFLINE. */
export async function homeNodeOf(deps: HomeNodeDeps, username: string): Promise<NodeState> {
  const { cluster } = deps;
  const nodeId = await homeIdOf(deps, username);
  if (nodeId === undefined) {
    const starting = cluster.isStarting();
    throw starting
      ? new ProblemError("STARTING", "not every node has been heard yet; try again", {
          retryAfterSeconds: 5,
        })
      : new ProblemError("NO_SUCH_USER", "nobody of this name has a root in this cluster");
  }
  const node = cluster.node(nodeId);
  if (node === undefined || node.status === "offline") throw offline(node?.name ?? nodeId);
  return node;
}

/** The store's word, else that of the node which reports the user. Throws STORE_UNAVAILABLE when neither can be had. */
async function homeIdOf({ directory, users }: HomeNodeDeps, username: string): Promise<string | undefined> {
  try {
    const root = await directory.findRoot(username);
    if (root !== undefined) return root.fsId;
  } catch (error) {
    const reported = isGroveError(error, "STORE_UNAVAILABLE", "OVERLOADED")
      ? await users.find(username)
      : undefined;
    if (reported === undefined) throw error;
    return reported.nodeId;
  }
  return (await users.find(username))?.nodeId;
}

/** The hash of the operator's password, which nodes take for `what`. Throws NODE_ERROR where the console has none that they take. */
export function passwordHashFor({ passwordHash }: OperatorSession, what: string): string {
  if (passwordHash !== "") return passwordHash;
  throw new ProblemError(
    "NODE_ERROR",
    `nodes take the operator's password for this, and the console has only an Argon2 hash of it: sign in with the password for ${what}`,
    { reason: "PASSWORD_NEEDED" },
  );
}

/** What an audit line says of a change that was asked for. */
export type Outcome = "done" | "refused" | "unknown";

/** What was wanted of a node, in words for when it is not known whether it was done. */
export interface Wanted {
  /** Of a failure that nobody foresaw. */
  readonly failed: string;
  /** How to find out whether it was done. */
  readonly late: string;
}

/** What the caller is told of a failed call, and whether the change may have been made all the same. */
export function judgedCall(
  error: unknown,
  node: NodeState,
  { failed, late }: Wanted,
): { readonly problem: ProblemError; readonly outcome: Outcome } {
  if (error instanceof ProblemError) return { problem: error, outcome: "refused" };
  if (!(error instanceof StatusError)) {
    return { problem: new ProblemError("INTERNAL", failed, { cause: error }), outcome: "unknown" };
  }
  const { code, message, metadata } = error;
  if (code === Code.DEADLINE_EXCEEDED) {
    const detail = `${node.name} did not answer in time; ${late}`;
    return { problem: new ProblemError("NODE_TIMEOUT", detail, { cause: error }), outcome: "unknown" };
  }
  const reason = metadata.get("svc-reason");
  if (code === Code.UNAVAILABLE && reason === undefined)
    return { problem: offline(node.name), outcome: "unknown" };
  // The console has found the operator's password right: the node compares it with another one.
  const told = reason === "NOT_ADMIN" ? otherPassword(node) : `the node refused: ${message}`;
  const problem = new ProblemError("NODE_ERROR", told, {
    grpc_code: codeName(code),
    ...(reason === undefined ? {} : { reason }),
    cause: error,
  });
  return { problem, outcome: "refused" };
}

/** What is said of a node that refuses a password which the console has found right. */
export function otherPassword({ name }: NodeState): string {
  return `${name} has another password than this console's: give it the same ADMIN_PASSWORD_HASH, or see whether it was started with -no_password_path`;
}

function offline(name: string): ProblemError {
  return new ProblemError(
    "NODE_OFFLINE",
    `${name}, where this user's root lives, cannot be reached; nothing is queued: try again when it is back`,
  );
}
