// Sends one version of a file block by block from disk to socket, never a byte that fails its checksum (D15).
import { CHUNK_BYTES } from "#base/limits.ts";
import type { Logger } from "#base/log.ts";
import { Pump, type StallWatch } from "#fileserver/transfers/download-pump.ts";
import type { LargeReads } from "#fileserver/transfers/large-reads.ts";
import type { StreamSlots } from "#fileserver/transfers/stream-slots.ts";
import { chunkStart } from "#fileserver/transfers/transfer-messages.ts";
import type { ByteRange, FileContent } from "#storage/contract/file-content.ts";
import type { Inode } from "#storage/contract/inode.ts";
import { againWhenRowsCome, whenRowsAreHere } from "#storage/contract/rows-to-come.ts";
import type { Storage } from "#storage/contract/storage.ts";
import type { NodeTelemetry } from "#telemetry/node-telemetry.ts";
import type { CallContext } from "#wire/grpc/handler.ts";
import type { SlicedWriter } from "#wire/grpc/sliced.ts";
import type { DownloadRequest, DownloadResponseSchema } from "#wire/proto/gen/grove/v1/file_server_pb.ts";
import type { AbandonedStreams } from "./abandoned-streams.ts";
import { type Access, existingFile, noLongerShared, type Reached } from "./access.ts";
import type { Caller } from "./caller.ts";
import { requireEtag } from "./changes.ts";
import { logCorruption, offsetInside } from "./content-operations.ts";
import { DistantPump } from "./distant-pump.ts";
import { countDownload } from "./link-transfers.ts";
import { attrAt } from "./namespace-operations.ts";
import type { OperationMeter } from "./operation-meter.ts";

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
  readonly abandoned: AbandonedStreams;
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
  context: Pick<CallContext, "link" | "signal">,
): Promise<void> {
  return deps.meter.later("read", () =>
    deps.slots.run(caller.identity.username, async () => {
      await countDownload({ access: deps.access, links: deps.storage.links }, caller, request);
      const { reached, file, content, ...range } = await againWhenRowsCome(() =>
        opened(deps, caller, request),
      );
      const { link } = context;
      const { abandoned } = deps;
      const requireLive = () => {
        if (!caller.isLive()) caller.renew();
      };
      const takeLarge = () => deps.largeReads.take(caller.identity.username);
      const pump =
        link === undefined
          ? new Pump(content, writer, { requireLive, takeLarge })
          : new DistantPump({ link, signal: context.signal, content, writer, caller, abandoned, takeLarge });
      deps.stalls.add(pump);
      try {
        const sent = writer.message({ part: { case: "attr", value: attrAt(reached, file) } }, 0);
        if (sent !== true) await sent;
        await sendChunks(deps, { caller, reached, content, pump, writer }, range.offset, range.end);
      } catch (error) {
        logCorruption(deps.log, reached, file, error);
        throw error;
      } finally {
        deps.stalls.remove(pump);
        await pump.end();
        content.close();
      }
    }),
  );
}

/** The decision and the pinned version, of one moment. */
function opened(
  { access, storage }: DownloadDeps,
  caller: Caller,
  request: DownloadRequest,
): ByteRange & { readonly reached: Reached; readonly file: Inode; readonly content: FileContent } {
  const reached = access.reach(caller.identity, request.root, request.path, "read");
  const file = existingFile(reached);
  requireEtag(file, request.ifMatch);
  const offset = offsetInside(file, request.offset);
  const leftBytes = file.sizeBytes - offset;
  const isRest = request.length === 0n || request.length > BigInt(leftBytes);
  const end = offset + (isRest ? leftBytes : Number(request.length));
  return { reached, file, offset, end, content: storage.openFile(file.id, { offset, end }) };
}

interface Sending {
  readonly caller: Caller;
  readonly reached: Reached;
  readonly content: FileContent;
  readonly pump: Pump | DistantPump;
  readonly writer: Writer;
}

async function sendChunks(deps: DownloadDeps, sending: Sending, from: number, end: number): Promise<void> {
  const { caller, reached, content, pump, writer } = sending;
  for (let offset = from; offset < end; ) {
    const chunkEnd = Math.min(end, chunkStart(offset) + CHUNK_BYTES);
    if (offset !== from) {
      caller.renew();
      let isAllowed = whenRowsAreHere(() => deps.access.stillAllowed(caller.identity, reached, "read"));
      if (isAllowed instanceof Promise) isAllowed = await isAllowed;
      if (!isAllowed) throw noLongerShared(reached);
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
