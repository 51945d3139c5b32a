// Resolves the nodes that an action names, with a plan for each (spec 4.7, D7).
import { isGroveError } from "#base/errors.ts";
import { ACTION_NODES_MAX } from "#base/limits.ts";
import type { SshNode } from "#base/ssh-node.ts";
import type { ActionRequest } from "#wire/webapi/action-request.ts";
import { planFor } from "./action-arguments.ts";
import type { JobNode } from "./action-job.ts";
import { ActionRefusal } from "./action-refusal.ts";

/**
 * The nodes by id with their plans; "all" skips nodes that lack what the action needs. Throws ActionRefusal.
 */
export function plannedNodes(request: ActionRequest, enrolled: readonly SshNode[]): JobNode[] {
  const chosen = request.nodes === "all" ? enrolled : request.nodes.map((id) => enrolledNode(enrolled, id));
  const planned = chosen
    .toSorted((a, b) => (a.id < b.id ? -1 : 1))
    .flatMap((node): JobNode[] => {
      try {
        return [{ node, plan: planFor(request, node) }];
      } catch (error) {
        if (!isGroveError(error, "BAD_ARGUMENT")) throw error;
        if (request.nodes === "all") return [];
        throw new ActionRefusal("invalid", error.message, { cause: error });
      }
    });
  if (planned.length === 0)
    throw new ActionRefusal("invalid", "no enrolled node is meant by this; grove node add enrols one");
  if (planned.length <= ACTION_NODES_MAX) return planned;
  throw new ActionRefusal("invalid", `an action runs on at most ${ACTION_NODES_MAX} nodes`);
}

/** One enrolled node. Throws ActionRefusal for an unknown id. */
export function enrolledNode(enrolled: readonly SshNode[], id: string): SshNode {
  const node = enrolled.find((each) => each.id === id);
  if (node !== undefined) return node;
  throw new ActionRefusal(
    "unknown-node",
    `no node "${id}" is enrolled for actions; grove node add enrols one`,
    { nodeId: id },
  );
}
