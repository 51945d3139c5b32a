// UploadFile: one stream of chunks from the socket into a new version of a file (spec 3.5, 4.6, D15, D16).
import { setImmediate as turnEnd } from "node:timers/promises";
import type { AuditSink } from "#base/audit-act.ts";
import { GroveError, isGroveError, UPLOAD_ENDING_CODES } from "#base/errors.ts";
import { FILE_MAX_BYTES, UPLOAD_MESSAGE_MAX_BYTES } from "#base/limits.ts";
import { errorText, type Logger } from "#base/log.ts";
import type { Holding, QuotaLedger } from "#quota/ledger.ts";
import type { QuotaStore } from "#quota/quota-store.ts";
import type { Change, UploadSink } from "#storage/contract/inode.ts";
import type { Storage } from "#storage/contract/storage.ts";
import type { ResumableSink, StagingChange, StoredUpload } from "#storage/contract/upload-store.ts";
import type { NodeTelemetry } from "#telemetry/node-telemetry.ts";
import type { SlicedMessage, SlicedSource } from "#wire/grpc/sliced.ts";
import type {
  Chunk,
  UploadHeader,
  UploadRequestSchema,
  UploadResponse,
} from "#wire/proto/gen/grove/v1/file_server_pb.ts";
import { type Access, noLongerShared, type Reached, retryWhenStale, type Slot } from "./access.ts";
import type { Caller } from "./caller.ts";
import { contextOf } from "./changes.ts";
import { tooLarge } from "./content-operations.ts";
import { entryAttr } from "./namespace-operations.ts";
import type { OperationMeter } from "./operation-meter.ts";
import type { ResumableOperations } from "./resumable-operations.ts";
import type { RootUsage } from "./root-usage.ts";
import type { StreamSlots } from "./stream-slots.ts";
import { auditReplaced } from "./trash-audit.ts";
import type { UploadLease } from "./upload-lease.ts";
import { fromHeader, fromStored, makingOf, placeOfUpload, type UploadRequest } from "./upload-request.ts";
import type { UploadWatch } from "./upload-watch.ts";

/** Dependencies of uploads. */
export interface UploadDeps {
  readonly storage: Storage;
  readonly access: Access;
  readonly ledger: QuotaLedger;
  readonly quotas: Pick<QuotaStore, "quotaBytes">;
  readonly usage: RootUsage;
  readonly meter: OperationMeter;
  readonly telemetry: NodeTelemetry;
  readonly slots: StreamSlots;
  readonly watch: UploadWatch;
  readonly turns: UploadLease;
  readonly resumable: Pick<ResumableOperations, "own" | "drop">;
  readonly audit: AuditSink;
  readonly log: Logger;
}

type Source = SlicedSource<typeof UploadRequestSchema>;
type Message = SlicedMessage<typeof UploadRequestSchema>;
type Reply = Omit<UploadResponse, "$typeName" | "$unknown">;

/**
 * Receives one upload, or one stream of a resumable one. Any breach of a plain one (quota, reserve, checksum,
 * order, session, a lost client) drops all its bytes, so that sizes and reservations are as before
 * (spec 3.5). Throws the refusals of D1.
 */
export function receiveUpload(
  deps: UploadDeps,
  caller: Caller,
  source: Source,
  signal: AbortSignal,
): Promise<Reply> {
  return deps.meter.later("write", () =>
    deps.slots.run(caller.identity.username, async () => {
      const header = headerOf(await deps.watch.first(caller, source.next()));
      return header.uploadId === ""
        ? receivePlain(deps, caller, header, { source, signal })
        : receiveResumable(deps, caller, header, source);
    }),
  );
}

function headerOf(first: Message | null): UploadHeader {
  const part = first?.message.part;
  if (part?.case !== "header") throw new GroveError("BAD_ARGUMENT", "an upload begins with its header");
  return part.value;
}

/** Receives a plain upload, which is dropped at any failure. */
async function receivePlain(
  deps: UploadDeps,
  caller: Caller,
  header: UploadHeader,
  { source, signal }: { readonly source: Source; readonly signal: AbortSignal },
): Promise<Reply> {
  if (header.resumeOffset !== 0n) {
    throw new GroveError("BAD_ARGUMENT", "only an upload with an upload_id begins anywhere but at 0");
  }
  const upload = new Upload(deps, caller, fromHeader(header), undefined);
  try {
    await deps.watch.over(caller, upload, () => upload.receive(source));
    if (!header.sizeKnown) await refuseIfCancelled(signal);
    return await upload.commit();
  } catch (error) {
    await upload.abort(error);
    throw error;
  } finally {
    upload.end();
  }
}

/** Refuses an upload of unknown size that its client resets right after an orderly end: bytes are missing. */
async function refuseIfCancelled(signal: AbortSignal): Promise<void> {
  await turnEnd();
  signal.throwIfAborted();
}

