// The body of a PUT in blocks, each in the parts that came.
import { BLOCK_BYTES } from "#base/limits.ts";
import { InputOnce } from "#client/transfer/input-once.ts";

/** Bytes of a body that a door keeps for a further attempt at its beginning: one block under way, one behind it. */
const KEPT_BYTES = 2 * BLOCK_BYTES;
/** Parts below this are joined, so many at a time. */
const SMALL_BYTES = 1_024;
const SMALL_PARTS_MAX = 256;

/** A body as the input of one upload. */
export function inputOf(body: AsyncIterable<Uint8Array>): InputOnce<readonly Buffer[]> {
  return new InputOnce(blocksOf(body), KEPT_BYTES);
}

/** A body in blocks of 262,144 bytes, the last one shorter, each in the parts that came; none for an empty body. */
export async function* blocksOf(
  body: AsyncIterable<Uint8Array>,
): AsyncGenerator<readonly Buffer[], void, undefined> {
  let block = new Parts();
  for await (const part of body) {
    let rest = Buffer.from(part.buffer, part.byteOffset, part.length);
    while (block.bytes + rest.length >= BLOCK_BYTES) {
      const taken = BLOCK_BYTES - block.bytes;
      block.add(rest.subarray(0, taken));
      rest = rest.subarray(taken);
      yield block.all();
      block = new Parts();
    }
    if (rest.length > 0) block.add(rest);
  }
  if (block.bytes > 0) yield block.all();
}

/** Parts of one block, of which many small ones are joined: each Buffer costs a hundred bytes of its own. */
class Parts {
  bytes = 0;
  readonly #parts: Buffer[] = [];
  #small: Buffer[] = [];

  add(part: Buffer): void {
    this.bytes += part.length;
    if (part.length >= SMALL_BYTES) {
      this.#join();
      this.#parts.push(part);
      return;
    }
    this.#small.push(part);
    if (this.#small.length === SMALL_PARTS_MAX) this.#join();
  }

  all(): readonly Buffer[] {
    this.#join();
    return this.#parts;
  }

  #join(): void {
    if (this.#small.length > 0)
      this.#parts.push(this.#small.length === 1 ? (this.#small[0] as Buffer) : Buffer.concat(this.#small));
    this.#small = [];
  }
}
