// Ranges of a file in one message: ReadFile and WriteFile (D15).
import { GroveError, isGroveError } from "#base/errors.ts";
import { CHUNK_BYTES, FILE_MAX_BYTES, UPLOAD_MESSAGE_MAX_BYTES } from "#base/limits.ts";
import type { Logger } from "#base/log.ts";
import { settled } from "#base/settled.ts";
import { type Inode, inodeIdText, StaleAccessError } from "#storage/contract/inode.ts";
import type { Storage } from "#storage/contract/storage.ts";
import type { NodeTelemetry } from "#telemetry/node-telemetry.ts";
import type { Attr } from "#wire/proto/gen/grove/v1/common_pb.ts";
import { type Access, existingFile, type Reached, retryWhenStale } from "./access.ts";
import type { Caller } from "./caller.ts";
import { type Changes, expected, requireEtag } from "./changes.ts";
import type { LockRule } from "./lock-rule.ts";
import { attrAt, type Place } from "./namespace-operations.ts";
import type { OperationMeter } from "./operation-meter.ts";
import { encodeRead } from "./read-bytes.ts";

/** Dependencies of the operations. */
export interface ContentDeps {
  readonly storage: Storage;
  readonly access: Access;
  readonly locks: LockRule;
  readonly changes: Changes;
  readonly meter: OperationMeter;
  readonly telemetry: NodeTelemetry;
  readonly log: Logger;
}

/** Reads and writes of ranges. */
export class ContentOperations {
  readonly #deps: ContentDeps;

  constructor(deps: ContentDeps) {
    this.#deps = deps;
  }

