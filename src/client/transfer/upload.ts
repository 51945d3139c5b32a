// Sends one file in chunks, each checksum computed once, the file never held as a whole (decision D15).

import { closeSync, fstatSync, openSync, readSync } from "node:fs";
import { type FileHandle, open } from "node:fs/promises";
import { isGroveError } from "#base/errors.ts";
import { BLOCK_BYTES, CHUNK_BYTES, INLINE_FILE_MAX_BYTES } from "#base/limits.ts";
import type { Server } from "#client/connection/cluster.ts";
import { refusalOf } from "#client/connection/refusal.ts";
import type { RemotePath } from "#client/connection/remote-path.ts";
import { ClientError, localFailure } from "#client/terminal/client-error.ts";
import { SMALL_FILE_BYTES } from "#client/terminal/limits.ts";
import { crc32 } from "#os/crc32.ts";
import type { SlicedUpload } from "#wire/grpc/client.ts";
import { OnExists } from "#wire/proto/gen/grove/v1/common_pb.ts";
import {
  FileServer,
  type UploadRequestSchema,
  type UploadResponse,
  type UploadResponseSchema,
} from "#wire/proto/gen/grove/v1/file_server_pb.ts";
import { encodeChunkHead } from "#wire/proto/request-encoders.ts";
import {
  changedWhileRead,
  isSameState,
  isSettled,
  READ_FLAGS,
  type SourceState,
  settledState,
  stateOf,
  unchanged,
} from "./local-source.ts";

/** Receives the sent bytes; negative when an attempt is given up and its bytes do not count. */
export type OnBytes = (bytes: number) => void;

/** The target of an upload and its known attributes. */
export interface UploadTarget extends RemotePath {
  /** Undefined when it is unknown until the end. */
  readonly sizeBytes: number | undefined;
  /** 0 means the time of arrival. */
  readonly mtimeMs: number;
  readonly onExists?: OnExists;
  /** Etag that the existing file must have. */
  readonly ifMatch?: string;
  /** A begun upload, and the offset in the file where this stream begins. */
  readonly resume?: { readonly uploadId: string; readonly offset: number };
}

type Upload = SlicedUpload<typeof UploadRequestSchema, typeof UploadResponseSchema>;

/** Buffers of one large upload: one being read, one being sent, and one in the socket. */
const BUFFERS = 3;
const NO_SIZE = { todo: "Send what it holds: grove write PATH < FILE" };

/**
 * Uploads a local file with its time of change. Rejects with StatusError, or with ClientError also when it
 * changes meanwhile.
 */
export async function uploadFile(
  server: Server,
  localPath: string,
  target: RemotePath,
  options: { readonly onBytes: OnBytes; readonly isLikelyNew: boolean },
): Promise<void> {
  const { onBytes } = options;
  const small = readSmallFile(localPath);
  if (small !== undefined) {
    const isMade = options.isLikelyNew && (await createSmall(server, small, target));
    if (isMade) onBytes(small.data.length);
    else await uploadSmall(server, small, target, onBytes);
    return;
  }
  let handle: FileHandle;
  try {
    handle = await open(localPath, READ_FLAGS);
  } catch (error) {
    throw localFailure(error, localPath);
  }
  try {
    const look = async (): Promise<SourceState> => stateOf(await handle.stat({ bigint: true }), localPath);
    const source = await settledState(look, localPath);
    const { sizeBytes, mtimeMs } = source;
    const pieces = unchanged(readChunks(handle, localPath, sizeBytes, 0), sizeBytes, {
      path: localPath,
      isSame: async () => isSameState(source, await look()),
    });
    await uploadChunks(server, pieces, { ...target, sizeBytes, mtimeMs }, onBytes);
  } finally {
    await handle.close();
  }
}

interface SmallFile {
  readonly data: Buffer;
  readonly mtimeMs: number;
}

/**
 * Reads a small file in one go; undefined for a larger one or one written just now. Synchronous, since four
 * trips to the thread pool cost more than such a file. Throws ClientError.
 */
function readSmallFile(path: string): SmallFile | undefined {
  try {
    const descriptor = openSync(path, READ_FLAGS);
    try {
      const look = (): SourceState => stateOf(fstatSync(descriptor, { bigint: true }), path);
      const source = look();
      const { sizeBytes, mtimeMs } = source;
      if (sizeBytes > SMALL_FILE_BYTES || !isSettled(source, Date.now())) return undefined;
      // Files of /proc report size 0; reading one byte more than stated reveals content.
      const buffer = Buffer.allocUnsafe(sizeBytes + 1);
      let length = 0;
      for (;;) {
        const read = readSync(descriptor, buffer, length, buffer.length - length, null);
        length += read;
        if (read === 0 || length === buffer.length) break;
      }
      if (!isSameState(source, look())) throw changedWhileRead(path);
      if (length > sizeBytes)
        throw new ClientError("LOCAL_FILE", "has more bytes than it says", { about: path, ...NO_SIZE });
      return { data: buffer.subarray(0, length), mtimeMs };
    } finally {
      closeSync(descriptor);
    }
  } catch (error) {
    throw localFailure(error, path);
  }
}

/**
 * Makes a file by one call, at half the cost of a stream; false when it exists already or is not small
 * enough.
 */
async function createSmall(server: Server, file: SmallFile, target: RemotePath): Promise<boolean> {
  const { data, mtimeMs } = file;
  if (data.length > INLINE_FILE_MAX_BYTES) return false;
  const { root, path } = target;
  try {
    const request = { root, path, data, mtimeMs: BigInt(mtimeMs), crc32: crc32(data) };
    const attr = await server.files.createFile(request, server.unary);
    // An older server ignores the time of this call.
    return attr.mtimeMs === BigInt(mtimeMs);
  } catch (error) {
    if (isGroveError(await refusalOf(error, server.address), "PATH_EXISTS")) return false;
    throw error;
  }
}

