// UploadFile: one stream of chunks from the socket into a new version of a file (spec 3.5, 4.6, D15, D16).

import type { Clock } from "#base/clock.ts";
import { GroveError } from "#base/errors.ts";
import { FILE_MAX_BYTES, SESSION_SWEEP_INTERVAL_MS, UPLOAD_MESSAGE_MAX_BYTES } from "#base/limits.ts";
import { errorText, type Logger } from "#base/log.ts";
import type { SlicedMessage, SlicedSource } from "#grpc/sliced.ts";
import { OnExists } from "#proto/gen/grove/v1/common_pb.ts";
import type {
  Chunk,
  UploadHeader,
  UploadRequestSchema,
  UploadResponse,
} from "#proto/gen/grove/v1/file_server_pb.ts";
import type { Holding, QuotaLedger } from "#quota/ledger.ts";
import type { QuotaBook } from "#quota/quota-book.ts";
import type { Change, Storage, UploadSink } from "#storage/storage.ts";
import type { NodeTelemetry } from "#telemetry/node-telemetry.ts";
import { type Access, type Reached, retryWhenStale, type Slot, slotOf } from "./access.ts";
import type { Caller } from "./caller.ts";
import { contextOf } from "./changes.ts";
import { requireEtag, tooLarge } from "./content-operations.ts";
import { entryAttr } from "./namespace-operations.ts";
import type { OperationMeter } from "./operation-meter.ts";
import type { RootUsage } from "./root-usage.ts";
import type { StreamSlots } from "./stream-slots.ts";

/** Looks at intervals for uploads that wait for a client whose session has ended, so that none holds its reservation for ever. */
export class UploadWatch {
  readonly #uploads = new Set<Upload>();
  readonly #stop: () => void;

  constructor(clock: Clock) {
    this.#stop = clock.every(SESSION_SWEEP_INTERVAL_MS, () => {
      for (const upload of this.#uploads) upload.giveUpIfOver();
    });
  }

  /** Watches an upload while it runs; there are no more than the slots allow. */
  async over<T>(upload: Upload, run: () => Promise<T>): Promise<T> {
    this.#uploads.add(upload);
    try {
      return await run();
    } finally {
      this.#uploads.delete(upload);
    }
  }

  /** Ends the watch. */
  stop(): void {
    this.#stop();
  }
}

/** What uploads are made from. */
export interface UploadDeps {
  readonly storage: Storage;
  readonly access: Access;
  readonly ledger: QuotaLedger;
  readonly quotas: Pick<QuotaBook, "quotaBytes">;
  readonly usage: RootUsage;
  readonly meter: OperationMeter;
  readonly telemetry: NodeTelemetry;
  readonly slots: StreamSlots;
  readonly watch: UploadWatch;
  readonly log: Logger;
}

/** As far from 1970 as a date can be, in either direction (ECMA-262). */
const TIME_MAX_MS = 8_640_000_000_000_000n;

type Source = SlicedSource<typeof UploadRequestSchema>;
type Message = SlicedMessage<typeof UploadRequestSchema>;
type Reply = Omit<UploadResponse, "$typeName" | "$unknown">;

/**
 * Receives one upload. Any breach (quota, reserve, checksum, order, session, a client that goes away) drops what was received, so that
 * sizes and reservations are as before (spec 3.5). Throws the refusals of D1.
 */
export function receiveUpload(deps: UploadDeps, caller: Caller, source: Source): Promise<Reply> {
  return deps.meter.later("write", () =>
    deps.slots.run(caller.identity.username, async () => {
      const header = headerOf(await source.next());
      const upload = new Upload(deps, caller, header);
      try {
        await deps.watch.over(upload, () => upload.receive(source));
        return await upload.commit();
      } catch (error) {
        await upload.abort(error);
        throw error;
      } finally {
        upload.end();
      }
    }),
  );
}

