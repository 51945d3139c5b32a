// BeginUpload, GetUpload and AbortUpload, and the expiry of idle uploads (D15).
import type { Clock } from "#base/clock.ts";
import { UPLOAD_IDLE_MS } from "#base/limits.ts";
import { errorText, type Logger } from "#base/log.ts";
import { joinPath } from "#base/names.ts";
import type { Random } from "#base/random.ts";
import { ulid } from "#base/ulid.ts";
import type { UploadLease } from "#fileserver/transfers/upload-lease.ts";
import type { QuotaLedger } from "#quota/ledger.ts";
import { againWhenRowsCome } from "#storage/contract/rows-to-come.ts";
import type { Storage } from "#storage/contract/storage.ts";
import type { StagingChange, StoredUpload } from "#storage/contract/upload-store.ts";
import { noSuchUpload } from "#storage/writer/upload-commands.ts";
import type { BeginUploadRequest, Upload } from "#wire/proto/gen/grove/v1/file_server_pb.ts";
import { type Access, retryWhenStale } from "./access.ts";
import type { Caller } from "./caller.ts";
import { contextOf } from "./changes.ts";
import type { LockRule } from "./lock-rule.ts";
import type { OperationMeter } from "./operation-meter.ts";
import type { RootUsage } from "./root-usage.ts";
import { fromBegin, makingOf, placeOfUpload } from "./upload-request.ts";

/** Interval of the search for expired uploads. */
export const UPLOAD_EXPIRY_INTERVAL_MS: number = 10 * 60_000;
/** Uploads that are looked at together when some expire; the next ones follow in the same pass. */
export const UPLOAD_EXPIRY_BATCH = 256;

/** Dependencies of the operations. */
export interface ResumableDeps {
  readonly storage: Storage;
  readonly access: Access;
  readonly locks: LockRule;
  readonly ledger: QuotaLedger;
  readonly usage: RootUsage;
  readonly meter: OperationMeter;
  readonly turns: UploadLease;
  readonly clock: Clock;
  readonly random: Random;
  readonly log: Logger;
}

type Reply = Omit<Upload, "$typeName" | "$unknown">;

/** Resumable uploads, each visible only to the user who began it. */
export class ResumableOperations {
  readonly #deps: ResumableDeps;
  readonly #stopExpiry: () => void;
  #isExpiring = false;
  #isStopped = false;

