// Files' bytes on their way out through a door: in the parts that came, checked, with bounded memory.
import type { Cluster } from "#client/connection/cluster.ts";
import { LONG } from "#client/connection/cluster.ts";
import type { RemotePath } from "#client/connection/remote-path.ts";
import { PROGRESS_BYTES } from "#client/terminal/limits.ts";
import { downloadFile } from "#client/transfer/download.ts";
import type { BytesTaker } from "#door/webdav/resource.ts";
import { readSmall, type VersionRange } from "./small-files.ts";

/** What one read of a socket brings. */
const HANDED_ON_MIN_BYTES = 65_536;
/** Each write wakes the client: eight reads' bytes in one cost a tenth less of a door's time. */
export const HANDED_ON_MAX_BYTES = 524_288;

/**
 * Bytes that are handed on at a time, but at the end: at most an eighth of what has gone, so that a client of a slow
 * FileServer does not wait for them noticeably.
 */
export function handedOnAtOnce(goneBytes: number): number {
  return Math.min(HANDED_ON_MAX_BYTES, Math.max(HANDED_ON_MIN_BYTES, goneBytes / 8));
}

/** A download, which is asked for again where a call breaks. */
export interface Wanted extends VersionRange {
  /** Of a link's visitor: by it repeats count as one download. */
  readonly requestKey?: string;
}

/** Hands the bytes of one version of a file to `take`: a small file's by one call. Rejects as `sendDownload` does. */
export async function sendVersion(
  cluster: Cluster,
  source: RemotePath,
  version: VersionRange,
  take: BytesTaker,
): Promise<void> {
  const data = await readSmall(cluster, source, version);
  if (data === undefined) return await sendDownload(cluster, source, version, take);
  const taken = take([data]);
  if (taken !== true) await taken;
}

/**
 * Hands the bytes of one version of a file to `take`, and goes on where a broken connection stopped. The last part
 * is handed on once the whole download has proven right, so that a damaged one never looks complete. Rejects as
 * `take` does, and where the download fails.
 */
export async function sendDownload(
  cluster: Cluster,
  source: RemotePath,
  { etag, start, end, requestKey = "" }: Wanted,
  take: BytesTaker,
): Promise<void> {
  if (start >= end) return;
  let parts: Buffer[] = [];
  let bytes = 0;
  let offset = start;
  let provenAt = start;
  const reader = new Reader(take);
  const handOn = (): true | Promise<void> => {
    const handed = parts;
    parts = [];
    bytes = 0;
    return reader.take(handed);
  };
  try {
    await cluster.runAt(source, LONG, async (server) => {
      if (offset === end) return;
      const takeSlice = (slice: Buffer): true | Promise<void> => {
        parts.push(slice);
        bytes += slice.length;
        offset += slice.length;
        if (offset - provenAt >= PROGRESS_BYTES) {
          provenAt = offset;
          server.progressed();
        }
        return bytes < handedOnAtOnce(offset - start) || offset === end ? true : handOn();
      };
      const range = { offset, length: end - offset };
      await downloadFile(server, source, takeSlice, { range, ifMatch: etag, requestKey });
    });
  } catch (error) {
    throw reader.hasFailed ? reader.failure : error;
  }
  const taken = handOn();
  if (taken !== true) await taken;
}

/** Whom the bytes are for. Its failure is no failure of the download, and nothing to try again for. */
class Reader {
  readonly #take: BytesTaker;
  hasFailed = false;
  failure: unknown;

  constructor(take: BytesTaker) {
    this.#take = take;
  }

  take(parts: readonly Buffer[]): true | Promise<void> {
    try {
      const taken = this.#take(parts);
      return taken === true ? true : taken.catch((error: unknown) => this.#fail(error));
    } catch (error) {
      return this.#fail(error);
    }
  }

  #fail(error: unknown): never {
    this.hasFailed = true;
    this.failure = error;
    throw new Error("the reader has gone");
  }
}

/** The bytes that a read hands on, for somebody who pulls them; a few parts wait at a time. */
export async function* pulled(
  read: (take: BytesTaker) => Promise<void>,
): AsyncGenerator<Uint8Array, void, undefined> {
  let parts: readonly Uint8Array[] = [];
  let more = Promise.withResolvers<void>();
  let room = Promise.withResolvers<void>();
  let isOver = false;
  let isStopped = false;
  let failure: { readonly error: unknown } | undefined;
  const take: BytesTaker = (taken) => {
    parts = taken;
    room = Promise.withResolvers<void>();
    more.resolve();
    return room.promise.then(() => {
      if (isStopped) throw new Error("the reader has gone");
    });
  };
  const done = read(take).catch((error: unknown) => {
    failure = { error };
  });
  const end = done.then(() => {
    isOver = true;
    more.resolve();
  });
  try {
    for (;;) {
      await more.promise;
      more = Promise.withResolvers<void>();
      yield* parts;
      parts = [];
      if (failure !== undefined) throw failure.error;
      if (isOver) return;
      room.resolve();
    }
  } finally {
    isStopped = true;
    room.resolve();
    await end;
  }
}
