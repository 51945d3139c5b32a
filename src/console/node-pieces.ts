// Each node's part of the views as JSON that is ready to be sent, written anew only when the node has changed.
import { stringify64 } from "#base/json64.ts";
import type { NodeState } from "./cluster-state.ts";
import { type NodeFigures, operatorPartOf, publicNodeOf } from "./node-view.ts";

/** One node in both forms, as bytes. */
export interface NodePiece {
  readonly public: Buffer;
  readonly operator: Buffer;
}

interface Kept extends NodePiece {
  readonly node: NodeState;
  readonly maps: readonly [storage: KeptMap, quota: KeptMap];
}

/** A map of users with its JSON. */
interface KeptMap {
  readonly map: ReadonlyMap<string, bigint>;
  readonly json: string;
}

const NO_USERS: KeptMap = { map: new Map(), json: "{}" };

/** The pieces of all nodes. */
export class NodePieces {
  readonly #figuresOf: (nodeId: string) => NodeFigures;
  readonly #kept = new Map<string, Kept>();

  constructor(figuresOf: (nodeId: string) => NodeFigures) {
    this.#figuresOf = figuresOf;
  }

  /** The piece of a node, written now if it has changed. Its figures are looked at only then. */
  of(node: NodeState): NodePiece {
    const kept = this.#kept.get(node.id);
    if (kept?.node === node) return kept;
    return this.#write(node, kept);
  }

  /** Has the next look write the piece anew, for figures that have changed. */
  forget(nodeId: string): void {
    const kept = this.#kept.get(nodeId);
    if (kept !== undefined) this.#kept.set(nodeId, { ...kept, node: { ...kept.node } });
  }

  /** Drops the piece of a node that is no more. */
  drop(nodeId: string): void {
    this.#kept.delete(nodeId);
  }

  #write(node: NodeState, before: Kept | undefined): NodePiece {
    const [storage = NO_USERS, quota = NO_USERS] = before?.maps ?? [];
    const maps = [
      keep(node.lastGood?.perUserStorage, storage),
      keep(node.lastGood?.perUserQuota, quota),
    ] as const;
    const text = JSON.stringify(publicNodeOf(node, this.#figuresOf(node.id)));
    const operatorText = JSON.stringify(operatorPartOf(node));
    const kept: Kept = {
      node,
      maps,
      public: Buffer.from(text),
      operator: Buffer.from(
        `${text.slice(0, -1)},${operatorText.slice(1, -1)},"per_user_storage":${maps[0].json},"per_user_quota":${maps[1].json}}`,
      ),
    };
    this.#kept.set(node.id, kept);
    return kept;
  }
}

function keep(map: ReadonlyMap<string, bigint> | undefined, before: KeptMap): KeptMap {
  if (map === undefined) return NO_USERS;
  if (map === before.map) return before;
  let json = "";
  for (const [username, bytes] of map) json += `,${JSON.stringify(username)}:${stringify64(bytes)}`;
  return { map, json: `{${json.slice(1)}}` };
}
