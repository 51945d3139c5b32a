// A tree of files in memory that models storage, for tests that compare the two.
import type { ErrorCode } from "./errors.ts";

/** A file or directory of the model; `id` is storage's id for it. */
export interface ModelNode {
  id: number;
  name: string;
  parent: ModelNode | undefined;
  /** Entries by name; undefined for a file. */
  readonly children: Map<string, ModelNode> | undefined;
  bytes: Buffer;
  /** Storage's id of its latest item in the trash. */
  trashId: string;
  /** Names from the root down to its place before that. */
  trashedFrom: readonly string[];
}

/** One operation on the model and on storage; nodes are those known before. */
export type ModelOperation =
  | { readonly op: "createDirectory"; readonly parent: ModelNode; readonly name: string }
  | {
      readonly op: "createFile" | "upload";
      readonly parent: ModelNode;
      readonly name: string;
      readonly bytes: Buffer;
    }
  | { readonly op: "write"; readonly node: ModelNode; readonly offset: number; readonly bytes: Buffer }
  | {
      readonly op: "rename";
      readonly node: ModelNode;
      readonly parent: ModelNode;
      readonly name: string;
      readonly onConflict: "fail" | "replace";
    }
  | { readonly op: "remove"; readonly node: ModelNode; readonly recursive: boolean }
  | { readonly op: "trash"; readonly node: ModelNode }
  | {
      readonly op: "restore";
      readonly node: ModelNode;
      readonly trashId: string;
      readonly names: readonly string[] | undefined;
      readonly onConflict: "fail" | "replace";
    }
  | { readonly op: "purge"; readonly node: ModelNode; readonly trashId: string };

/** Result of an operation: a refusal, or the node that it made or changed. */
export type ModelOutcome = ErrorCode | ModelNode | undefined;

/** The tree below one root. */
export class TreeModel {
  readonly root: ModelNode;
  readonly trash: Set<ModelNode> = new Set();

  constructor(rootDirectoryId: number) {
    this.root = newNode("", undefined, new Map());
    this.root.id = rootDirectoryId;
  }

  /** All reachable nodes. */
  nodes(): ModelNode[] {
    return nodesFrom(this.root);
  }

  apply(operation: ModelOperation): ModelOutcome {
    switch (operation.op) {
      case "createDirectory":
        return this.#create(operation.parent, operation.name, undefined);
      case "createFile":
        return this.#create(operation.parent, operation.name, operation.bytes);
      case "upload":
        return this.#upload(operation.parent, operation.name, operation.bytes);
      case "write":
        return this.#write(operation.node, operation.offset, operation.bytes);
      case "rename":
        return this.#rename(operation);
      case "trash":
        return this.#trash(operation.node);
      case "restore":
        return this.#restore(operation);
      case "purge":
        if (operation.node.trashId === operation.trashId) this.trash.delete(operation.node);
        return undefined;
      default:
        return this.#remove(operation.node, operation.recursive);
    }
  }

  #trash(node: ModelNode): ModelOutcome {
    if (node === this.root) return "BAD_ARGUMENT";
    if (!this.#isAttached(node)) return "NO_SUCH_PATH";
    node.trashedFrom = pathOf(node);
    this.#detach(node);
    this.trash.add(node);
    return node;
  }

