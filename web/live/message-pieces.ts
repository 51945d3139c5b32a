// A message of the socket in pieces that are small enough for one turn of the page each: a snapshot of a thousand nodes is megabytes.
import type { LiveNode } from "../words/live-node.ts";

/** What comes over /ws/cluster. */
export interface LiveMessage {
  readonly type: string;
  readonly seq: number;
  readonly ts: number;
  readonly data: unknown;
}

/** A message, or so many of its nodes. */
export interface MessagePiece {
  /** The message, a snapshot's without its nodes; in the first piece. */
  readonly message?: LiveMessage;
  readonly nodes?: readonly LiveNode[];
  /** More of this message follows. */
  readonly hasMore: boolean;
}

/** Some milliseconds of work. */
const NODES_PER_PIECE = 50;

/** The pieces of a message that came as this text. Throws SyntaxError for what is no JSON. */
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

/** The pages read users a page at a time; what each node reports of them would be most of a snapshot. */
function withoutUsers({ per_user_storage: _storage, per_user_quota: _quota, ...node }: LiveNode): LiveNode {
  return node;
}

/** Puts pieces together again. */
export class MessageAssembly {
  #message: LiveMessage | undefined;
  #nodes: LiveNode[] = [];

  /** Takes the next piece; answers the message once it is whole. */
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
