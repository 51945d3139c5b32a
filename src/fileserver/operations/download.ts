// Sends one version of a file block by block from disk to socket, never a byte that fails its checksum (D15).
import { CHUNK_BYTES } from "#base/limits.ts";
import type { Logger } from "#base/log.ts";
import type { FileContent, Storage } from "#storage/contract/storage.ts";
import type { NodeTelemetry } from "#telemetry/node-telemetry.ts";
import type { SlicedWriter } from "#wire/grpc/sliced.ts";
import type { DownloadRequest, DownloadResponseSchema } from "#wire/proto/gen/grove/v1/file_server_pb.ts";
import { type Access, existingFile, noLongerShared, type Reached } from "./access.ts";
import type { Caller } from "./caller.ts";
import { logCorruption, offsetInside, requireEtag } from "./content-operations.ts";
import { Pump, type StallWatch } from "./download-pump.ts";
import type { LargeReads } from "./large-reads.ts";
import { attrAt } from "./namespace-operations.ts";
import type { OperationMeter } from "./operation-meter.ts";
import type { StreamSlots } from "./stream-slots.ts";

type Writer = SlicedWriter<typeof DownloadResponseSchema>;

/** Dependencies of downloads. */
export interface DownloadDeps {
  readonly storage: Storage;
  readonly access: Access;
  readonly meter: OperationMeter;
  readonly telemetry: NodeTelemetry;
  readonly slots: StreamSlots;
  readonly stalls: StallWatch;
  readonly largeReads: LargeReads;
  readonly log: Logger;
}

const NO_BYTES = new Uint8Array(0);
/**
 * Sends the Attr, then chunks cut at multiples of 4,000,000 bytes of the file, each with its CRC-32 first.
 * Ends with CORRUPT instead of wrong bytes. Stops at the next block after the session has ended, and at the
 * next chunk after the permission has ended.
 */
export function sendDownload(
  deps: DownloadDeps,
  caller: Caller,
  request: DownloadRequest,
  writer: Writer,
): Promise<void> {
  return deps.meter.later("read", () =>
    deps.slots.run(caller.identity.username, async () => {
      const reached = deps.access.reach(caller.identity, request.root, request.path, "read");
      const file = existingFile(reached);
      requireEtag(file, request.ifMatch);
      const from = offsetInside(file, request.offset);
      const leftBytes = file.sizeBytes - from;
      const wantedBytes =
        request.length === 0n || request.length > BigInt(leftBytes) ? leftBytes : Number(request.length);
      const content = deps.storage.openFile(file.id);
      const pump = new Pump(content, writer, {
        requireLive: () => {
          if (!caller.isLive()) caller.renew();
        },
        takeLarge: () => deps.largeReads.take(caller.identity.username),
      });
      deps.stalls.add(pump);
      try {
        const sent = writer.message({ part: { case: "attr", value: attrAt(reached, file) } }, 0);
        if (sent !== true) await sent;
        await sendChunks(deps, { caller, reached, content, pump, writer }, from, from + wantedBytes);
      } catch (error) {
        logCorruption(deps.log, reached, file, error);
        throw error;
      } finally {
        deps.stalls.remove(pump);
        pump.end();
        content.close();
      }
    }),
  );
}

interface Sending {
  readonly caller: Caller;
  readonly reached: Reached;
  readonly content: FileContent;
  readonly pump: Pump;
  readonly writer: Writer;
}

async function sendChunks(deps: DownloadDeps, sending: Sending, from: number, end: number): Promise<void> {
  const { caller, reached, content, pump, writer } = sending;
  for (let offset = from; offset < end; ) {
    const chunkEnd = Math.min(end, offset - (offset % CHUNK_BYTES) + CHUNK_BYTES);
    if (offset !== from) {
      caller.renew();
      if (!deps.access.stillAllowed(caller.identity, reached, "read")) {
        throw noLongerShared();
      }
    }
    let crc32 = content.rangeCrc32(offset, chunkEnd - offset);
    if (crc32 instanceof Promise) crc32 = await crc32;
    const begun = writer.message(
      { part: { case: "chunk", value: { offset: BigInt(offset), crc32, data: NO_BYTES } } },
      chunkEnd - offset,
    );
    if (begun !== true) await begun;
    await pump.send(offset, chunkEnd, end);
    deps.telemetry.bytesRead(chunkEnd - offset);
    offset = chunkEnd;
  }
}