  /**
   * Reads at most 4,000,000 bytes; less at the end of the file, and none where `whole` asks for all that follows
   * and that is more than `length`. Leaves `headBytes` bytes free before the ReadFileResponse. A small file is
   * answered at once. Throws BAD_ARGUMENT, IS_DIRECTORY, CORRUPT.
   */
  readFile(
    caller: Caller,
    request: Place & { readonly offset: bigint; readonly length: number; readonly whole?: boolean },
    headBytes: number,
  ): Buffer | Promise<Buffer> {
    return this.#deps.meter.run("read", () => {
      if (request.length > CHUNK_BYTES) {
        throw new GroveError(
          "BAD_ARGUMENT",
          `ReadFile reads at most ${CHUNK_BYTES} bytes; use DownloadFile`,
          { metadata: { limit_bytes: String(CHUNK_BYTES) } },
        );
      }
      const reached = this.#deps.access.reach(caller.identity, request.root, request.path, "read");
      const file = existingFile(reached);
      const offset = offsetInside(file, request.offset);
      const wanted = offset + (request.length === 0 ? CHUNK_BYTES : request.length);
      const isLarger = request.whole === true && file.sizeBytes > wanted;
      const end = isLarger ? offset : Math.min(file.sizeBytes, wanted);
      const content = this.#deps.storage.openFile(file.id, { offset, end });
      const encode = (): Buffer | Promise<Buffer> =>
        encodeRead(content, { offset, end }, attrAt(reached, file), headBytes);
      return settled(encode, (error) => {
        content.close();
        if (error === undefined) this.#deps.telemetry.bytesRead(end - offset);
        else logCorruption(this.#deps.log, reached, file, error);
      });
    });
  }

  /**
   * Rewrites a range by copy; a range past the end grows the file (D15). Throws ETAG_MISMATCH,
   * QUOTA_EXCEEDED, DISK_RESERVE.
   */
  writeFile(
    caller: Caller,
    request: Place & {
      readonly offset: bigint;
      readonly ifMatch: string;
      readonly data: Uint8Array;
      readonly truncateSize?: bigint | undefined;
    },
  ): Promise<Attr> {
    return this.#deps.meter.later("write", async () => {
      const { data, truncateSize } = request;
      if (truncateSize !== undefined) return this.#setSize(caller, request, truncateSize);
      if (data.length > UPLOAD_MESSAGE_MAX_BYTES) {
        throw new GroveError(
          "BAD_ARGUMENT",
          `WriteFile takes at most ${UPLOAD_MESSAGE_MAX_BYTES} bytes; use UploadFile`,
          { metadata: { limit_bytes: String(UPLOAD_MESSAGE_MAX_BYTES) } },
        );
      }
      if (request.offset + BigInt(data.length) > BigInt(FILE_MAX_BYTES)) throw tooLarge();
      const attr = await this.#write(caller, request, Number(request.offset));
      this.#deps.telemetry.bytesWritten(data.length);
      return attr;
    });
  }

  /**
   * Cuts or grows a file. What that adds follows from the size when storage runs it: one that adds more than was
   * claimed for the size seen here is tried again, at last with a claim for the greatest growth.
   */
  #setSize(
    caller: Caller,
    request: Place & { readonly offset: bigint; readonly ifMatch: string; readonly data: Uint8Array },
    size: bigint,
  ): Promise<Attr> {
    if (request.data.length > 0 || request.offset !== 0n) {
      throw new GroveError("BAD_ARGUMENT", "truncate_size comes without data and offset");
    }
    if (size > BigInt(FILE_MAX_BYTES)) throw tooLarge();
    const sizeBytes = Number(size);
    return retryWhenStale(async (isLast) => {
      const { reached, file } = this.#writable(caller, request);
      const isCut = sizeBytes < file.sizeBytes;
      // A sharee's cut keeps the whole former file in the owner's trash, so the rest counts twice (D13).
      const isKept = (isCut || isLast) && !reached.isOwner;
      const addsBytes = isKept || isLast ? sizeBytes : Math.max(0, sizeBytes - file.sizeBytes);
      // A change that frees space takes no claim, so it works over quota and on a full disk (D14).
      const isFreeing = isCut && addsBytes === 0 && !isKept;
      const claim = isFreeing ? undefined : { creates: 0, keeps: isKept ? 1 : 0, addsBytes };
      const ifMatch = expected(request.ifMatch);
      const wanted = { fileId: file.id, sizeBytes, ifMatch, maxAddedBytes: addsBytes };
      const change = await this.#deps.changes.run(caller, reached, claim, (context) =>
        this.#deps.storage.setSize({ ...context, ...wanted }).catch(lookAgain),
      );
      return attrAt(reached, change.inode);
    });
  }

  /** The same for a range. */
  #write(
    caller: Caller,
    request: Place & { readonly ifMatch: string; readonly data: Uint8Array },
    offset: number,
  ): Promise<Attr> {
    const { data } = request;
    // An empty write does not grow the file, wherever it points.
    const isEmpty = data.length === 0;
    const endBytes = isEmpty ? 0 : offset + data.length;
    return retryWhenStale(async (isLast) => {
      const { reached, file } = this.#writable(caller, request);
      const addsBytes = Math.max(0, endBytes - (isLast ? 0 : file.sizeBytes));
      const claim = { creates: 0, addsBytes, writesBytes: data.length };
      const ifMatch = expected(request.ifMatch);
      const wanted = {
        fileId: file.id,
        offset: isEmpty ? 0 : offset,
        data,
        ifMatch,
        maxAddedBytes: addsBytes,
      };
      const change = await this.#deps.changes.run(caller, reached, claim, (context) =>
        this.#deps.storage.writeRange({ ...context, ...wanted }).catch(lookAgain),
      );
      return attrAt(reached, change.inode);
    });
  }

  #writable(
    caller: Caller,
    request: Place & { readonly ifMatch: string },
  ): { readonly reached: Reached; readonly file: Inode } {
    const reached = this.#deps.access.reach(caller.identity, request.root, request.path, "write");
    const file = existingFile(reached);
    this.#deps.locks.require(caller, reached, "content");
    requireEtag(file, request.ifMatch);
    return { reached, file };
  }
}

/** A file that has gone since it was looked up may have been replaced: the next look tells what its name names now. */
function lookAgain(error: unknown): never {
  throw isGroveError(error, "NO_SUCH_PATH") ? new StaleAccessError() : error;
}

/** Logs that stored bytes have rotted: the file's id and its owner. */
export function logCorruption(log: Logger, reached: Reached, file: Inode, error: unknown): void {
  if (!isGroveError(error, "CORRUPT")) return;
  log.error("corrupt_content", { user: reached.owner, inode: inodeIdText(file.id), error: error.message });
}

/** An offset as a number, at most the file's size. Throws BAD_ARGUMENT. */
export function offsetInside(file: Inode, offset: bigint): number {
  if (offset > BigInt(file.sizeBytes)) {
    throw new GroveError("BAD_ARGUMENT", "the offset is behind the end of the file", {
      metadata: { size: String(file.sizeBytes) },
    });
  }
  return Number(offset);
}

/** The refusal of a size above 8 TiB. */
export function tooLarge(): GroveError {
  return new GroveError("BAD_ARGUMENT", `a file has at most ${FILE_MAX_BYTES} bytes`, {
    metadata: { limit_bytes: String(FILE_MAX_BYTES) },
  });
}
