// Properties as a storage engine keeps them: what WebDAV programs keep with an inode (RFC 4918, section 4; D28).
import type { ChangeContext, Inode, InodeId, Usage } from "./inode.ts";

/** Bytes of all properties of one inode, their names included. */
export const PROPERTIES_MAX_BYTES = 65_536;

/** A property that is kept and not understood. */
export interface StoredProperty {
  readonly namespace: string;
  readonly name: string;
  /** The whole element as XML. */
  readonly xml: string;
}

/** One step of a change. */
export interface PropertyEdit extends StoredProperty {
  readonly kind: "set" | "remove";
}

/** Outcome of a change. */
export interface PropertyOutcome {
  readonly usage: Usage;
  readonly usedDeltaBytes: number;
  readonly inodeDelta: number;
}

/** Properties of inodes. Their bytes count as live ones until the inode has gone for good. */
export interface PropertyStorage {
  of(inodeId: InodeId): readonly StoredProperty[];
  /** Bytes of all properties in a root. */
  bytesIn(owner: string): number;
  /** Bytes of properties of an inode and all below it, as they are while it looks; other work goes on meanwhile. */
  copiedBytes(owner: string, inode: Inode): Promise<number>;
  /** All edits in their order, or none. Throws BAD_ARGUMENT for more than PROPERTIES_MAX_BYTES. */
  change(
    change: ChangeContext & { readonly inodeId: InodeId; readonly edits: readonly PropertyEdit[] },
  ): Promise<PropertyOutcome>;
}
