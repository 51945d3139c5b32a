// The moves of this node as the metadata store has them, and the steps that it takes there.
import type { Client } from "#wire/grpc/client.ts";
import type { MoveStep, NodeMove, RootMoves } from "#wire/proto/gen/grove/v1/root_moves_pb.ts";

/** How long the MetaServer may take for an answer about moves. */
const CALL_TIMEOUT_MS = 3_000;

/** This process as it has registered. */
export interface NodeEpoch {
  readonly fsId: string;
  readonly epoch: bigint;
}

/** Roots of a page of their sizes: a request of the usual size. */
const SIZES_PER_PAGE = 200;

/** A root's owner and its bytes here. */
export interface SizedRoot {
  readonly owner: string;
  readonly bytes: number;
}

/** A step, with what belongs to it. */
export interface TakenStep {
  readonly moveId: string;
  readonly step: MoveStep;
  readonly attempt?: number;
  readonly bytes?: bigint;
  readonly rows?: bigint;
  readonly left?: bigint;
  readonly problem?: string;
  readonly owner?: string;
  readonly arriving?: boolean;
}

/** The last list, and questions to the MetaServer. */
export class KnownMoves {
  readonly #client: () => Client<typeof RootMoves> | undefined;
  readonly #node: () => NodeEpoch | undefined;
  readonly #sizes: () => readonly SizedRoot[];
  #moves = new Map<string, NodeMove>();
  #asking: Promise<readonly NodeMove[] | undefined> | undefined;
  /** The last question about sizes that was answered. */
  #toldSizes = 0n;
  /** Questions about moves that were asked, and the latest that was answered. */
  #asked = 0;
  #answered = 0;

  constructor(
    client: () => Client<typeof RootMoves> | undefined,
    node: () => NodeEpoch | undefined,
    sizes: () => readonly SizedRoot[],
  ) {
    this.#client = client;
    this.#node = node;
    this.#sizes = sizes;
  }

  /** A move of the last list. */
  find(moveId: string): NodeMove | undefined {
    return this.#moves.get(moveId);
  }

  /**
   * Asks for the list; undefined while this node is not registered. An answer that later questions have overtaken
   * counts as theirs. Rejects when there is no answer.
   */
  async ask(): Promise<readonly NodeMove[] | undefined> {
    const [node, client] = [this.#node(), this.#client()];
    if (node === undefined || client === undefined) return undefined;
    const asked = ++this.#asked;
    const { moves, sizesWanted } = await client.listMoves(node, { timeoutMs: CALL_TIMEOUT_MS });
    if (sizesWanted > this.#toldSizes) await this.#tellSizes(sizesWanted, node, client);
    if (asked > this.#answered) {
      this.#answered = asked;
      this.#moves = new Map(moves.map((move) => [move.moveId, move]));
    }
    return [...this.#moves.values()];
  }

  /** As `ask`, but joins the question under way: strangers' guesses cost the MetaServer one at a time. */
  askTogether(): Promise<readonly NodeMove[] | undefined> {
    this.#asking ??= this.ask().finally(() => {
      this.#asking = undefined;
    });
    return this.#asking;
  }

  /** Takes a step. Rejects when it is refused, or when the outcome is unknown. */
  async take(step: TakenStep): Promise<{ readonly state: string; readonly attempt: number }> {
    const [node, client] = [this.#node(), this.#client()];
    if (node === undefined || client === undefined) throw new Error("this node is not registered");
    return client.advanceMove({ ...node, ...step }, { timeoutMs: CALL_TIMEOUT_MS });
  }

  async #tellSizes(question: bigint, node: NodeEpoch, client: Client<typeof RootMoves>): Promise<void> {
    const sizes = this.#sizes();
    const pages = Math.max(1, Math.ceil(sizes.length / SIZES_PER_PAGE));
    for (let page = 0; page < pages; page++) {
      const told = sizes.slice(page * SIZES_PER_PAGE, (page + 1) * SIZES_PER_PAGE);
      await client.listMoves(
        {
          ...node,
          sizesOf: question,
          sizesPage: page,
          sizesLast: page === pages - 1,
          sizes: told.map(({ owner, bytes }) => ({ owner, bytes: BigInt(bytes) })),
        },
        { timeoutMs: CALL_TIMEOUT_MS },
      );
    }
    this.#toldSizes = question;
  }

  /** True when the move is to another node whose place this one may take. */
  isOfEnded(move: NodeMove): boolean {
    return !this.isSource(move) && move.target !== this.#node()?.fsId;
  }

  /** True when this node is the one from which the root moves. */
  isSource({ source }: NodeMove): boolean {
    return source === this.#node()?.fsId;
  }
}
