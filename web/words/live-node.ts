// A node as the pages have it, from the socket or a poll.
import type { OperatorNode, PublicNode } from "#wire/webapi/cluster.ts";

/** A node as the pages have it: an operator's fields may be missing. */
export type LiveNode = PublicNode & Partial<OperatorNode>;
