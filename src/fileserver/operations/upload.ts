// UploadFile: one stream of chunks from the socket into a new version of a file (spec 3.5, 4.6, D15, D16).
import type { AuditSink } from "#base/audit-act.ts";
import { GroveError, isGroveError, UPLOAD_ENDING_CODES } from "#base/errors.ts";
import { errorText, type Logger } from "#base/log.ts";
import type { StreamSlots } from "#fileserver/transfers/stream-slots.ts";
import type { UploadLease } from "#fileserver/transfers/upload-lease.ts";
import type { Holding, QuotaLedger } from "#quota/ledger.ts";
import type { QuotaStore } from "#quota/quota-store.ts";
import type { Change, UploadSink } from "#storage/contract/inode.ts";
import { againWhenRowsCome, whenRowsAreHere } from "#storage/contract/rows-to-come.ts";
import type { Storage } from "#storage/contract/storage.ts";
import type { ResumableSink, StagingChange, StoredUpload } from "#storage/contract/upload-store.ts";
import type { NodeTelemetry } from "#telemetry/node-telemetry.ts";
import type { CallContext } from "#wire/grpc/handler.ts";
import type { SlicedMessage, SlicedSource } from "#wire/grpc/sliced.ts";
import type {
  Chunk,
  UploadHeader,
  UploadRequestSchema,
  UploadResponse,
} from "#wire/proto/gen/grove/v1/file_server_pb.ts";
import type { AbandonedStreams } from "./abandoned-streams.ts";
import { type Access, noLongerShared, type Reached, type Slot } from "./access.ts";
import type { Caller } from "./caller.ts";
import { contextOf } from "./changes.ts";
import { refuseIfCancelled, requireNext } from "./chunk-bounds.ts";
import { receiveDrop, retryWhenTaken } from "./link-transfers.ts";
import type { LockRule } from "./lock-rule.ts";
import { entryAttr } from "./namespace-operations.ts";
import type { OperationMeter } from "./operation-meter.ts";
import type { ResumableOperations } from "./resumable-operations.ts";
import type { RootUsage } from "./root-usage.ts";
import { auditReplaced } from "./trash-audit.ts";
import { UploadElsewhere } from "./upload-elsewhere.ts";
import {
  fromHeader,
  fromStored,
  headerOf,
  makingOf,
  placeOfUpload,
  requireOffset,
  type UploadRequest,
} from "./upload-request.ts";

/** Dependencies of uploads. */
export interface UploadDeps {
  readonly storage: Storage;
  readonly access: Access;
  readonly locks: LockRule;
  readonly ledger: QuotaLedger;
  readonly quotas: Pick<QuotaStore, "quotaBytes">;
  readonly usage: RootUsage;
  readonly meter: OperationMeter;
  readonly telemetry: NodeTelemetry;
  readonly slots: StreamSlots;
  readonly abandoned: AbandonedStreams;
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
  { link, signal }: Pick<CallContext, "link" | "signal">,
): Promise<Reply> {
  const elsewhere = link && new UploadElsewhere(link, signal);
  return deps.meter.later("write", () =>
    deps.slots.run(caller.identity.username, async () => {
      const first = headerOf(await deps.abandoned.first(caller, source.next()));
      return receiveDrop(deps.storage.links, caller, first, (header) =>
        header.uploadId === ""
          ? receivePlain(deps, caller, header, { source, signal, elsewhere })
          : receiveResumable(deps, caller, header, { source, elsewhere }),
      );
    }),
  );
}

/** The messages of an upload, and the thread of their payload where it is another. */
interface Stream {
  readonly source: Source;
  readonly elsewhere: UploadElsewhere | undefined;
}

/** Receives a plain upload, which is dropped at any failure. */
async function receivePlain(
  deps: UploadDeps,
  caller: Caller,
  header: UploadHeader,
  { source, signal, elsewhere }: Stream & { readonly signal: AbortSignal },
): Promise<Reply> {
  if (header.resumeOffset !== 0n) {
    throw new GroveError("BAD_ARGUMENT", "only an upload with an upload_id begins anywhere but at 0");
  }
  const upload = await againWhenRowsCome(() => new Upload(deps, caller, fromHeader(header), { elsewhere }));
  try {
    await deps.abandoned.watch(caller, upload, () => upload.receive(source));
    if (!header.sizeKnown) await refuseIfCancelled(signal);
    return await upload.commit();
  } catch (error) {
    await upload.abort(error);
    throw error;
  } finally {
    upload.end();
  }
}

