// What operations ask about roots on their way to another node.
import { GroveError } from "#base/errors.ts";

/** The roots of this node that are frozen, or have left it. */
export interface MovingRoots {
  /** True while a root waits for its switch to another node: every call about it is refused for a moment. */
  isFrozen(owner: string): boolean;
  /** Address of the node that holds a root which was here; undefined for any other. */
  addressOf(owner: string): string | undefined;
}

/** How the check of access asks about them; nothing moves on a node that stands alone. */
export function movingPlaces(moves: MovingRoots | undefined): {
  readonly isFrozen: (owner: string) => boolean;
  readonly hasMoved: (owner: string) => boolean;
} {
  return {
    isFrozen: (owner) => moves?.isFrozen(owner) === true,
    hasMoved: (owner) => moves?.addressOf(owner) !== undefined,
  };
}

/** The refusal while a root is between two nodes: at most a few seconds. */
export function rootIsFrozen(): GroveError {
  return new GroveError("NODE_DRAINING", "this root is moving to another server; try again", {
    metadata: { retry_after_ms: "500", moving: "true" },
  });
}

/** The refusal where a root is not here, with the address of its node where that is known. */
export function rootIsElsewhere(address: string | undefined): GroveError {
  return address === undefined
    ? new GroveError("WRONG_NODE", "your root is not on this fileserver; ask the metaserver where it is")
    : new GroveError("WRONG_NODE", `this root is on another fileserver: ${address}`, {
        metadata: { address },
      });
}
