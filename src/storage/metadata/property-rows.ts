// Rows of properties as the writer keeps them: what WebDAV programs keep with an inode (RFC 4918, section 4).
import type { DatabaseSync, StatementSync } from "node:sqlite";
import { GroveError } from "#base/errors.ts";
import type { InodeId } from "#storage/contract/inode.ts";
import { PROPERTIES_MAX_BYTES, type PropertyEdit } from "#storage/contract/properties.ts";
import type { Ledger, RootState } from "./unit-of-work.ts";

/** Bytes of one row, in SQL. */
export const PROPERTY_BYTES = "octet_length(namespace) + octet_length(name) + octet_length(xml)";

/** Statements on properties, whose bytes root.property_bytes counts. */
export class PropertyRows {
  readonly #ledger: Ledger;
  readonly #bytesOf: StatementSync;
  readonly #put: StatementSync;
  readonly #remove: StatementSync;
  readonly #copy: StatementSync;
  readonly #drop: StatementSync;
  /** Bytes that the running command has dropped with inodes. */
  #dropped = 0;

  constructor(db: DatabaseSync, ledger: Ledger) {
    this.#ledger = ledger;
    this.#bytesOf = db.prepare(
      `SELECT coalesce(sum(${PROPERTY_BYTES}), 0) AS bytes FROM property WHERE inode_id = ?`,
    );
    this.#put = db.prepare(
      `INSERT INTO property (inode_id, namespace, name, xml) VALUES (?, ?, ?, ?)
       ON CONFLICT (inode_id, namespace, name) DO UPDATE SET xml = excluded.xml`,
    );
    this.#remove = db.prepare("DELETE FROM property WHERE inode_id = ? AND namespace = ? AND name = ?");
    this.#copy = db.prepare(
      "INSERT INTO property (inode_id, namespace, name, xml) SELECT ?, namespace, name, xml FROM property WHERE inode_id = ?",
    );
    this.#drop = db.prepare("DELETE FROM property WHERE inode_id = ?");
  }

  /** Changes an inode's properties and returns the bytes added. Throws BAD_ARGUMENT for too many bytes. */
  change(root: RootState, inodeId: InodeId, edits: readonly PropertyEdit[]): number {
    const before = this.#bytes(inodeId);
    for (const { kind, namespace, name, xml } of edits) {
      if (kind === "set") this.#put.run(inodeId, namespace, name, xml);
      else this.#remove.run(inodeId, namespace, name);
    }
    const after = this.#bytes(inodeId);
    if (after > PROPERTIES_MAX_BYTES && after > before) {
      throw new GroveError(
        "BAD_ARGUMENT",
        `properties have at most ${PROPERTIES_MAX_BYTES} bytes at one place`,
      );
    }
    this.#add(root, after - before);
    return after - before;
  }

  /** Copies properties to a new inode and returns their bytes. */
  copy(root: RootState, from: InodeId, to: InodeId): number {
    if (root.propertyBytes === 0 || Number(this.#copy.run(to, from).changes) === 0) return 0;
    const bytes = this.#bytes(to);
    this.#add(root, bytes);
    return bytes;
  }

  /** Drops what an inode has that goes for good; the root may have gone before it. Returns the rows. */
  drop(root: RootState | undefined, inodeId: InodeId): number {
    if (root?.propertyBytes === 0) return 0;
    const bytes = root === undefined ? 0 : this.#bytes(inodeId);
    if (root !== undefined) this.#add(root, -bytes);
    this.#dropped += bytes;
    return Number(this.#drop.run(inodeId).changes);
  }

  /** Bytes dropped with inodes since the last call: the answer of a command says that they have gone. */
  takeDropped(): number {
    const dropped = this.#dropped;
    this.#dropped = 0;
    return dropped;
  }

  #bytes(inodeId: InodeId): number {
    return (this.#bytesOf.get(inodeId) as { bytes: number }).bytes;
  }

  #add(root: RootState, bytes: number): void {
    if (bytes !== 0) this.#ledger.addBytes(root, "propertyBytes", bytes);
  }
}
