// Which nodes actions can reach, and the command that enrols the others.
import { useQuery } from "@tanstack/react-query";
import type { ActionNodesReply } from "#wire/webapi/action-record.ts";
import { call } from "./api.ts";

/** Who has just typed the command wants to see it. */
const POLL_MS = 10_000;

/** A node as far as enrolment goes. */
export type EnrolledNode = ActionNodesReply["nodes"][number];

/** GET /api/actions/nodes; undefined until it was read, and while the store does not answer. For operators. */
export function useActionNodes(): readonly EnrolledNode[] | undefined {
  return useQuery({
    queryKey: ["action-nodes"],
    queryFn: ({ signal }) => call<ActionNodesReply>("/api/actions/nodes", { signal }),
    refetchInterval: POLL_MS,
  }).data?.nodes;
}
