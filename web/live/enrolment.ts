// Nodes that actions can reach, and the enrolment command of the others.
import { useQuery } from "@tanstack/react-query";
import type { ActionNodesReply } from "#wire/webapi/action-record.ts";
import { call } from "./api.ts";

/** Poll interval, short enough for an operator who has just run the command. */
const POLL_MS = 10_000;

/** A node's enrolment. */
export type EnrolledNode = ActionNodesReply["nodes"][number];

/** GET /api/actions/nodes; undefined until it is read, and while the store does not answer. For operators. */
export function useActionNodes(): readonly EnrolledNode[] | undefined {
  return useQuery({
    queryKey: ["action-nodes"],
    queryFn: ({ signal }) => call<ActionNodesReply>("/api/actions/nodes", { signal }),
    refetchInterval: POLL_MS,
  }).data?.nodes;
}
