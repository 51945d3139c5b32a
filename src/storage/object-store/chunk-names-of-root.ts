// Gives names to the chunks that a holder of a root makes, from blocks that are durable before their use.
import type { Clock } from "#base/clock.ts";
import type { Random } from "#base/random.ts";
import { blockOf, type ChunkBlock, type ChunkBlocks, chunkName, NAMES_PER_BLOCK } from "./chunk-blocks.ts";

const BLOCK_ID_BYTES = 16;
/** Names left in a block at which the next one is made, so that seldom an upload waits for it. */
const NEXT_BLOCK_AT = 64;

/** What became of a name. */
export type NameEnd =
  /** A row has it, or surely no object does. */
  | "settled"
  /** An object may have it, or may get it from a request that is still on its way. */
  | "unsure";

interface OpenBlock {
  readonly block: ChunkBlock;
  given: number;
  ended: number;
  isSure: boolean;
}

/** Names for one root and one epoch; made anew with each lease. */
export class ChunkNamesOfRoot {
  readonly #blocks: ChunkBlocks;
  readonly #rootId: string;
  readonly #epoch: number;
  readonly #random: Random;
  readonly #clock: Pick<Clock, "wallMs">;
  /** Blocks with names that were given and have not ended. */
  readonly #open = new Map<string, OpenBlock>();
  #current: OpenBlock | undefined;
  #next: Promise<OpenBlock> | undefined;

  constructor(deps: {
    blocks: ChunkBlocks;
    rootId: string;
    epoch: number;
    random: Random;
    clock: Pick<Clock, "wallMs">;
  }) {
    this.#blocks = deps.blocks;
    this.#rootId = deps.rootId;
    this.#epoch = deps.epoch;
    this.#random = deps.random;
    this.#clock = deps.clock;
  }

  /** A new name. Each must be ended once. Rejected when no block can be made durable. */
  async take(): Promise<string> {
    for (;;) {
      const current = this.#current;
      if (current !== undefined && current.given < NAMES_PER_BLOCK) {
        const name = chunkName(current.block.id, current.given++);
        if (NAMES_PER_BLOCK - current.given < NEXT_BLOCK_AT) this.#makeNext().catch(() => undefined);
        return name;
      }
      const next = await this.#makeNext();
      // Others may have waited for the same block.
      if (this.#current === current) {
        this.#current = next;
        this.#next = undefined;
      }
    }
  }

  /** Says what became of a name. A failed report leaves the block to the sweeps after the epoch. */
  end(name: string, end: NameEnd): void {
    const open = this.#open.get(blockOf(name));
    if (open === undefined) return;
    open.ended++;
    if (end === "unsure") open.isSure = false;
    if (open.ended < NAMES_PER_BLOCK) return;
    const { id } = open.block;
    this.#open.delete(id);
    (open.isSure ? this.#blocks.drop(id) : this.#blocks.close(id)).catch(() => undefined);
  }

  #makeNext(): Promise<OpenBlock> {
    this.#next ??= this.#make().catch((error: unknown) => {
      this.#next = undefined;
      throw error;
    });
    return this.#next;
  }

  async #make(): Promise<OpenBlock> {
    const id = this.#random.bytes(BLOCK_ID_BYTES).toString("hex");
    const block = { id, rootId: this.#rootId, epoch: this.#epoch, sinceMs: this.#clock.wallMs() };
    await this.#blocks.add(block);
    const open = { block, given: 0, ended: 0, isSure: true };
    this.#open.set(id, open);
    return open;
  }
}
