// The wanted result of an upload by its header or BeginUpload, and its place (D15).
import { GroveError } from "#base/errors.ts";
import { FILE_MAX_BYTES } from "#base/limits.ts";
import type { Making } from "#quota/ledger.ts";
import type { StoredUpload } from "#storage/contract/upload-store.ts";
import type { SlicedMessage } from "#wire/grpc/sliced.ts";
import { OnExists } from "#wire/proto/gen/grove/v1/common_pb.ts";
import type {
  BeginUploadRequest,
  UploadHeader,
  UploadRequestSchema,
} from "#wire/proto/gen/grove/v1/file_server_pb.ts";
import { type Access, type Reached, type Slot, slotOf } from "./access.ts";
import { requireEtag } from "./changes.ts";
import { tooLarge } from "./content-operations.ts";
import { reachForDrop } from "./link-transfers.ts";
import type { LockRule, TokenBearer } from "./lock-rule.ts";
import { modificationTime } from "./modification-time.ts";

/** The wanted result of an upload. */
export interface UploadRequest {
  readonly root: string;
  readonly path: string;
  /** Undefined when it is not known before the end. */
  readonly sizeBytes: number | undefined;
  readonly onExists: "replace" | "fail";
  /** Etag that the present file must have; undefined for any. */
  readonly ifMatch: string | undefined;
  /** 0 means the time of arrival. */
  readonly mtimeMs: number;
}

/** The request of a plain upload. Throws BAD_ARGUMENT. */
export function fromHeader(header: UploadHeader): UploadRequest {
  return requestOf(header, header.sizeKnown ? header.size : undefined);
}

/** The request of a resumable upload. Throws BAD_ARGUMENT. */
export function fromBegin(request: BeginUploadRequest): UploadRequest & { readonly sizeBytes: number } {
  return { ...requestOf(request, request.size), sizeBytes: Number(request.size) };
}

/** The request that a resumable upload was begun with. */
export function fromStored(stored: StoredUpload): UploadRequest & { readonly sizeBytes: number } {
  const { owner, path, sizeBytes, onExists, ifMatch, mtimeMs } = stored;
  return { root: owner, path, sizeBytes, onExists, ifMatch, mtimeMs };
}

/**
 * Permission, then path: where an upload may go now. Throws NOT_SHARED, NO_SUCH_PATH, IS_DIRECTORY,
 * PATH_EXISTS, ETAG_MISMATCH.
 */
export function placeOfUpload(
  { access, locks }: { readonly access: Access; readonly locks: LockRule },
  caller: TokenBearer,
  requested: UploadRequest,
): { reached: Reached; slot: Slot } {
  const { identity } = caller;
  const reached =
    identity.link === undefined
      ? access.reach(identity, requested.root, requested.path, "write")
      : reachForDrop(access, identity, requested.path);
  const slot = slotOf(reached, "IS_DIRECTORY");
  const { present } = slot;
  if (present?.kind === "directory") throw new GroveError("IS_DIRECTORY", "a directory has this name");
  if (present !== undefined && requested.onExists === "fail") {
    throw new GroveError("PATH_EXISTS", "this name is taken");
  }
  if (requested.ifMatch !== undefined) {
    if (present === undefined) throw new GroveError("ETAG_MISMATCH", "there is no such file any more");
    requireEtag(present, requested.ifMatch);
  }
  locks.require(caller, reached, present === undefined ? "entries" : "content");
  return { reached, slot };
}

/** What an upload makes at a place: a new file, or a trash item for one that a sharee replaces (D13). */
export function makingOf({ isOwner }: Reached, { present }: Slot): Making {
  if (present === undefined) return { creates: 1 };
  return { creates: 0, keeps: isOwner || present.sizeBytes === 0 ? 0 : 1 };
}

function requestOf(
  fields: Pick<UploadHeader, "root" | "path" | "onExists" | "ifMatch" | "mtimeMs">,
  size: bigint | undefined,
): UploadRequest {
  const { root, path, onExists, ifMatch, mtimeMs } = fields;
  if (size !== undefined && size > BigInt(FILE_MAX_BYTES)) throw tooLarge();
  if (onExists !== OnExists.REPLACE && onExists !== OnExists.FAIL) {
    throw new GroveError("BAD_ARGUMENT", "on_exists has a value that this server does not know");
  }
  return {
    root,
    path,
    sizeBytes: size === undefined ? undefined : Number(size),
    onExists: onExists === OnExists.FAIL ? "fail" : "replace",
    ifMatch: ifMatch === "" ? undefined : ifMatch,
    mtimeMs: modificationTime(mtimeMs),
  };
}

/** The header of an upload. Throws BAD_ARGUMENT for any other first message. */
export function headerOf(first: SlicedMessage<typeof UploadRequestSchema> | null): UploadHeader {
  const part = first?.message.part;
  if (part?.case !== "header") throw new GroveError("BAD_ARGUMENT", "an upload begins with its header");
  return part.value;
}

/** Throws OFFSET_MISMATCH with the right offset. */
export function requireOffset(stated: bigint, offsetBytes: number): void {
  if (stated === BigInt(offsetBytes)) return;
  throw new GroveError("OFFSET_MISMATCH", "the upload goes on at another offset", {
    metadata: { offset: String(offsetBytes) },
  });
}
