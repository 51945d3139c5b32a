// Model of one root in memory: names, bytes, trash, shares and quota, by the specification and the decisions.

/** The caller: the root's owner, or one of two users with whom parts of it may be shared. */
export type By = "owner" | "sharee0" | "sharee1";

/** A file or folder. */
export interface Node {
  name: string;
  parent: Node | undefined;
  /** By name; undefined for a file. */
  readonly children: Map<string, Node> | undefined;
  bytes: Buffer;
  readonly createdBy: By;
  readonly grants: Set<By>;
  /** Users excluded from the share of a folder above. */
  readonly exclusions: Set<By>;
  /** Undefined when the server chose it. */
  mtimeMs: number | undefined;
  /** The server's id, once it is known. */
  id: string | undefined;
  /** The server's etag of the current version, once it is known. */
  etag: string | undefined;
  /** Etags of earlier versions, which must not come again. */
  readonly formerEtags: Set<string>;
}

/** An item of the trash. */
export interface TrashedNode {
  readonly node: Node;
  readonly path: string;
  readonly by: By;
  readonly formerShares: readonly { readonly path: string; readonly user: By }[];
  /** Exclusions of folders above, for those that a restore makes anew. */
  readonly keptOut: readonly { readonly path: string; readonly user: By }[];
  /** Once the server has shown it. */
  id: string | undefined;
}

/** The nodes on the way to a path. */
export interface Walk {
  /** From the root's directory to the deepest node that exists. */
  readonly chain: readonly [Node, ...Node[]];
  readonly last: Node;
  readonly names: readonly string[];
  readonly missing: readonly string[];
}

const DEFAULT_QUOTA_BYTES = 17_179_869_184;

/** The state of a root. */
export class FileModel {
  root: Node = makeNode({ name: "", createdBy: "owner", children: new Map() });
  trash: TrashedNode[] = [];
  quotaBytes = DEFAULT_QUOTA_BYTES;

  /** All nodes that can be reached. */
  nodes(): Node[] {
    return nodesFrom(this.root);
  }

  usedBytes(): number {
    return sizeOf(this.root) + this.trash.reduce((sum, { node }) => sum + sizeOf(node), 0);
  }

  walk(path: string): Walk {
    const names = path.split("/").filter((name) => name !== "");
    const chain: [Node, ...Node[]] = [this.root];
    let last = this.root;
    for (const [at, name] of names.entries()) {
      const next = last.children?.get(name);
      if (next === undefined) return { chain, last, names, missing: names.slice(at) };
      chain.push(next);
      last = next;
    }
    return { chain, last, names, missing: [] };
  }

  /** Returns the refusal for a user to whom the nearest share or exclusion on the way denies access. */
  whyNot({ chain }: Walk, by: By, right: "read" | "write" | "delete"): string | undefined {
    if (by === "owner") return undefined;
    if (right === "delete") return "NOT_OWNER";
    return letsIn(chain, by) ? undefined : "NOT_SHARED";
  }

  /** Returns the refusal when this many bytes do not fit; a new entry also needs a root below its quota. */
  whyNoRoom(addsBytes: number, creates: boolean): string | undefined {
    const used = this.usedBytes();
    if (creates && used >= this.quotaBytes) return "QUOTA_EXCEEDED";
    return used > this.quotaBytes || addsBytes > this.quotaBytes - used ? "QUOTA_EXCEEDED" : undefined;
  }

  /** Returns a copy that shares only bytes, which never change in place. */
  clone(): FileModel {
    const copy = new FileModel();
    copy.root = cloneNode(this.root, undefined);
    copy.trash = this.trash.map((item) => ({ ...item, node: cloneNode(item.node, undefined) }));
    copy.quotaBytes = this.quotaBytes;
    return copy;
  }

