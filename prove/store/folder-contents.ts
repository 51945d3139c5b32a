// What a folder holds as anybody sees it, as lines that compare: from what is expected, and from a store.
import { createHash } from "node:crypto";
import type { InodeId } from "#storage/inode.ts";
import type { SharedPath, Storage } from "#storage/storage.ts";
import { OWNER } from "#storage/store.fixture.ts";

const PAGE = 1_000;

/** The bytes of a file; null for a folder. */
export type Node = Buffer | null;

/** An item of the trash. */
export interface TrashedNodes {
  /** Where it was. */
  readonly path: string;
  readonly sizeBytes: number;
  /** Everything that went with it, by the path that it had; undefined where only a listing is known. */
  readonly nodes: ReadonlyMap<string, Node> | undefined;
}

/** What anybody sees of a folder. */
export interface FolderContents {
  /** Everything below it, by its path from there. */
  readonly nodes: ReadonlyMap<string, Node>;
  /** Items of the trash that were in it, in the order in which they were trashed. */
  readonly trash: readonly TrashedNodes[];
  /** As "path user". */
  readonly grants: ReadonlySet<string>;
}

/** A folder that is empty, or not there. */
export const NOTHING: FolderContents = { nodes: new Map(), trash: [], grants: new Set() };

/** What a look at a store needs of it. */
export interface StoreView extends Pick<Storage, "root" | "resolve" | "list" | "openFile" | "listTrash"> {
  /** All grants of the one root. */
  grants(): readonly SharedPath[];
}

/** The view of a store that is open. */
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

/** Names in the root. Rejects what is not as it must be: a size that is not the sum of what is below. */
export async function foldersOf(view: StoreView): Promise<Map<string, FolderContents>> {
  const root = view.root(OWNER);
  const folders = new Map<string, FolderContents>();
  if (root === undefined) return folders;
  const items = view.listTrash(OWNER, { limit: PAGE, pageToken: "" }).items.toReversed();
  const grants = view.grants();
  let sum = 0;
  for (const { id, name, sizeBytes } of entriesOf(view, root.directoryId)) {
    const nodes = new Map<string, Node>();
    await readFolder(view, id, "", nodes);
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
  id: InodeId,
  prefix: string,
  nodes: Map<string, Node>,
): Promise<void> {
  for (const entry of entriesOf(view, id)) {
    const path = prefix + entry.name;
    if (entry.kind === "file") {
      nodes.set(path, await readFile(view, entry.id));
      continue;
    }
    nodes.set(path, null);
    await readFolder(view, entry.id, `${path}/`, nodes);
  }
}

async function readFile(view: StoreView, id: InodeId): Promise<Buffer> {
  const content = view.openFile(id);
  try {
    const blocks: Buffer[] = [];
    for (let at = 0; at < content.inode.sizeBytes; at += blocks.at(-1)?.length ?? 0) {
      blocks.push(await content.readBlock(at));
    }
    return Buffer.concat(blocks);
  } finally {
    content.close();
  }
}

/** Bytes of all files. */
export function totalOf(nodes: ReadonlyMap<string, Node>): number {
  return [...nodes.values()].reduce((sum, node) => sum + (node?.length ?? 0), 0);
}

const digests = new WeakMap<Buffer, string>();

function digestOf(bytes: Buffer): string {
  let digest = digests.get(bytes);
  if (digest === undefined) {
    digest = createHash("sha256").update(bytes).digest("hex");
    digests.set(bytes, digest);
  }
  return digest;
}

/** One line for each thing, in order: equal when nobody can see a difference. Files by their SHA-256. */
export function linesOf({ nodes, trash, grants }: FolderContents): string {
  const lines = [...nodes].map(([path, node]) =>
    node === null ? `${path}/` : `${path} ${node.length} ${digestOf(node)}`,
  );
  for (const { path, sizeBytes } of trash) lines.push(`trash: ${path} ${sizeBytes}`);
  for (const grant of grants) lines.push(`grant: ${grant}`);
  return lines.toSorted().join("\n");
}
