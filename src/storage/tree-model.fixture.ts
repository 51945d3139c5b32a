// A tree of files in plain memory that does what storage promises, for tests that compare the two.
import type { ErrorCode } from "#base/errors.ts";

/** A file or directory of the model; `id` is what storage called it. */
export interface ModelNode {
  id: number;
  name: string;
  parent: ModelNode | undefined;
  /** Entries by name; undefined for a file. */
  readonly children: Map<string, ModelNode> | undefined;
  bytes: Buffer;
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
  | { readonly op: "remove"; readonly node: ModelNode; readonly recursive: boolean };

/** What an operation comes to: a refusal, or the node that it made or changed. */
export type ModelOutcome = ErrorCode | ModelNode | undefined;

/** The tree below one root. */
export class TreeModel {
  readonly root: ModelNode;

  constructor(rootDirectoryId: number) {
    this.root = {
      id: rootDirectoryId,
      name: "",
      parent: undefined,
      children: new Map(),
      bytes: Buffer.alloc(0),
    };
  }

  /** All nodes that can be reached. */
  nodes(): ModelNode[] {
    const nodes: ModelNode[] = [];
    const visit = (node: ModelNode): void => {
      nodes.push(node);
      for (const child of node.children?.values() ?? []) visit(child);
    };
    visit(this.root);
    return nodes;
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
      default:
        return this.#remove(operation.node, operation.recursive);
    }
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
    const node: ModelNode = { id: 0, name, parent, children, bytes: bytes ?? Buffer.alloc(0) };
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
      if (target.children !== undefined && node.children === undefined) return "IS_DIRECTORY";
      if (target.children === undefined && node.children !== undefined) return "NOT_DIRECTORY";
      if ((target.children?.size ?? 0) > 0) return "NOT_EMPTY";
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

/** Bytes of everything below a node. */
export function sizeOf(node: ModelNode): number {
  if (node.children === undefined) return node.bytes.length;
  return [...node.children.values()].reduce((sum, child) => sum + sizeOf(child), 0);
}
