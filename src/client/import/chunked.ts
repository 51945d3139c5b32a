// Regroups bytes as they come into whole chunks, and has them whole in number.
import { CHUNK_BYTES } from "#base/limits.ts";
import { ClientError } from "#client/terminal/client-error.ts";

/** Chunks of CHUNK_BYTES, the last one shorter. Rejects with ClientError when the bytes are not so many. */
export async function* chunked(
  pieces: AsyncIterable<Buffer>,
  byteCount: number,
  label: string,
): AsyncGenerator<Buffer, void, undefined> {
  let chunk: Buffer | undefined;
  let filled = 0;
  let left = byteCount;
  for await (const piece of pieces) {
    if (piece.length > left) throw changed(label);
    left -= piece.length;
    for (let at = 0; at < piece.length; ) {
      // A chunk that was given out may still be on its way: the next one has memory of its own.
      chunk ??= Buffer.allocUnsafeSlow(Math.min(CHUNK_BYTES, left + piece.length - at));
      const copied = piece.copy(chunk, filled, at);
      at += copied;
      filled += copied;
      if (filled < chunk.length) continue;
      yield chunk;
      chunk = undefined;
      filled = 0;
    }
  }
  if (left > 0) throw changed(label);
}

function changed(label: string): ClientError {
  return new ClientError("SOURCE_FAILED", `${label}: the source sent another number of bytes than it told`, {
    todo: "Import it again when nobody writes to it.",
  });
}