async function uploadSmall(
  server: Server,
  file: SmallFile,
  target: RemotePath,
  onBytes: OnBytes,
): Promise<UploadResponse> {
  const { data, mtimeMs } = file;
  const upload = await begin(server, { ...target, sizeBytes: data.length, mtimeMs });
  try {
    if (data.length > 0) await sendPiece(upload, 0, [data]);
    const response = await upload.finish();
    onBytes(data.length);
    return response;
  } catch (error) {
    upload.cancel();
    throw error;
  }
}

/**
 * Uploads chunks of 1 to 4,000,000 bytes in order, or parts that make a block of 262,144 at most together. Rejects
 * with StatusError or with the chunks' failure.
 */
export async function uploadChunks(
  server: Server,
  chunks: AsyncIterable<Buffer | readonly Buffer[]>,
  target: UploadTarget,
  onBytes: OnBytes,
): Promise<UploadResponse> {
  const upload = await begin(server, target);
  let offset = target.resume?.offset ?? 0;
  let sentBytes = 0;
  try {
    for await (const data of chunks) {
      for (const piece of piecesOf(data)) {
        const bytes = await sendPiece(upload, offset, piece);
        offset += bytes;
        sentBytes += bytes;
        onBytes(bytes);
      }
    }
    return await upload.finish();
  } catch (error) {
    onBytes(-sentBytes);
    upload.cancel();
    throw error;
  }
}

/**
 * Bytes of one message: a block as the server stores and checks it, and the most that the room grpc takes
 * uncut. Its checksum precedes it: over a whole chunk the server would idle, and the bytes would leave the
 * cache.
 */
const MESSAGE_BYTES = BLOCK_BYTES;

async function begin(server: Server, target: UploadTarget): Promise<Upload> {
  const { uploadFile } = FileServer.method;
  const upload = await server.channel.slicedUpload(uploadFile, "chunk.data", server.stream, encodeChunkHead);
  const header = {
    root: target.root,
    path: target.path,
    size: BigInt(target.sizeBytes ?? 0),
    sizeKnown: target.sizeBytes !== undefined,
    mtimeMs: BigInt(target.mtimeMs),
    onExists: target.onExists ?? OnExists.REPLACE,
    ifMatch: target.ifMatch ?? "",
    uploadId: target.resume?.uploadId ?? "",
    resumeOffset: BigInt(target.resume?.offset ?? 0),
  };
  const written = upload.writer.message({ part: { case: "header", value: header } }, 0);
  if (written !== true) await written;
  return upload;
}

/** Each is what one message carries. */
function* piecesOf(data: Buffer | readonly Buffer[]): Generator<readonly Buffer[], void, undefined> {
  if (!Buffer.isBuffer(data)) {
    yield data;
    return;
  }
  for (let at = 0; at < data.length; at += MESSAGE_BYTES) yield [data.subarray(at, at + MESSAGE_BYTES)];
}

/** Sends a message's bytes, which are never joined; resolves with their number. */
async function sendPiece({ writer }: Upload, offset: number, parts: readonly Buffer[]): Promise<number> {
  const bytes = parts.reduce((sum, { length }) => sum + length, 0);
  const chunk = { offset: BigInt(offset), crc32: parts.reduce((crc, part) => crc32(part, crc), 0) };
  const written = writer.whole({ part: { case: "chunk", value: chunk } }, parts);
  if (written !== true) await written;
  return bytes;
}

/** Reads a file of known size by chunks, from the start of one on, one chunk ahead of the consumer. */
export async function* readChunks(
  handle: FileHandle,
  path: string,
  sizeBytes: number,
  startBytes: number,
): AsyncGenerator<Buffer, void, undefined> {
  const count = Math.min(BUFFERS, Math.ceil(sizeBytes / CHUNK_BYTES));
  const buffers = Array.from({ length: count }, () =>
    Buffer.allocUnsafeSlow(Math.min(CHUNK_BYTES, sizeBytes)),
  );
  const read = (offset: number): Promise<Buffer> => {
    const buffer = buffers[(offset / CHUNK_BYTES) % count] as Buffer;
    return readFully(handle, buffer.subarray(0, Math.min(CHUNK_BYTES, sizeBytes - offset)), offset, path);
  };
  let ahead: Promise<Buffer> | undefined;
  try {
    for (let offset = startBytes; offset < sizeBytes; offset += CHUNK_BYTES) {
      const data = await (ahead ?? read(offset));
      const next = offset + CHUNK_BYTES;
      ahead = next < sizeBytes ? read(next) : undefined;
      // The consumer may stop before the next chunk is asked for.
      ahead?.catch(() => undefined);
      // The buffer of the chunk before last is free: a chunk has more bytes than may wait unsent.
      yield data;
    }
  } finally {
    await ahead?.catch(() => undefined);
  }
}

async function readFully(handle: FileHandle, buffer: Buffer, offset: number, path: string): Promise<Buffer> {
  let length = 0;
  try {
    while (length < buffer.length) {
      const { bytesRead } = await handle.read(buffer, length, buffer.length - length, offset + length);
      if (bytesRead === 0)
        throw new ClientError("LOCAL_FILE", "became shorter while it was read", { about: path });
      length += bytesRead;
    }
  } catch (error) {
    throw localFailure(error, path);
  }
  return buffer;
}