  #restore(restore: Extract<ModelOperation, { op: "restore" }>): ModelOutcome {
    const { node, trashId, onConflict } = restore;
    if (!this.trash.has(node) || node.trashId !== trashId) return "NO_SUCH_PATH";
    const names = restore.names ?? node.trashedFrom;
    let parent = this.root;
    const made: ModelNode[] = [];
    const refuse = (code: ErrorCode): ErrorCode => {
      for (const folder of made.toReversed()) this.#detach(folder);
      return code;
    };
    for (const name of names.slice(0, -1)) {
      let next = parent.children?.get(name);
      if (next === undefined) {
        next = newNode(name, parent, new Map());
        parent.children?.set(name, next);
        made.push(next);
      }
      if (next.children === undefined) return refuse("NOT_DIRECTORY");
      parent = next;
    }
    const name = names.at(-1) ?? "";
    const target = parent.children?.get(name);
    if (target !== undefined) {
      const refusal = onConflict === "fail" ? "PATH_EXISTS" : whyNotReplaced(target, node);
      if (refusal !== undefined) return refuse(refusal);
      this.#detach(target);
    }
    this.trash.delete(node);
    node.name = name;
    node.parent = parent;
    parent.children?.set(name, node);
    return node;
  }

  #isAttached(node: ModelNode): boolean {
    let top = node;
    while (top.parent !== undefined) top = top.parent;
    return top === this.root;
  }

  #create(parent: ModelNode, name: string, bytes: Buffer | undefined): ModelOutcome {
    if (!this.#isAttached(parent)) return "NO_SUCH_PATH";
    if (parent.children === undefined) return "NOT_DIRECTORY";
    if (parent.children.has(name)) return "PATH_EXISTS";
    const children = bytes === undefined ? new Map<string, ModelNode>() : undefined;
    const node = newNode(name, parent, children, bytes);
    parent.children.set(name, node);
    return node;
  }

  #upload(parent: ModelNode, name: string, bytes: Buffer): ModelOutcome {
    const existing = this.#isAttached(parent) ? parent.children?.get(name) : undefined;
    if (existing === undefined) return this.#create(parent, name, bytes);
    if (existing.children !== undefined) return "IS_DIRECTORY";
    existing.bytes = bytes;
    return existing;
  }

  #write(node: ModelNode, offset: number, bytes: Buffer): ModelOutcome {
    if (!this.#isAttached(node)) return "NO_SUCH_PATH";
    if (node.children !== undefined) return "IS_DIRECTORY";
    const grown = Buffer.alloc(Math.max(node.bytes.length, offset + bytes.length));
    node.bytes.copy(grown);
    bytes.copy(grown, offset);
    node.bytes = grown;
    return node;
  }

  #rename(move: Extract<ModelOperation, { op: "rename" }>): ModelOutcome {
    const { node, parent, name, onConflict } = move;
    if (node === this.root) return "BAD_ARGUMENT";
    if (!this.#isAttached(node)) return "NO_SUCH_PATH";
    if (!this.#isAttached(parent)) return "NO_SUCH_PATH";
    if (parent.children === undefined) return "NOT_DIRECTORY";
    for (let above: ModelNode | undefined = parent; above !== undefined; above = above.parent) {
      if (above === node) return "BAD_ARGUMENT";
    }
    const target = parent.children.get(name);
    if (target === node) return node;
    if (target !== undefined) {
      if (onConflict === "fail") return "PATH_EXISTS";
      const refusal = whyNotReplaced(target, node);
      if (refusal !== undefined) return refusal;
      this.#detach(target);
    }
    this.#detach(node);
    node.name = name;
    node.parent = parent;
    parent.children.set(name, node);
    return node;
  }

  #remove(node: ModelNode, recursive: boolean): ModelOutcome {
    if (node === this.root) return "BAD_ARGUMENT";
    if (!this.#isAttached(node)) return "NO_SUCH_PATH";
    if (!recursive && (node.children?.size ?? 0) > 0) return "NOT_EMPTY";
    this.#detach(node);
    return undefined;
  }

  #detach(node: ModelNode): void {
    node.parent?.children?.delete(node.name);
    // A detached node is its own top, so it is not below the root.
    node.parent = undefined;
  }
}

function newNode(
  name: string,
  parent: ModelNode | undefined,
  children: Map<string, ModelNode> | undefined,
  bytes: Buffer = Buffer.alloc(0),
): ModelNode {
  return { id: 0, name, parent, children, bytes, trashId: "", trashedFrom: [] };
}

function whyNotReplaced(target: ModelNode, node: ModelNode): ErrorCode | undefined {
  if (target.children !== undefined && node.children === undefined) return "IS_DIRECTORY";
  if (target.children === undefined && node.children !== undefined) return "NOT_DIRECTORY";
  return (target.children?.size ?? 0) > 0 ? "NOT_EMPTY" : undefined;
}

/** Names from the root down to a node. */
export function pathOf(node: ModelNode): string[] {
  return node.parent === undefined ? [] : [...pathOf(node.parent), node.name];
}

/** A node and everything below it. */
export function nodesFrom(node: ModelNode): ModelNode[] {
  return [node, ...[...(node.children?.values() ?? [])].flatMap(nodesFrom)];
}

/** Bytes of everything below a node. */
export function sizeOf(node: ModelNode): number {
  if (node.children === undefined) return node.bytes.length;
  return [...node.children.values()].reduce((sum, child) => sum + sizeOf(child), 0);
}