/** One stream of a resumable upload (D15): a quota breach drops all of it (spec 3.5), a break keeps it. */
async function receiveResumable(
  deps: UploadDeps,
  caller: Caller,
  header: UploadHeader,
  { source, elsewhere }: Stream,
): Promise<Reply> {
  const { resumable, turns } = deps;
  const { uploadId } = await againWhenRowsCome(() => resumable.own(caller, header));
  let upload: Upload | undefined;
  let takenOver: GroveError | undefined;
  const onTakenOver = (reason: GroveError): void => {
    takenOver = reason;
    upload?.giveUp(reason);
  };
  return turns.take(uploadId, onTakenOver, async () => {
    // The staged bytes are certain only now that no other stream works on it.
    const stored = await againWhenRowsCome(() => resumable.own(caller, header));
    requireOffset(header.resumeOffset, stored.stagedBytes);
    if (header.sizeKnown && header.size !== BigInt(stored.sizeBytes)) {
      throw new GroveError("BAD_ARGUMENT", `this upload was begun with ${stored.sizeBytes} bytes`, {
        metadata: { size: String(stored.sizeBytes) },
      });
    }
    const current = await beginStream(deps, caller, stored, elsewhere);
    upload = current;
    if (takenOver !== undefined) current.giveUp(takenOver);
    try {
      await deps.abandoned.watch(caller, current, () => current.receive(source));
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
async function beginStream(
  deps: UploadDeps,
  caller: Caller,
  stored: StoredUpload,
  elsewhere: UploadElsewhere | undefined,
): Promise<Upload> {
  try {
    return await againWhenRowsCome(() => new Upload(deps, caller, fromStored(stored), { stored, elsewhere }));
  } catch (error) {
    if (isGroveError(error, ...UPLOAD_ENDING_CODES)) await deps.resumable.drop(stored);
    throw error;
  }
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
  /** True where another thread moves the bytes. */
  readonly #isElsewhere: boolean;
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
  constructor(
    deps: UploadDeps,
    caller: Caller,
    request: UploadRequest,
    { stored, elsewhere }: Partial<{ stored: StoredUpload; elsewhere: UploadElsewhere | undefined }>,
  ) {
    this.#isElsewhere = elsewhere !== undefined;
    this.#deps = deps;
    this.#caller = caller;
    this.#request = request;
    this.#uploadId = stored?.uploadId ?? "";
    this.#sizeBytes = request.sizeBytes;
    this.#offsetBytes = stored?.stagedBytes ?? 0;
    this.#receivedBytes = this.#offsetBytes;
    this.#stagedBytes = this.#offsetBytes;
    const { reached, slot } = placeOfUpload(deps, caller, request);
    const { root } = reached.resolution;
    this.#owner = root.owner;
    this.#reached = reached;
    this.#holding = deps.ledger.open({ owner: root.owner, usage: root.usage });
    try {
      this.#claimPlace(reached, slot);
      this.#holding.reserve(BigInt((this.#sizeBytes ?? 0) - this.#offsetBytes));
      const { storage } = deps;
      this.#resumable =
        stored && storage.uploads.open(stored.uploadId, (change) => this.#staged(change), elsewhere);
      this.#sink =
        this.#resumable ??
        storage.beginUpload({
          owner: root.owner,
          by: caller.identity.username,
          sizeBytes: request.sizeBytes,
          elsewhere,
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
    const { reached, change } = await retryWhenTaken(this.#caller.identity, async () => {
      this.#caller.renew();
      // The place may have changed since the begin: decides anew on the state that storage will check.
      const { reached, slot } = placeOfUpload(this.#deps, this.#caller, this.#request);
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

  /** Also where the end came before. Not Promise.race: one lasting promise would keep a trace of every message. */
  #orGiveUp<T>(coming: Promise<T>): Promise<T> {
    return new Promise<T>((resolve, reject) => {
      this.#giveUp = reject;
      coming.then(resolve, reject);
      if (this.#wasGivenUp !== undefined) this.#giveUp(this.#wasGivenUp.reason);
    }).finally(() => {
      this.#giveUp = undefined;
    });
  }

  async #take(chunk: Chunk, { payloadBytes, payload }: Message): Promise<void> {
    this.#caller.renew();
    const { access } = this.#deps;
    const isAllowed = whenRowsAreHere(() =>
      access.stillAllowed(this.#caller.identity, this.#reached, "write"),
    );
    if (!(isAllowed instanceof Promise ? await isAllowed : isAllowed)) throw noLongerShared(this.#reached);
    requireNext(chunk, payloadBytes, { receivedBytes: this.#receivedBytes, sizeBytes: this.#sizeBytes });
    if (this.#sizeBytes === undefined) this.#holding.reserve(BigInt(payloadBytes));
    else this.#holding.checkChunk(payloadBytes);
    let crc32: number;
    if (this.#isElsewhere) {
      const taken = this.#sink.takeElsewhere(payloadBytes);
      crc32 = await (this.#resumable ? this.#orGiveUp(taken) : taken);
    } else {
      this.#sink.beginMessage();
      for (;;) {
        let slice = payload.read();
        // Another stream of a resumable upload must not wait for the timeout of a dead connection.
        if (slice instanceof Promise) slice = await (this.#resumable ? this.#orGiveUp(slice) : slice);
        if (slice === null) break;
        const written = this.#sink.write(slice);
        if (written !== undefined) await written;
      }
      crc32 = this.#sink.endMessage();
    }
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
