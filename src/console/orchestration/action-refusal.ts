// The reasons why an action is refused; a refused action runs nothing and locks nothing.
import type { HeldNode } from "./node-locks.ts";

/** The reasons. */
export type ActionRefusalReason =
  /** One of its nodes is not enrolled for SSH. */
  | "unknown-node"
  /** Another action holds one of its nodes. */
  | "locked"
  /** The request cannot be carried out as it is. */
  | "invalid"
  /** The queue is full. */
  | "busy"
  /** Its record, or its line in the audit log, cannot be written. */
  | "unrecorded"
  /** There is no SSH key, or the console stops. */
  | "unavailable";

/** Thrown for a refused action; the message is for operators. */
export class ActionRefusal extends Error {
  override readonly name = "ActionRefusal";
  readonly reason: ActionRefusalReason;
  /** With `locked`: the holder of each node. */
  readonly heldBy: readonly HeldNode[];
  /** With `unknown-node`: its id. */
  readonly nodeId: string | undefined;

  constructor(
    reason: ActionRefusalReason,
    message: string,
    more: { readonly heldBy?: readonly HeldNode[]; readonly nodeId?: string; readonly cause?: unknown } = {},
  ) {
    super(message, more.cause === undefined ? undefined : { cause: more.cause });
    this.reason = reason;
    this.heldBy = more.heldBy ?? [];
    this.nodeId = more.nodeId;
  }
}
