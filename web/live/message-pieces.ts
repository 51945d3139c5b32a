// Splits a message into pieces of a few milliseconds each: a snapshot of a thousand nodes is megabytes.
import type { LiveNode } from "../words/live-node.ts";

/** A message of /ws/cluster. */
export interface LiveMessage {
  readonly type: string;
  readonly seq: number;
  readonly ts: number;
  readonly data: unknown;
}

/** A message, or a part of its nodes. */
export interface MessagePiece {
  /** The message, a snapshot's without its nodes; in the first piece only. */
  readonly message?: LiveMessage;
  readonly nodes?: readonly LiveNode[];
  /** More of this message follows. */
  readonly hasMore: boolean;
}

/** Some milliseconds of work. */
const NODES_PER_PIECE = 50;

/** The pieces of a message's text. Throws SyntaxError for invalid JSON. */
export function piecesOf(text: string): readonly MessagePiece[] {
  const message = JSON.parse(text) as LiveMessage;
  if (message.type !== "metrics.snapshot") return [{ message, hasMore: false }];
  const { nodes, ...rest } = message.data as { nodes: readonly LiveNode[] };
  const pieces: MessagePiece[] = [];
  for (let from = 0; from < nodes.length; from += NODES_PER_PIECE) {
    const end = from + NODES_PER_PIECE;
    pieces.push({ nodes: nodes.slice(from, end).map(withoutUsers), hasMore: end < nodes.length });
  }
  const head = { ...message, data: rest };
  return [{ message: head, hasMore: pieces.length > 0 }, ...pieces];
}

/** Drops the users, most of a snapshot, since the pages read users page by page. */
function withoutUsers({ per_user_storage: _storage, per_user_quota: _quota, ...node }: LiveNode): LiveNode {
  return node;
}

/** Joins pieces again. */
export class MessageAssembly {
  #message: LiveMessage | undefined;
  #nodes: LiveNode[] = [];

  /** Takes the next piece; returns the message when it is complete. */
  take({ message, nodes, hasMore }: MessagePiece): LiveMessage | undefined {
    if (message !== undefined) {
      this.#message = message;
      this.#nodes = [];
    }
    for (const node of nodes ?? []) this.#nodes.push(node);
    if (hasMore || this.#message === undefined) return undefined;
    const whole = this.#message;
    this.#message = undefined;
    if (whole.type !== "metrics.snapshot") return whole;
    return { ...whole, data: { ...(whole.data as object), nodes: this.#nodes } };
  }
}
