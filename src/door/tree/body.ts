// Bytes on their way through a door: bodies in blocks, downloads as streams, both with bounded memory.
import { GroveError } from "#base/errors.ts";
import { BLOCK_BYTES, INLINE_FILE_MAX_BYTES } from "#base/limits.ts";
import type { Cluster } from "#client/connection/cluster.ts";
import { LONG, SHORT } from "#client/connection/cluster.ts";
import type { RemotePath } from "#client/connection/remote-path.ts";
import { ClientError } from "#client/terminal/client-error.ts";
import { PROGRESS_BYTES } from "#client/terminal/limits.ts";
import { downloadFile } from "#client/transfer/download.ts";
import { crc32 } from "#os/crc32.ts";

/** Bytes that a reader is given at a time, but at the end: each time costs several turns of the loop. */
export const HANDED_ON_BYTES: number = BLOCK_BYTES / 2;

/** Bytes of a download that wait for a slow reader. */
const WAITING_MAX_BYTES: number = 4 * BLOCK_BYTES;

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

/** The bytes of one version of a file from start to end (exclusive). Goes on where a broken connection stopped. */
export async function* downloadStream(
  cluster: Cluster,
  source: RemotePath,
  version: { readonly etag: string; readonly start: number; readonly end: number },
): AsyncGenerator<Buffer, void, undefined> {
  const { etag, start, end } = version;
  if (start >= end) return;
  const queue = new SliceQueue();
  const gone = new AbortController();
  let offset = start;
  let provenAt = start;
  const done = cluster
    .runAt(source, LONG, async (server) => {
      if (offset === end) return;
      const take = (slice: Buffer): true | Promise<void> => {
        offset += slice.length;
        if (offset - provenAt >= PROGRESS_BYTES) {
          provenAt = offset;
          server.progressed();
        }
        return queue.put(slice);
      };
      const signals = [server.stream.signal, gone.signal].filter((signal) => signal !== undefined);
      const stream = { ...server.stream, signal: AbortSignal.any(signals) };
      await downloadFile({ ...server, stream }, source, take, {
        range: { offset, length: end - offset },
        ifMatch: etag,
      });
    })
    .then(
      () => queue.end(undefined),
      (error: unknown) => queue.end({ error }),
    );
  try {
    for (;;) {
      const slice = await queue.take();
      if (slice === undefined) return;
      yield slice;
    }
  } finally {
    gone.abort();
    queue.stop();
    await done;
  }
}

/** A whole small file in one call, checked; undefined for a larger one and for a part. Throws ETAG_MISMATCH. */
export async function readSmall(
  cluster: Cluster,
  { root, path }: RemotePath,
  { etag, start, end }: { readonly etag: string; readonly start: number; readonly end: number },
): Promise<Uint8Array | undefined> {
  if (start !== 0 || end === 0 || end > INLINE_FILE_MAX_BYTES) return undefined;
  const { attr, data } = await cluster.runAt({ root, path }, SHORT, (server) =>
    server.files.readFile({ root, path, offset: 0n, length: end }, server.unary),
  );
  if (attr?.etag !== etag) throw new GroveError("ETAG_MISMATCH", "the file has changed meanwhile");
  if (attr.size !== BigInt(end)) return undefined;
  if (data.length === end && crc32(data) === attr.crc32) return data;
  throw new ClientError("SERVER_BROKEN", `${path}: the bytes do not match their checksum`);
}

/** Slices between a download that pushes and a reader that pulls. */
class SliceQueue {
  #slices: Buffer[] = [];
  #bytes = 0;
  #isStopped = false;
  #end: { readonly failure: { readonly error: unknown } | undefined } | undefined;
  #hasMore = Promise.withResolvers<void>();
  #hasRoom = Promise.withResolvers<void>();

  put(slice: Buffer): true | Promise<void> {
    if (this.#isStopped) throw new Error("the reader has gone");
    this.#slices.push(slice);
    this.#bytes += slice.length;
    if (this.#bytes < HANDED_ON_BYTES) return true;
    this.#hasMore.resolve();
    if (this.#bytes < WAITING_MAX_BYTES) return true;
    this.#hasRoom = Promise.withResolvers<void>();
    return this.#hasRoom.promise.then(() => {
      if (this.#isStopped) throw new Error("the reader has gone");
    });
  }

  end(failure: { readonly error: unknown } | undefined): void {
    this.#end = { failure };
    this.#hasMore.resolve();
  }

  /** The next bytes; undefined after the last. Rejects with the download's failure. */
  async take(): Promise<Buffer | undefined> {
    for (;;) {
      if (this.#bytes >= HANDED_ON_BYTES || (this.#end !== undefined && this.#bytes > 0)) {
        const taken = this.#gathered();
        this.#bytes -= taken.length;
        if (this.#bytes < WAITING_MAX_BYTES) this.#hasRoom.resolve();
        return taken;
      }
      if (this.#end?.failure !== undefined) throw this.#end.failure.error;
      if (this.#end !== undefined) return undefined;
      this.#hasMore = Promise.withResolvers<void>();
      await this.#hasMore.promise;
    }
  }

  /** The first slices, as many as are handed on at once, or a larger one alone. */
  #gathered(): Buffer {
    let count = 0;
    for (let bytes = 0; count < this.#slices.length; count++) {
      bytes += (this.#slices[count] as Buffer).length;
      if (count > 0 && bytes > HANDED_ON_BYTES) break;
    }
    const [first, ...others] = this.#slices.splice(0, count);
    return first !== undefined && others.length === 0 ? first : Buffer.concat([first as Buffer, ...others]);
  }

  /** The reader goes: the download ends at its next slice. */
  stop(): void {
    this.#isStopped = true;
    this.#hasRoom.resolve();
  }
}
