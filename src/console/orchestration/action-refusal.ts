// Why an action is not begun; nothing has run then, and nothing is locked.
import type { HeldNode } from "./node-locks.ts";

/** The reasons. */
export type ActionRefusalReason =
  /** A node of it is not enrolled for SSH. */
  | "unknown-node"
  /** Another action holds nodes of it. */
  | "locked"
  /** The request cannot be carried out as it is. */
  | "invalid"
  /** Too many wait already. */
  | "busy"
  /** Its record, or its line in the audit log, cannot be written. */
  | "unrecorded"
  /** There is no SSH key, or the console stops. */
  | "unavailable";

/** Thrown when an action is not begun; the message is for operators. */
export class ActionRefusal extends Error {
  override readonly name = "ActionRefusal";
  readonly reason: ActionRefusalReason;
  /** With `locked`: who holds which node. */
  readonly heldBy: readonly HeldNode[];
  /** With `unknown-node`: which one. */
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