  /**
   * Returns all of it in one line, to tell states apart; also by what is known of versions, which each order
   * of calls leaves differently.
   */
  fingerprint(): string {
    const line = (node: Node): string => {
      const known = `${node.name}:${node.id}:${node.etag}:${node.mtimeMs}:${[...node.formerEtags].toSorted().join()}`;
      if (node.children === undefined) return `${known}:${node.bytes.length}`;
      return `${known}{${[...node.children.values()].map(line).toSorted().join(",")}}`;
    };
    return `${line(this.root)}|${this.trash
      .map(({ node, id, path }) => `${id}${path}${line(node)}`)
      .toSorted()
      .join()}`;
  }
}

/** Makes a node without a parent. */
export function makeNode(made: {
  name: string;
  createdBy: By;
  children?: Map<string, Node>;
  bytes?: Buffer;
  mtimeMs?: number | undefined;
}): Node {
  return {
    name: made.name,
    parent: undefined,
    children: made.children,
    bytes: made.bytes ?? Buffer.alloc(0),
    createdBy: made.createdBy,
    grants: new Set(),
    exclusions: new Set(),
    mtimeMs: made.mtimeMs,
    id: undefined,
    etag: undefined,
    formerEtags: new Set(),
  };
}

/** Puts a node into a folder under a name. */
export function hang(parent: Node, name: string, node: Node): void {
  node.name = name;
  node.parent = parent;
  parent.children?.set(name, node);
  changed(parent);
}

/** Takes a node out of its folder. */
export function unhang(node: Node): void {
  if (node.parent === undefined) return;
  node.parent.children?.delete(node.name);
  changed(node.parent);
  node.parent = undefined;
}

/** Gives it a new version. */
export function changed(node: Node): void {
  if (node.etag !== undefined) node.formerEtags.add(node.etag);
  node.etag = undefined;
  node.mtimeMs = undefined;
}

/** Gives it a new version without a new change time, as a move does. */
export function moved(node: Node): void {
  const { mtimeMs } = node;
  changed(node);
  node.mtimeMs = mtimeMs;
}

/** Absolute inside the root. */
export function pathOf(node: Node): string {
  if (node.parent === undefined) return "/";
  const above = pathOf(node.parent);
  return above === "/" ? `/${node.name}` : `${above}/${node.name}`;
}

/** Whom the nearest share or exclusion above a node keeps out, but those with a row of its own. */
export function keptOutAbove(node: Node, own: ReadonlySet<By>): { path: string; user: By }[] {
  const decided = new Set(own);
  const kept: { path: string; user: By }[] = [];
  for (let above = node.parent; above !== undefined; above = above.parent) {
    for (const user of above.exclusions) if (!decided.has(user)) kept.push({ path: pathOf(above), user });
    for (const user of [...above.grants, ...above.exclusions]) decided.add(user);
  }
  return kept;
}

/** A node and everything below it. */
export function nodesFrom(node: Node): Node[] {
  return node.children === undefined ? [node] : [node, ...[...node.children.values()].flatMap(nodesFrom)];
}

/** Bytes of a file, or of everything below a folder. */
export function sizeOf(node: Node): number {
  if (node.children === undefined) return node.bytes.length;
  let sum = 0;
  for (const child of node.children.values()) sum += sizeOf(child);
  return sum;
}

/** True when the deepest node of a chain that has a share or exclusion of the user grants access. */
export function letsIn(chain: readonly Node[], by: By): boolean {
  return (
    chain.findLast(({ grants, exclusions }) => grants.has(by) || exclusions.has(by))?.grants.has(by) ?? false
  );
}

/** Returns a node and those above it, the root first. */
export function chainOf(node: Node): Node[] {
  return node.parent === undefined ? [node] : [...chainOf(node.parent), node];
}

/** Returns users with whom a node is shared, there or above. */
export function sharedWith(node: Node): By[] {
  const chain = chainOf(node);
  return (["sharee0", "sharee1"] as const).filter((user) => letsIn(chain, user));
}

function cloneNode(node: Node, parent: Node | undefined): Node {
  const copy: Node = {
    ...node,
    parent,
    children: node.children === undefined ? undefined : new Map(),
    grants: new Set(node.grants),
    exclusions: new Set(node.exclusions),
    formerEtags: new Set(node.formerEtags),
  };
  for (const [name, child] of node.children ?? []) copy.children?.set(name, cloneNode(child, copy));
  return copy;
}