/** One stream of a resumable upload (D15): a quota breach drops all of it (spec 3.5), a break keeps it. */
async function receiveResumable(
  deps: UploadDeps,
  caller: Caller,
  header: UploadHeader,
  source: Source,
): Promise<Reply> {
  const { resumable, turns } = deps;
  const { uploadId } = resumable.own(caller, header);
  let upload: Upload | undefined;
  let takenOver: GroveError | undefined;
  const onTakenOver = (reason: GroveError): void => {
    takenOver = reason;
    upload?.giveUp(reason);
  };
  return turns.take(uploadId, onTakenOver, async () => {
    // The staged bytes are certain only now that no other stream works on it.
    const stored = resumable.own(caller, header);
    requireOffset(header.resumeOffset, stored.stagedBytes);
    if (header.sizeKnown && header.size !== BigInt(stored.sizeBytes)) {
      throw new GroveError("BAD_ARGUMENT", `this upload was begun with ${stored.sizeBytes} bytes`, {
        metadata: { size: String(stored.sizeBytes) },
      });
    }
    if (takenOver !== undefined) throw takenOver;
    const current = await beginStream(deps, caller, stored);
    upload = current;
    try {
      await deps.watch.over(caller, current, () => current.receive(source));
      return await current.commit();
    } catch (error) {
      if (isGroveError(error, ...UPLOAD_ENDING_CODES)) await current.abort(error);
      else await current.suspend();
      throw error;
    } finally {
      current.end();
    }
  });
}

/** Checks an upload before its first byte; one that cannot go on is dropped here as it would be later. */
async function beginStream(deps: UploadDeps, caller: Caller, stored: StoredUpload): Promise<Upload> {
  try {
    return new Upload(deps, caller, fromStored(stored), stored);
  } catch (error) {
    if (isGroveError(error, ...UPLOAD_ENDING_CODES)) await deps.resumable.drop(stored);
    throw error;
  }
}

function requireOffset(stated: bigint, offsetBytes: number): void {
  if (stated === BigInt(offsetBytes)) return;
  throw new GroveError("OFFSET_MISMATCH", "the upload goes on at another offset", {
    metadata: { offset: String(offsetBytes) },
  });
}

/** A running upload. It holds a claim in the ledger and a sink in storage, and ends both. */
class Upload {
  readonly #deps: UploadDeps;
  readonly #caller: Caller;
  readonly #request: UploadRequest;
  readonly #uploadId: string;
  readonly #sizeBytes: number | undefined;
  readonly #owner: string;
  readonly #reached: Reached;
  readonly #holding: Holding;
  readonly #sink: UploadSink;
  readonly #resumable: ResumableSink | undefined;
  #receivedBytes: number;
  /** Bytes of this upload that already count as used. */
  #stagedBytes: number;
  /** Offset at which this stream began. */
  readonly #offsetBytes: number;
  #giveUp: ((reason: unknown) => void) | undefined;
  #wasGivenUp: { readonly reason: unknown } | undefined;
  /** Bytes of the previous message: statfs surely counts them only after the next one has come. */
  #lastBytes = 0;

