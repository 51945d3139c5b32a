// Caches each node's part of the views as JSON, rewritten only after a change.
import type { Audience } from "#base/audience.ts";
import type { NodeState } from "./cluster-state.ts";
import { type NodeFigures, operatorPartOf, publicNodeOf } from "./node-view.ts";

/** The JSON of all nodes. */
export class NodeViewCache {
  readonly #figuresOf: (nodeId: string) => NodeFigures;
  readonly #kept: Readonly<Record<Audience, Map<string, Buffer>>> = {
    visitor: new Map(),
    operator: new Map(),
  };

  constructor(figuresOf: (nodeId: string) => NodeFigures) {
    this.#figuresOf = figuresOf;
  }

  /** The JSON of a node, written now after a change. */
  of(node: NodeState, audience: Audience): Buffer {
    const pieces = this.#kept[audience];
    const kept = pieces.get(node.id);
    if (kept !== undefined) return kept;
    const json = Buffer.from(WRITERS[audience](node, this.#figuresOf(node.id)));
    pieces.set(node.id, json);
    return json;
  }

  /** Invalidates the JSON of a changed node. */
  hasChanged(nodeId: string): void {
    for (const pieces of Object.values(this.#kept)) pieces.delete(nodeId);
  }
}

const WRITERS: Readonly<Record<Audience, (node: NodeState, figures: NodeFigures) => string>> = {
  visitor: writePublic,
  operator: writeOperator,
};

function writePublic(node: NodeState, figures: NodeFigures): string {
  return JSON.stringify(publicNodeOf(node, figures));
}

function writeOperator(node: NodeState, figures: NodeFigures): string {
  const part = JSON.stringify(operatorPartOf(node));
  const storage = writeMap(node.lastGood?.perUserStorage);
  const quota = writeMap(node.lastGood?.perUserQuota);
  return (
    `${writePublic(node, figures).slice(0, -1)},${part.slice(1, -1)},` +
    `"per_user_storage":${storage},"per_user_quota":${quota}}`
  );
}

function writeMap(map: ReadonlyMap<string, bigint> | undefined): string {
  let json = "";
  for (const [username, bytes] of map ?? []) json += `,${JSON.stringify(username)}:${json64Text(bytes)}`;
  return `{${json.slice(1)}}`;
}

const MAX_SAFE = BigInt(Number.MAX_SAFE_INTEGER);

/** A count as JSON text: a string above 2^53 - 1 (T17). */
export function json64Text(bytes: bigint): string {
  return bytes <= MAX_SAFE ? bytes.toString() : `"${bytes}"`;
}