function headerOf(first: Message | null): UploadHeader {
  const part = first?.message.part;
  if (part?.case !== "header") throw new GroveError("BAD_ARGUMENT", "an upload begins with its header");
  const header = part.value;
  if (header.uploadId !== "" || header.resumeOffset !== 0n) {
    throw new GroveError(
      "NOT_IMPLEMENTED",
      "this server does not resume uploads; send the file from its start",
    );
  }
  if (header.sizeKnown && header.size > BigInt(FILE_MAX_BYTES)) throw tooLarge();
  if (header.mtimeMs < -TIME_MAX_MS || header.mtimeMs > TIME_MAX_MS) {
    throw new GroveError("BAD_ARGUMENT", "mtime_ms is not a time");
  }
  if (header.onExists !== OnExists.REPLACE && header.onExists !== OnExists.FAIL) {
    throw new GroveError("BAD_ARGUMENT", "on_exists has a value that this server does not know");
  }
  return header;
}

/** An upload under way. It holds a claim in the ledger and a sink in storage, and ends both. */
class Upload {
  readonly #deps: UploadDeps;
  readonly #caller: Caller;
  readonly #header: UploadHeader;
  readonly #sizeBytes: number | undefined;
  readonly #owner: string;
  readonly #reached: Reached;
  readonly #holding: Holding;
  readonly #sink: UploadSink;
  #receivedBytes = 0;
  #giveUp: ((reason: unknown) => void) | undefined;
  /** Bytes of the message before: only when the next one has followed them are they surely where statfs counts them. */
  #lastBytes = 0;

  /** Permission, path, quota, reserve, in that order, before the first byte (D15, D16). */
  constructor(deps: UploadDeps, caller: Caller, header: UploadHeader) {
    this.#deps = deps;
    this.#caller = caller;
    this.#header = header;
    this.#sizeBytes = header.sizeKnown ? Number(header.size) : undefined;
    const { reached, slot } = this.#place();
    const { root } = reached.resolution;
    this.#owner = root.owner;
    this.#reached = reached;
    this.#holding = deps.ledger.open({ owner: root.owner, usage: root.usage });
    try {
      if (slot.present === undefined) this.#holding.checkCreate(this.#sizeBytes);
      this.#holding.reserve(BigInt(this.#sizeBytes ?? 0));
      this.#sink = deps.storage.beginUpload({ owner: root.owner, sizeBytes: this.#sizeBytes });
    } catch (error) {
      this.#holding.release();
      throw error;
    }
  }

  /** Takes every chunk until the client has sent all. */
  async receive(source: Source): Promise<void> {
    for (;;) {
      let message = source.next();
      if (message instanceof Promise) message = await this.#orGiveUp(message);
      if (message === null) break;
      const { part } = message.message;
      if (part.case !== "chunk") throw new GroveError("BAD_ARGUMENT", "after the header come only chunks");
      await this.#take(part.value, message);
    }
    if (this.#sizeBytes !== undefined && this.#receivedBytes !== this.#sizeBytes) {
      throw new GroveError(
        "BAD_ARGUMENT",
        `the upload ended after ${this.#receivedBytes} of ${this.#sizeBytes} bytes`,
      );
    }
  }