  constructor(deps: ResumableDeps) {
    this.#deps = deps;
    this.#stopExpiry = deps.clock.every(UPLOAD_EXPIRY_INTERVAL_MS, () => {
      if (this.#isExpiring) return;
      this.#isExpiring = true;
      void this.expire().finally(() => {
        this.#isExpiring = false;
      });
    });
  }

  /**
   * Begins an upload after the checks that its first stream repeats: permission, path, quota, reserve.
   * Nothing stays reserved between streams. Ends again when the signal has aborted meanwhile. Throws
   * TOO_MANY_UPLOADS and what UploadFile throws for its header.
   */
  begin(caller: Caller, request: BeginUploadRequest, signal: AbortSignal): Promise<Reply> {
    const { ledger, storage, clock, random } = this.#deps;
    return this.#deps.meter.later("write", async () => {
      const requested = fromBegin(request);
      const uploadId = ulid(clock, random);
      const stored = await retryWhenStale(() => {
        const { reached, slot } = placeOfUpload(this.#deps, caller, requested);
        const { root } = reached.resolution;
        const holding = ledger.open({ owner: root.owner, usage: root.usage });
        try {
          holding.claimInodes(makingOf(reached, slot), { requestedBytes: BigInt(requested.sizeBytes) });
          holding.reserve(BigInt(requested.sizeBytes));
        } finally {
          holding.release();
        }
        const path = joinPath(reached.names);
        return storage.uploads.create({ ...contextOf(caller, reached), ...requested, path, uploadId });
      });
      if (signal.aborted) {
        // Who has gone learns no id, and nobody else may end it.
        await this.#alone(uploadId, () => this.drop(stored));
        signal.throwIfAborted();
      }
      return replyOf(stored);
    });
  }

  /** The bytes of an upload on stable storage. Throws NO_SUCH_UPLOAD, also for another user's upload. */
  get(caller: Caller, request: { readonly root: string; readonly uploadId: string }): Reply | Promise<Reply> {
    return this.#deps.meter.run("read", () => replyOf(this.own(caller, request)));
  }

  /** Ends an upload's stream and drops its staging, over quota and on a full disk. Throws NO_SUCH_UPLOAD. */
  abort(
    caller: Caller,
    request: { readonly root: string; readonly uploadId: string },
  ): Promise<{ freedBytes: bigint }> {
    return this.#deps.meter.later("write", async () => {
      const { uploadId } = await againWhenRowsCome(() => this.own(caller, request));
      // A dropped upload is not taken over: the next stream waits and finds nothing.
      const dropped = await this.#alone(uploadId, () => {
        const stored = this.own(caller, request);
        return this.drop(stored);
      });
      return { freedBytes: BigInt(-dropped.usedDeltaBytes) };
    });
  }

  /** The caller's own upload in a root. Throws NO_SUCH_UPLOAD, and WRONG_NODE for a root elsewhere. */
  own(caller: Caller, request: { readonly root: string; readonly uploadId: string }): StoredUpload {
    const { access, storage } = this.#deps;
    const owner = access.ownerOf(caller.identity, request.root);
    const stored = storage.uploads.find(request.uploadId);
    if (stored !== undefined && stored.owner === owner && stored.by === caller.identity.username) {
      // A person's upload may go to where this credential may not.
      if (caller.identity.limit !== undefined) access.reach(caller.identity, owner, stored.path, "write");
      return stored;
    }
    if (owner === caller.identity.username) access.reach(caller.identity, "", "/", "read");
    throw noSuchUpload();
  }

  /**
   * Drops uploads idle for 24 hours, and those whose place is no longer shared with their user, since they
   * count in the owner's quota. An upload with a stream is not idle, and ends by itself at its next chunk.
   */
  async expire(): Promise<void> {
    const { access } = this.#deps;
    const { uploads } = this.#deps.storage;
    const untilMs = uploads.nowMs() - UPLOAD_IDLE_MS;
    const isIdle = ({ touchedAtMs }: StoredUpload): boolean => touchedAtMs <= untilMs;
    const isNoHeir = ({ owner, by }: StoredUpload): boolean => {
      const heir = access.heirOf(owner, { username: by });
      return heir === undefined || heir.readOnly === true;
    };
    try {
      await this.#dropEach((after) => uploads.untouchedSince(untilMs, UPLOAD_EXPIRY_BATCH, after), isIdle);
      await this.#dropEach((after) => uploads.shutOut(UPLOAD_EXPIRY_BATCH, after), isNoHeir);
    } catch (error) {
      this.#deps.log.warn("upload_expiry_failed", { error: errorText(error) });
    }
  }

  /** Ends and drops all uploads of a user, in any root, and returns their number; refused ones expire. */
  async dropAllOf(username: string): Promise<number> {
    const { storage, log } = this.#deps;
    let dropped = 0;
    const dropOne = (uploadId: string): Promise<void> =>
      this.#alone(uploadId, async () => {
        const stored = storage.uploads.find(uploadId);
        if (stored === undefined) return;
        await this.drop(stored);
        dropped++;
      });
    const found = await againWhenRowsCome(() => storage.uploads.ofUser(username, UPLOAD_EXPIRY_BATCH));
    for (const { uploadId } of found) {
      try {
        await againWhenRowsCome(() => dropOne(uploadId));
      } catch (error) {
        log.warn("uploads_not_dropped", { user: username, error: errorText(error) });
      }
    }
    return dropped;
  }

  /** Drops what one batch after another holds and is still due; those that stay keep no later one back. */
  async #dropEach(
    next: (after: StoredUpload | undefined) => StoredUpload[],
    isStill: (stored: StoredUpload) => boolean,
  ): Promise<void> {
    const passedOver = new Set<string>();
    let last: StoredUpload | undefined;
    do {
      const after = last;
      const found = await againWhenRowsCome(() => next(after));
      for (const { uploadId, owner, by } of found) {
        if (this.#isStopped) return;
        if (passedOver.has(owner)) continue;
        try {
          await againWhenRowsCome(() => this.#dropIf(uploadId, isStill));
        } catch (error) {
          if (this.#deps.storage.failure !== undefined) throw error;
          // A root that moves away refuses; uploads into others go all the same.
          passedOver.add(owner);
          this.#deps.log.warn("upload_expiry_failed", { user: by, error: errorText(error) });
        }
      }
      last = found.at(-1);
    } while (last !== undefined);
  }

  /** Another stream may have continued or ended it while those before it were dropped. */
  async #dropIf(uploadId: string, isStill: (stored: StoredUpload) => boolean): Promise<void> {
    const { storage, turns, log } = this.#deps;
    if (turns.isTaken(uploadId)) return;
    const stored = storage.uploads.find(uploadId);
    if (stored === undefined || !isStill(stored)) return;
    const dropped = await this.#alone(uploadId, () => this.drop(stored));
    log.info("upload_expired", { user: stored.by, freed_bytes: -dropped.usedDeltaBytes });
  }

  /** Runs a drop as the only one on an upload, whose stream is told that it has gone. */
  #alone<T>(uploadId: string, drop: () => Promise<T>): Promise<T> {
    return this.#deps.turns.take(uploadId, ignore, drop, noSuchUpload());
  }

  /** Stops all timers; a search under way ends with its present upload. */
  stop(): void {
    this.#isStopped = true;
    this.#stopExpiry();
  }

  /** Drops the staging of an upload; the caller holds its lease. */
  async drop(stored: StoredUpload): Promise<StagingChange> {
    const { storage, ledger, usage } = this.#deps;
    const root = storage.root(stored.owner);
    if (root === undefined) throw noSuchUpload();
    const dropped = await ledger.change({ owner: stored.owner, usage: root.usage }, undefined, () =>
      storage.uploads.drop(stored.uploadId),
    );
    usage.record(stored.owner, dropped.usage);
    return dropped;
  }
}

function ignore(): void {
  // Each lease here is as short as one entry in the database.
}

function replyOf(stored: StoredUpload): Reply {
  return {
    uploadId: stored.uploadId,
    path: stored.path,
    size: BigInt(stored.sizeBytes),
    offset: BigInt(stored.stagedBytes),
    expiresAtMs: BigInt(stored.touchedAtMs + UPLOAD_IDLE_MS),
  };
}
