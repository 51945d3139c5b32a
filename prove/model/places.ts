// Parts that all expectations of the model share: access to a place, its content, and how it is made free.

import type { By } from "./file-model.ts";
import {
  type FileModel,
  keptOutAbove,
  makeNode,
  type Node,
  nodesFrom,
  pathOf,
  sizeOf,
  type TrashedNode,
  unhang,
  type Walk,
} from "./file-model.ts";
import type { Conflict } from "./operations.ts";
import { factsOf, type ItemFacts, type Outcome } from "./outcome.ts";

/** The model refuses a call, with this reason. */
export class Refused extends Error {
  readonly code: string;

  constructor(code: string) {
    super(code);
    this.code = code;
  }
}

/** The place of an entry, and what occupies it now. */
export interface Slot {
  readonly parent: Node;
  readonly name: string;
  readonly present: Node | undefined;
}

/** One call's view of the model; `seen` is the server's answer. */
export class Places {
  protected readonly model: FileModel;
  protected readonly by: By;
  protected readonly pool: Buffer;
  protected readonly seen: Outcome;

  constructor(model: FileModel, by: By, pool: Buffer, seen: Outcome) {
    this.model = model;
    this.by = by;
    this.pool = pool;
    this.seen = seen;
  }

  protected putIntoTrash(node: Node): TrashedNode {
    const formerShares = nodesFrom(node)
      .flatMap((each) => [...each.grants].map((user) => ({ path: pathOf(each), user })))
      .toSorted((a, b) => (`${a.path}\0${a.user}` < `${b.path}\0${b.user}` ? -1 : 1));
    const keptOut = keptOutAbove(node, new Set([...node.grants, ...node.exclusions]));
    const item: TrashedNode = { node, path: pathOf(node), by: this.by, formerShares, keptOut, id: undefined };
    for (const each of nodesFrom(node)) each.grants.clear();
    unhang(node);
    this.model.trash.push(item);
    return item;
  }

  /** Content that another user than the owner replaces stays the owner's, unless it was empty (D13). */
  protected keepContent(node: Node): void {
    if (this.by === "owner" || node.bytes.length === 0) return;
    const { name, bytes, mtimeMs, createdBy } = node;
    const kept = makeNode({ name, bytes, mtimeMs, createdBy });
    for (const user of node.exclusions) kept.exclusions.add(user);
    const keptOut = keptOutAbove(node, node.exclusions);
    const item = { node: kept, path: pathOf(node), by: this.by, formerShares: [], keptOut, id: undefined };
    this.model.trash.push(item);
  }

  protected itemFacts({ node, path, by, formerShares, id }: TrashedNode): ItemFacts {
    const above = this.model.walk(path.slice(0, path.lastIndexOf("/")));
    return {
      id: id ?? "",
      path,
      kind: node.children === undefined ? "file" : "folder",
      size: sizeOf(node),
      inodes: nodesFrom(node).length,
      by,
      parentExists: above.missing.length === 0 && above.last.children !== undefined,
      formerShares: formerShares.map((share) => `${share.path} ${share.user}`).join(", "),
    };
  }

  protected reach(path: string, right: "read" | "write" | "delete"): Walk {
    const walk = this.model.walk(path);
    this.need(this.model.whyNot(walk, this.by, right));
    return walk;
  }

  protected slot({ chain, last, names, missing }: Walk, rootIsRefusedWith: string): Slot {
    const name = names.at(-1);
    if (name === undefined) throw new Refused(rootIsRefusedWith);
    if (missing.length === 0) return { parent: chain.at(-2) ?? last, name, present: last };
    if (last.children === undefined) throw new Refused("NOT_DIRECTORY");
    if (missing.length > 1) throw new Refused("NO_SUCH_PATH");
    return { parent: last, name, present: undefined };
  }

  /** Frees a place, and returns the name to use. */
  protected makeRoom({ parent, name, present }: Slot, node: Node, onConflict: Conflict): string {
    if (present === undefined) return name;
    if (onConflict === "fail") throw new Refused("PATH_EXISTS");
    if (onConflict === "rename") return this.freeName(parent, name);
    if (present.children !== undefined && node.children === undefined) throw new Refused("IS_DIRECTORY");
    if (present.children === undefined && node.children !== undefined) throw new Refused("NOT_DIRECTORY");
    if ((present.children?.size ?? 0) > 0) throw new Refused("NOT_EMPTY");
    if (this.by !== "owner" && present.children === undefined) this.putIntoTrash(present);
    else unhang(present);
    return name;
  }

  /** Excludes from a node whom what it has replaced had excluded, but for users with a share of the node itself. */
  protected keepOut({ present }: Slot, node: Node, onConflict: Conflict): void {
    if (onConflict !== "replace") return;
    for (const user of present?.exclusions ?? []) if (!node.grants.has(user)) node.exclusions.add(user);
  }

  /** Accepts any free number. */
  protected freeName(parent: Node, name: string): string {
    const dot = name.lastIndexOf(".");
    const [stem, extension] = dot > 0 ? [name.slice(0, dot), name.slice(dot)] : [name, ""];
    const said = "attr" in this.seen ? this.seen.attr.name : "";
    const number = Number(said.slice(stem.length + 2, said.length - extension.length - 1));
    const candidate = `${stem} (${number})${extension}`;
    const isGood = Number.isInteger(number) && number >= 2 && !parent.children?.has(candidate);
    return isGood ? candidate : `${stem} (a free number)${extension}`;
  }

  protected make(name: string, bytes: Buffer | undefined): Node {
    const createdBy = this.by;
    return bytes === undefined
      ? makeNode({ name, createdBy, children: new Map() })
      : makeNode({ name, createdBy, bytes });
  }

  protected attr(node: Node): Outcome {
    return { attr: factsOf(node, this.by, "attr" in this.seen ? this.seen.attr : undefined) };
  }

  protected bytes({ from, length }: { from: number; length: number }): Buffer {
    return this.pool.subarray(from, from + length);
  }

  protected need(refusal: string | undefined): void {
    if (refusal !== undefined) throw new Refused(refusal);
  }

  protected needOwner(): void {
    if (this.by !== "owner") throw new Refused("NOT_OWNER");
  }
}

/** The node at the end of a path. */
export function existing({ last, missing }: Walk): Node {
  if (missing.length > 0) throw new Refused("NO_SUCH_PATH");
  return last;
}

/** The same when it is a file. */
export function file(node: Node): Node {
  if (node.children !== undefined) throw new Refused("IS_DIRECTORY");
  return node;
}

/** The same when it is a folder. */
export function folder(node: Node): Node {
  if (node.children === undefined) throw new Refused("NOT_DIRECTORY");
  return node;
}
