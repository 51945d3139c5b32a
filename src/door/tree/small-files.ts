// Small files on their way out through a door: attributes and bytes in one call, checked.
import { GroveError, isGroveError } from "#base/errors.ts";
import { INLINE_FILE_MAX_BYTES } from "#base/limits.ts";
import { type Cluster, SHORT } from "#client/connection/cluster.ts";
import type { RemotePath } from "#client/connection/remote-path.ts";
import { ClientError } from "#client/terminal/client-error.ts";
import type { ByteRange } from "#door/webdav/byte-ranges.ts";
import type { Fetched } from "#door/webdav/resource.ts";
import { crc32 } from "#os/crc32.ts";
import type { Attr } from "#wire/proto/gen/grove/v1/common_pb.ts";
import { resourceOf } from "./resources.ts";

/** Bytes of a version of a file. */
export interface VersionRange extends ByteRange {
  readonly etag: string;
}

/** A file, with its bytes where they are few; undefined for a folder, and where nothing is. */
export async function fetchFile(
  cluster: Cluster,
  path: readonly string[],
  place: RemotePath,
): Promise<Fetched | undefined> {
  try {
    const { attr, data } = await fetchSmall(cluster, place);
    return { resource: resourceOf(path, attr, []), data };
  } catch (error) {
    if (isGroveError(error, "IS_DIRECTORY", "NO_SUCH_PATH", "NOT_DIRECTORY")) return undefined;
    throw error;
  }
}

/** A whole small file of that version; undefined for a larger one and for a part. Throws ETAG_MISMATCH. */
export async function readSmall(
  cluster: Cluster,
  place: RemotePath,
  { etag, start, end }: VersionRange,
): Promise<Uint8Array | undefined> {
  if (start !== 0 || end === 0 || end > INLINE_FILE_MAX_BYTES) return undefined;
  const { attr, data } = await fetchSmall(cluster, place);
  if (attr.etag !== etag) throw new GroveError("ETAG_MISMATCH", "the file has changed meanwhile");
  return attr.size === BigInt(end) ? data : undefined;
}

async function fetchSmall(
  cluster: Cluster,
  { root, path }: RemotePath,
): Promise<{ readonly attr: Attr; readonly data: Uint8Array | undefined }> {
  const { attr, data } = await cluster.runAt({ root, path }, SHORT, (server) =>
    server.files.readFile(
      { root, path, offset: 0n, length: INLINE_FILE_MAX_BYTES, whole: true },
      server.unary,
    ),
  );
  // A FileServer of the last release sends the beginning of a larger file.
  if (attr !== undefined && attr.size > INLINE_FILE_MAX_BYTES) return { attr, data: undefined };
  if (attr?.size === BigInt(data.length) && attr.crc32 === crc32(data)) return { attr, data };
  throw new ClientError("SERVER_BROKEN", `${path}: the bytes do not match their length and checksum`);
}
