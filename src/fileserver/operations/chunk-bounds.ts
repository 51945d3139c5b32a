// The rules of the chunks of an upload: length, place, what the header announced, and an orderly end.
import { setImmediate as turnEnd } from "node:timers/promises";
import { GroveError } from "#base/errors.ts";
import { FILE_MAX_BYTES, UPLOAD_MESSAGE_MAX_BYTES } from "#base/limits.ts";
import type { Chunk } from "#wire/proto/gen/grove/v1/file_server_pb.ts";
import { tooLarge } from "./content-operations.ts";

/** How far an upload has come, and its announced size, if any. */
export interface UploadProgress {
  readonly receivedBytes: number;
  readonly sizeBytes: number | undefined;
}

/** Throws BAD_ARGUMENT or OFFSET_MISMATCH for a chunk that may not come next. */
export function requireNext(
  chunk: Chunk,
  payloadBytes: number,
  { receivedBytes, sizeBytes }: UploadProgress,
): void {
  if (payloadBytes > UPLOAD_MESSAGE_MAX_BYTES) {
    throw new GroveError("BAD_ARGUMENT", `a chunk has at most ${UPLOAD_MESSAGE_MAX_BYTES} bytes`, {
      metadata: { limit_bytes: String(UPLOAD_MESSAGE_MAX_BYTES) },
    });
  }
  if (chunk.offset !== BigInt(receivedBytes)) {
    throw new GroveError("OFFSET_MISMATCH", "chunks follow one another without gaps", {
      metadata: { offset: String(receivedBytes) },
    });
  }
  const end = receivedBytes + payloadBytes;
  if (end > FILE_MAX_BYTES) throw tooLarge();
  if (sizeBytes !== undefined && end > sizeBytes) {
    throw new GroveError("BAD_ARGUMENT", `more bytes than the ${sizeBytes} that the header announced`, {
      metadata: { size: String(sizeBytes) },
    });
  }
}

/** Refuses an upload of unknown size that its client resets right after an orderly end: bytes are missing. */
export async function refuseIfCancelled(signal: AbortSignal): Promise<void> {
  await turnEnd();
  signal.throwIfAborted();
}
