// Results of calls, in a form in which the model's and the server's compare as text.
import { crc32 } from "node:zlib";
import type { By } from "./file-model.ts";
import { type Node, pathOf, sharedWith, sizeOf } from "./file-model.ts";

/** An inode as a caller sees it. */
export interface Facts {
  readonly id: string;
  readonly parentId: string;
  readonly path: string;
  readonly name: string;
  readonly kind: "file" | "folder";
  readonly size: number;
  readonly mtimeMs: number;
  readonly shared: string;
  readonly etag: string;
  readonly crc32: number;
  readonly childCount: number;
  readonly createdBy: string;
  readonly permissions: string;
  readonly damaged: boolean;
}

/** An item of the trash as its owner sees it. */
export interface ItemFacts {
  readonly id: string;
  readonly path: string;
  readonly kind: "file" | "folder";
  readonly size: number;
  readonly inodes: number;
  readonly by: string;
  readonly parentExists: boolean;
  readonly formerShares: string;
}

/** A refusal's reason, or the call's answer. */
export type Outcome =
  | { readonly refused: string }
  | { readonly attr: Facts }
  | { readonly entries: readonly Facts[] }
  | { readonly items: readonly ItemFacts[] }
  | { readonly numbers: Readonly<Record<string, number>> };

const known = new WeakMap<Buffer, number>();

/** Of contents, which are never changed in place. */
export function crcOf(bytes: Buffer): number {
  const crc = known.get(bytes) ?? crc32(bytes);
  known.set(bytes, crc);
  return crc;
}

/**
 * The model's facts about a node. Values that only the server can know are adopted when first seen. They must
 * stay while the node is unchanged; a changed one must have a value that it never had.
 */
export function factsOf(node: Node, by: By, seen: Facts | undefined): Facts {
  if (node.id === undefined && seen !== undefined) node.id = seen.id;
  if (node.mtimeMs === undefined && seen !== undefined) node.mtimeMs = seen.mtimeMs;
  if (node.etag === undefined && seen !== undefined && !node.formerEtags.has(seen.etag))
    node.etag = seen.etag;
  const { parent } = node;
  return {
    id: node.id ?? "",
    parentId: parent === undefined ? "" : (parent.id ?? seen?.parentId ?? ""),
    path: pathOf(node),
    name: node.name,
    kind: node.children === undefined ? "file" : "folder",
    size: sizeOf(node),
    mtimeMs: node.mtimeMs ?? 0,
    shared: sharedWith(node).join(" "),
    etag: node.etag ?? `another one than ${[...node.formerEtags].join(", ")}`,
    crc32: node.children === undefined ? crcOf(node.bytes) : 0,
    childCount: node.children?.size ?? 0,
    createdBy: node.createdBy,
    permissions: by === "owner" ? "0 1 2" : "0 1",
    damaged: false,
  };
}
