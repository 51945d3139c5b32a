// Who makes a control call: the proof of its sender, and the node for which it speaks (spec 5.6, D20).

/** The proven sender of a node's calls (spec 5.6, D20). */
export type Speaker =
  /** Mock mode: nothing is proven, and the data directory's id stands for the key. */
  | { readonly kind: "mock" }
  /** A certificate that names this very node. */
  | { readonly kind: "named"; readonly keyFingerprint: string }
  /** A certificate that names no node (`localhost`): good for ids first registered with its key. */
  | { readonly kind: "generic"; readonly keyFingerprint: string };

/** A node that acts for itself in a control call. */
export interface NodeCaller {
  readonly fsId: string;
  readonly epoch: number;
  readonly speaker: Speaker;
  /** Time of its data folder's restore, in unix milliseconds; undefined when it was not restored. */
  readonly restoredAtMs?: number | undefined;
  /** True when the node is about to make the claimed root, and needs a number for it. */
  readonly needsNumber?: boolean | undefined;
}

/** A node whose call names no epoch. */
export type NodeOfCall = Pick<NodeCaller, "fsId" | "speaker"> & Partial<Pick<NodeCaller, "epoch">>;

/** What the store says of the senders of nodes' calls that neither read nor change it otherwise. */
export interface NodeGate {
  /**
   * Throws STARTING unless the node is registered, CLIENT_CERT_REQUIRED for one that was removed or that the
   * sender may not speak for, and FENCED for an older epoch where the call names one.
   */
  requireNode(node: NodeOfCall): Promise<void>;

  /** Throws CLIENT_CERT_REQUIRED for a sender whose node was removed and has not joined anew. */
  requireNotRemoved(fsId: string, speaker: Speaker): Promise<void>;
}
