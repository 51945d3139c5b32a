// Computes the checksum of a local file, or of its beginning.
import { closeSync, openSync, readSync } from "node:fs";
import { type FileHandle, open } from "node:fs/promises";
import { ClientError, localFailure } from "#client/terminal/client-error.ts";
import { DOWNLOAD_BLOCK_BYTES, SMALL_FILE_BYTES } from "#client/terminal/limits.ts";
import { crc32 } from "#os/crc32.ts";
import { READ_FLAGS } from "./local-source.ts";

/** CRC-32 of the first bytes of a file. Rejects with ClientError, also when it has fewer. */
export async function checksumOf(path: string, length: number): Promise<number> {
  let handle: FileHandle | undefined;
  try {
    // Trips to the thread pool cost more than reading such a file.
    if (length <= SMALL_FILE_BYTES) return smallChecksumOf(path, length);
    handle = await open(path, READ_FLAGS);
    const buffer = Buffer.allocUnsafeSlow(DOWNLOAD_BLOCK_BYTES);
    let crc = 0;
    for (let at = 0; at < length; ) {
      const { bytesRead } = await handle.read(buffer, 0, Math.min(buffer.length, length - at), at);
      if (bytesRead === 0) throw becameShorter(path);
      crc = crc32(buffer.subarray(0, bytesRead), crc);
      at += bytesRead;
    }
    return crc;
  } catch (error) {
    throw localFailure(error, path);
  } finally {
    await handle?.close();
  }
}

function smallChecksumOf(path: string, length: number): number {
  const descriptor = openSync(path, READ_FLAGS);
  try {
    const buffer = Buffer.allocUnsafe(length);
    for (let at = 0; at < length; ) {
      const read = readSync(descriptor, buffer, at, length - at, at);
      if (read === 0) throw becameShorter(path);
      at += read;
    }
    return crc32(buffer);
  } finally {
    closeSync(descriptor);
  }
}

function becameShorter(path: string): ClientError {
  return new ClientError("LOCAL_FILE", "became shorter while it was read", { about: path });
}
