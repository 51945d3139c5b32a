// A folder's visible content as comparable lines: the expected one, and that of a store.
import { createHash } from "node:crypto";
import { crc32 } from "node:zlib";
import type { Inode, InodeId } from "#storage/contract/inode.ts";
import type { SharedPath, Storage } from "#storage/contract/storage.ts";
import { OWNER, readAll } from "#storage/local/store.fixture.ts";

const PAGE = 1_000;

/** A file in a listing. */
export interface ListedFile {
  readonly length: number;
  readonly crc32: number;
}

/** The bytes of a file, or its listing; null for a folder. */
export type Node = Buffer | ListedFile | null;

/** An item of the trash. */
export interface TrashedNodes {
  /** Where it was. */
  readonly path: string;
  readonly sizeBytes: number;
  /** Everything below it, by its former path; undefined where only a listing is known. */
  readonly nodes: ReadonlyMap<string, Node> | undefined;
}

/** All that users see of a folder. */
export interface FolderContents {
  /** Everything below it, by its path from there. */
  readonly nodes: ReadonlyMap<string, Node>;
  /** Items of the trash that were in it, in the order in which they were trashed. */
  readonly trash: readonly TrashedNodes[];
  /** As "path user". */
  readonly grants: ReadonlySet<string>;
}

/** A folder that is empty, or missing. */
export const NOTHING: FolderContents = { nodes: new Map(), trash: [], grants: new Set() };

/** Methods of a store that reading it needs. */
export interface StoreView extends Pick<Storage, "root" | "resolve" | "list" | "openFile" | "listTrash"> {
  /** All grants of the one root. */
  grants(): readonly SharedPath[];
}

/** The view of an open store. */
export function viewOf(storage: Storage): StoreView {
  return {
    root: (owner) => storage.root(owner),
    resolve: (owner, names) => storage.resolve(owner, names),
    list: (id, page) => storage.list(id, page),
    openFile: (id) => storage.openFile(id),
    listTrash: (owner, query) => storage.listTrash(owner, query),
    grants: () => storage.shares.ofRoot(OWNER),
  };
}

/** Turns a file of a store into a node. */
export type ReadNode = (view: StoreView, entry: Inode) => Node | Promise<Node>;

/** Takes a file's listing; for callers that have compared all bytes with their checksums. */
export const asListed: ReadNode = (_, { sizeBytes, crc32 }) => ({ length: sizeBytes, crc32 });

/** Returns the folders in the root. Rejects when a size is not the sum of the sizes below. */
export async function foldersOf(
  view: StoreView,
  readNode: ReadNode = (from, { id }) => readAll(from, id),
): Promise<Map<string, FolderContents>> {
  const root = view.root(OWNER);
  const folders = new Map<string, FolderContents>();
  if (root === undefined) return folders;
  const items = view.listTrash(OWNER, { limit: PAGE, pageToken: "" }).items.toReversed();
  const grants = view.grants();
  let sum = 0;
  for (const { id, name, sizeBytes } of entriesOf(view, root.directoryId)) {
    const nodes = new Map<string, Node>();
    await readFolder(view, readNode, { id, prefix: "" }, nodes);
    const prefix = `/${name}/`;
    const trash = items
      .filter(({ originalPath }) => originalPath.startsWith(prefix))
      .map(({ originalPath, sizeBytes: trashed }) => ({
        path: originalPath.slice(prefix.length),
        sizeBytes: trashed,
        nodes: undefined,
      }));
    const held = grants
      .filter(({ path }) => path.startsWith(prefix))
      .map(({ path, username }) => `${path.slice(prefix.length)} ${username}`);
    folders.set(name, { nodes, trash, grants: new Set(held) });
    if (totalOf(nodes) !== sizeBytes)
      throw new Error(`/${name} says ${sizeBytes} bytes, its files have ${totalOf(nodes)}`);
    sum += sizeBytes;
  }
  const { liveBytes, trashBytes } = root.usage;
  const trashed = items.reduce((total, { sizeBytes }) => total + sizeBytes, 0);
  if (liveBytes !== sum || trashBytes !== trashed) {
    throw new Error(
      `the root counts ${liveBytes} and ${trashBytes} bytes; its files have ${sum} and its trash ${trashed}`,
    );
  }
  return folders;
}

function entriesOf(view: StoreView, id: InodeId): ReturnType<StoreView["list"]>["entries"] {
  return view.list(id, { limit: PAGE, pageToken: "", sort: "name" }).entries;
}

async function readFolder(
  view: StoreView,
  readNode: ReadNode,
  { id, prefix }: { id: InodeId; prefix: string },
  nodes: Map<string, Node>,
): Promise<void> {
  for (const entry of entriesOf(view, id)) {
    const path = prefix + entry.name;
    if (entry.kind === "file") {
      nodes.set(path, await readNode(view, entry));
      continue;
    }
    nodes.set(path, null);
    await readFolder(view, readNode, { id: entry.id, prefix: `${path}/` }, nodes);
  }
}

/** Bytes of all files. */
export function totalOf(nodes: ReadonlyMap<string, Node>): number {
  return [...nodes.values()].reduce((sum, node) => sum + (node?.length ?? 0), 0);
}

/** How lines identify the bytes of a file. */
export type Digest = (node: Buffer | ListedFile) => string;

/** Remembers the digests of bytes. */
function remembering(digest: (bytes: Buffer) => string): (bytes: Buffer) => string {
  const digests = new WeakMap<Buffer, string>();
  return (bytes) => {
    let known = digests.get(bytes);
    if (known === undefined) {
      known = digest(bytes);
      digests.set(bytes, known);
    }
    return known;
  };
}

const sha256Of = remembering((bytes) => createHash("sha256").update(bytes).digest("hex"));
const crc32Of = remembering((bytes) => String(crc32(bytes)));

/** SHA-256, of bytes that were read. */
export const bySha256: Digest = (node) => {
  if (!(node instanceof Buffer)) throw new TypeError("a listing has no bytes");
  return sha256Of(node);
};

/** CRC-32, of bytes or as listed. */
export const byCrc32: Digest = (node) => ("crc32" in node ? String(node.crc32) : crc32Of(node));

/** One line for each item, in order: equal when users can see no difference. */
export function linesOf({ nodes, trash, grants }: FolderContents, digest: Digest = bySha256): string {
  const lines = [...nodes].map(([path, node]) =>
    node === null ? `${path}/` : `${path} ${node.length} ${digest(node)}`,
  );
  for (const { path, sizeBytes } of trash) lines.push(`trash: ${path} ${sizeBytes}`);
  for (const grant of grants) lines.push(`grant: ${grant}`);
  return lines.toSorted().join("\n");
}