  /** Checks permission, path, quota (of bytes not yet staged), reserve before the first byte (D15, D16). */
  constructor(deps: UploadDeps, caller: Caller, request: UploadRequest, stored: StoredUpload | undefined) {
    this.#deps = deps;
    this.#caller = caller;
    this.#request = request;
    this.#uploadId = stored?.uploadId ?? "";
    this.#sizeBytes = request.sizeBytes;
    this.#offsetBytes = stored?.stagedBytes ?? 0;
    this.#receivedBytes = this.#offsetBytes;
    this.#stagedBytes = this.#offsetBytes;
    const { reached, slot } = placeOfUpload(deps.access, caller.identity, request);
    const { root } = reached.resolution;
    this.#owner = root.owner;
    this.#reached = reached;
    this.#holding = deps.ledger.open({ owner: root.owner, usage: root.usage });
    try {
      this.#claimPlace(reached, slot);
      this.#holding.reserve(BigInt((this.#sizeBytes ?? 0) - this.#offsetBytes));
      const { storage } = deps;
      const { sizeBytes } = request;
      this.#resumable = stored && storage.uploads.open(stored.uploadId, (change) => this.#staged(change));
      this.#sink =
        this.#resumable ??
        storage.beginUpload({
          owner: root.owner,
          by: caller.identity.username,
          sizeBytes,
        });
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
      if (this.#wasGivenUp !== undefined) throw this.#wasGivenUp.reason;
      if (message === null) break;
      const { part } = message.message;
      if (part.case !== "chunk") throw new GroveError("BAD_ARGUMENT", "after the header come only chunks");
      await this.#take(part.value, message);
    }
    if (this.#sizeBytes !== undefined && this.#receivedBytes !== this.#sizeBytes) {
      throw new GroveError(
        "BAD_ARGUMENT",
        `the upload ended after ${this.#receivedBytes} of ${this.#sizeBytes} bytes`,
        { metadata: { received: String(this.#receivedBytes), size: String(this.#sizeBytes) } },
      );
    }
  }

  /** Ends the wait for a client whose session has ended; while bytes move, the next chunk checks that. */
  giveUpIfOver(): void {
    if (this.#giveUp === undefined || this.#caller.isLive()) return;
    try {
      this.#caller.renew();
    } catch (error) {
      this.#giveUp(error);
    }
  }

  /** Makes the received bytes the file's content, durably. */
  async commit(): Promise<Reply> {
    const { reached, change } = await retryWhenStale(async () => {
      this.#caller.renew();
      // The place may have changed since the begin: decides anew on the state that storage will check.
      const { access } = this.#deps;
      const { reached, slot } = placeOfUpload(access, this.#caller.identity, this.#request);
      this.#claimPlace(reached, slot);
      return { reached, change: await this.#sink.commit(this.#target(reached, slot)) };
    });
    this.#holding.settle(change);
    this.#deps.usage.record(this.#owner, change.usage);
    auditReplaced(this.#deps.audit, { actor: this.#caller.identity.username, owner: this.#owner }, change);
    return this.#reply(reached, change);
  }

  /** Drops all received bytes. */
  async abort(reason: unknown): Promise<void> {
    try {
      await this.#sink.abort();
    } catch (error) {
      this.#deps.log.warn("upload_abort_failed", { error: errorText(error), reason: errorText(reason) });
    }
  }

  /** Keeps the staging for another stream. */
  async suspend(): Promise<void> {
    try {
      await this.#resumable?.suspend();
    } catch (error) {
      this.#deps.log.warn("upload_suspend_failed", { error: errorText(error) });
    }
  }

  /** Ends the stream where it waits for its client. */
  giveUp(reason: unknown): void {
    this.#wasGivenUp ??= { reason };
    this.#giveUp?.(reason);
  }

  /** Releases the remaining reservation. */
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
      // Another stream of a resumable upload must not wait for the timeout of a dead connection.
      if (slice instanceof Promise) slice = await (this.#resumable ? this.#orGiveUp(slice) : slice);
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
    this.#resumable?.acceptMessage();
    this.#receivedBytes += payloadBytes;
    this.#deps.telemetry.bytesWritten(payloadBytes);
    this.#holding.wrote(this.#lastBytes);
    this.#lastBytes = payloadBytes;
  }

  /** Claims what the place needs beyond the earlier claim (spec 4.6.1). */
  #claimPlace(reached: Reached, slot: Slot): void {
    this.#holding.claimInodes(makingOf(reached, slot), {
      requestedBytes: BigInt(this.#sizeBytes ?? 0),
      ownBytes: BigInt(this.#stagedBytes),
    });
  }

  #staged(change: StagingChange): void {
    this.#stagedBytes += change.usedDeltaBytes;
    this.#holding.staged(change.usedDeltaBytes);
    this.#deps.usage.record(this.#owner, change.usage);
  }

  #check(chunk: Chunk, payloadBytes: number): void {
    this.#caller.renew();
    if (!this.#deps.access.stillAllowed(this.#caller.identity, this.#reached, "write")) {
      throw noLongerShared();
    }
    if (payloadBytes > UPLOAD_MESSAGE_MAX_BYTES) {
      throw new GroveError("BAD_ARGUMENT", `a chunk has at most ${UPLOAD_MESSAGE_MAX_BYTES} bytes`, {
        metadata: { limit_bytes: String(UPLOAD_MESSAGE_MAX_BYTES) },
      });
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
        { metadata: { size: String(this.#sizeBytes) } },
      );
    }
  }

  #target(reached: Reached, { parent, name }: Slot): Parameters<UploadSink["commit"]>[0] {
    const { onExists, ifMatch, mtimeMs } = this.#request;
    return {
      ...contextOf(this.#caller, reached),
      maxInodes: this.#holding.inodes,
      parentId: parent.id,
      name,
      onExists,
      ifMatch,
      mtimeMs,
    };
  }

  #reply(reached: Reached, change: Change): Reply {
    const { liveBytes, trashBytes, stagingBytes } = change.usage;
    return {
      attr: entryAttr(reached, change.inode),
      bytesWritten: BigInt(this.#receivedBytes),
      quotaUsed: BigInt(liveBytes + trashBytes + stagingBytes),
      quotaLimit: this.#deps.quotas.quotaBytes(this.#owner),
      uploadId: this.#uploadId,
    };
  }
}
