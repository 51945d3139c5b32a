// Finds a user's home node for an operator's request, and words its refusals and timeouts.
import { isGroveError } from "#base/errors.ts";
import type { ClusterState, NodeState } from "#console/cluster/cluster-state.ts";
import type { UserList } from "#console/cluster/user-list.ts";
import { type OperatorSession, ProblemError } from "#console/http/route.ts";
import type { Directory } from "#metaserver/directory/directory.ts";
import { Code, codeName, StatusError } from "#wire/framing/status.ts";

/** Sources for the place of roots. */
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

/**
 * The store's answer, else that of the node which reports the user. Throws STORE_UNAVAILABLE without either.
 */
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

/**
 * The hash of the operator's password for `what` on nodes. Throws NODE_ERROR where the console has no form
 * that they accept.
 */
export function passwordHashFor({ passwordHash }: OperatorSession, what: string): string {
  if (passwordHash !== "") return passwordHash;
  throw new ProblemError(
    "NODE_ERROR",
    `nodes take the operator's password for this, and the console has only an Argon2 hash of it: sign in with the password for ${what}`,
    { reason: "PASSWORD_NEEDED" },
  );
}

/** Outcome of a requested change, in an audit line. */
export type Outcome = "done" | "refused" | "unknown";

/** A request to a node, in words for an unknown outcome. */
export interface Wanted {
  /** For an unexpected failure. */
  readonly failed: string;
  /** How to find out the outcome. */
  readonly late: string;
}

/** The answer for a failed call, and whether the change may have been made. */
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
  // The console has verified the operator's password, so the node has another one.
  const told = reason === "NOT_ADMIN" ? otherPassword(node) : `the node refused: ${message}`;
  const problem = new ProblemError("NODE_ERROR", told, {
    grpc_code: codeName(code),
    ...(reason === undefined ? {} : { reason }),
    cause: error,
  });
  return { problem, outcome: "refused" };
}

/** The sentence about a node that refuses a password which the console has verified. */
export function otherPassword({ name }: NodeState): string {
  return `${name} has another password than this console's: give it the same ADMIN_PASSWORD_HASH, or see whether it was started with -no_password_path`;
}

function offline(name: string): ProblemError {
  return new ProblemError(
    "NODE_OFFLINE",
    `${name}, where this user's root lives, cannot be reached; nothing is queued: try again when it is back`,
  );
}
