// The body of a PUT in blocks, each in the parts that came.
import { BLOCK_BYTES } from "#base/limits.ts";
import { InputOnce } from "#client/transfer/input-once.ts";

/** Bytes of a body that a door keeps for a further attempt at its beginning: one block under way, one behind it. */
const KEPT_BYTES = 2 * BLOCK_BYTES;

/** A body as the input of one upload. */
export function inputOf(body: AsyncIterable<Uint8Array>): InputOnce<readonly Buffer[]> {
  return new InputOnce(blocksOf(body), KEPT_BYTES);
}

/** A body in blocks of 262,144 bytes, the last one shorter, each in the parts that came; none for an empty body. */
export async function* blocksOf(
  body: AsyncIterable<Uint8Array>,
): AsyncGenerator<readonly Buffer[], void, undefined> {
  let parts: Buffer[] = [];
  let bytes = 0;
  for await (const part of body) {
    let rest = Buffer.from(part.buffer, part.byteOffset, part.length);
    while (bytes + rest.length >= BLOCK_BYTES) {
      parts.push(rest.subarray(0, BLOCK_BYTES - bytes));
      rest = rest.subarray(BLOCK_BYTES - bytes);
      yield parts;
      parts = [];
      bytes = 0;
    }
    if (rest.length === 0) continue;
    parts.push(rest);
    bytes += rest.length;
  }
  if (bytes > 0) yield parts;
}