  /** Ends the wait for a client whose session has ended; while bytes move, the next chunk notices by itself. */
  giveUpIfOver(): void {
    if (this.#giveUp === undefined || this.#caller.isLive()) return;
    try {
      this.#caller.renew();
    } catch (error) {
      this.#giveUp(error);
    }
  }

  /** Makes what was received the file's content, durably. */
  async commit(): Promise<Reply> {
    const { reached, change } = await retryWhenStale(async () => {
      this.#caller.renew();
      // The place may have changed while the bytes came in: the decision is made anew, on the state that storage will hold us to.
      const { reached, slot } = this.#place();
      return { reached, change: await this.#sink.commit(this.#target(reached, slot)) };
    });
    this.#holding.settle(change.usedDeltaBytes);
    this.#deps.usage.record(this.#owner, change.usage);
    return this.#reply(reached, change);
  }

  /** Drops everything received. */
  async abort(reason: unknown): Promise<void> {
    try {
      await this.#sink.abort();
    } catch (error) {
      this.#deps.log.warn("upload_abort_failed", { error: errorText(error), reason: errorText(reason) });
    }
  }

  /** Gives back what is still reserved. */
  end(): void {
    this.#holding.release();
  }

  /** Not Promise.race: against one lasting promise it would keep a trace of every message. */
  #orGiveUp<T>(coming: Promise<T>): Promise<T> {
    return new Promise<T>((resolve, reject) => {
      this.#giveUp = reject;
      coming.then(resolve, reject);
    }).finally(() => {
      this.#giveUp = undefined;
    });
  }

  async #take(chunk: Chunk, { payloadBytes, payload }: Message): Promise<void> {
    this.#check(chunk, payloadBytes);
    if (this.#sizeBytes === undefined) this.#holding.reserve(BigInt(payloadBytes));
    else this.#holding.checkChunk(payloadBytes);
    this.#sink.beginMessage();
    for (;;) {
      let slice = payload.read();
      if (slice instanceof Promise) slice = await slice;
      if (slice === null) break;
      const written = this.#sink.write(slice);
      if (written !== undefined) await written;
    }
    const crc32 = this.#sink.endMessage();
    if (chunk.crc32 !== undefined && chunk.crc32 !== crc32) {
      throw new GroveError("CHECKSUM_MISMATCH", "a chunk arrived with other bytes than its checksum says", {
        metadata: { offset: String(this.#receivedBytes) },
      });
    }
    this.#receivedBytes += payloadBytes;
    this.#deps.telemetry.bytesWritten(payloadBytes);
    this.#holding.wrote(this.#lastBytes);
    this.#lastBytes = payloadBytes;
  }

  #check(chunk: Chunk, payloadBytes: number): void {
    this.#caller.renew();
    if (!this.#deps.access.stillAllowed(this.#caller.identity, this.#reached, "write")) {
      throw new GroveError("NOT_SHARED", "permission denied: this is no longer shared with you");
    }
    if (payloadBytes > UPLOAD_MESSAGE_MAX_BYTES) {
      throw new GroveError("BAD_ARGUMENT", `a chunk has at most ${UPLOAD_MESSAGE_MAX_BYTES} bytes`);
    }
    if (chunk.offset !== BigInt(this.#receivedBytes)) {
      throw new GroveError("OFFSET_MISMATCH", "chunks follow one another without gaps", {
        metadata: { offset: String(this.#receivedBytes) },
      });
    }
    const end = this.#receivedBytes + payloadBytes;
    if (end > FILE_MAX_BYTES) throw tooLarge();
    if (this.#sizeBytes !== undefined && end > this.#sizeBytes) {
      throw new GroveError(
        "BAD_ARGUMENT",
        `more bytes than the ${this.#sizeBytes} that the header announced`,
      );
    }
  }

  #place(): { reached: Reached; slot: Slot } {
    const header = this.#header;
    const reached = this.#deps.access.reach(this.#caller.identity, header.root, header.path, "write");
    const slot = slotOf(reached, "IS_DIRECTORY");
    const { present } = slot;
    if (present?.kind === "directory") throw new GroveError("IS_DIRECTORY", "a directory has this name");
    if (present !== undefined && header.onExists === OnExists.FAIL) {
      throw new GroveError("PATH_EXISTS", "this name is taken");
    }
    if (header.ifMatch !== "") {
      if (present === undefined) throw new GroveError("ETAG_MISMATCH", "there is no such file any more");
      requireEtag(present, header.ifMatch);
    }
    return { reached, slot };
  }

  #target(reached: Reached, { parent, name }: Slot): Parameters<UploadSink["commit"]>[0] {
    const header = this.#header;
    return {
      ...contextOf(this.#caller, reached),
      parentId: parent.id,
      name,
      onExists: header.onExists === OnExists.FAIL ? "fail" : "replace",
      ifMatch: header.ifMatch === "" ? undefined : header.ifMatch,
      mtimeMs: Number(header.mtimeMs),
    };
  }

  #reply(reached: Reached, change: Change): Reply {
    const { liveBytes, trashBytes, stagingBytes } = change.usage;
    return {
      attr: entryAttr(reached, change.inode),
      bytesWritten: BigInt(this.#receivedBytes),
      quotaUsed: BigInt(liveBytes + trashBytes + stagingBytes),
      quotaLimit: this.#deps.quotas.quotaBytes(this.#owner),
      uploadId: "",
    };
  }
}
