// What a link's visitors move: downloads are counted before their first byte, drops before theirs.
import { randomBytes } from "node:crypto";
import { GroveError, isGroveError } from "#base/errors.ts";
import { FILE_MAX_BYTES, NAME_MAX_BYTES } from "#base/limits.ts";
import { splitPath } from "#base/names.ts";
import type { VerifiedIdentity } from "#base/verified-identity.ts";
import type { LinkStorage } from "#storage/contract/links.ts";
import { againWhenRowsCome } from "#storage/contract/rows-to-come.ts";
import { OnExists } from "#wire/proto/gen/grove/v1/common_pb.ts";
import type {
  DownloadRequest,
  UploadHeader,
  UploadResponse,
} from "#wire/proto/gen/grove/v1/file_server_pb.ts";
import { type Access, existingFile, type Reached, retryWhenStale } from "./access.ts";
import type { Caller } from "./caller.ts";
import { requireEtag } from "./changes.ts";
import { offsetInside, tooLarge } from "./content-operations.ts";

/** How often a drop looks for another name before it gives up. */
const NAME_TRIES = 5;

/** Counts the download of a link's visitor, durably; does nothing for people. Throws NOT_SHARED. */
export async function countDownload(
  { access, links }: { readonly access: Access; readonly links: LinkStorage },
  { identity }: Pick<Caller, "identity">,
  request: DownloadRequest,
): Promise<void> {
  const { link } = identity;
  if (link === undefined) return;
  const file = await againWhenRowsCome(() =>
    existingFile(access.reach(identity, request.root, request.path, "read")),
  );
  requireEtag(file, request.ifMatch);
  const from = offsetInside(file, request.offset);
  const isWhole = from === 0 && (request.length === 0n || request.length >= BigInt(file.sizeBytes));
  const { owner, id, visitor } = link;
  const { requestKey } = request;
  await links.countDownload({ owner, id, visitor, inodeId: file.id, isWhole, requestKey });
}

type Reply = Omit<UploadResponse, "$typeName" | "$unknown">;

/** Receives what a link's visitor drops, within the limits of the link; passes the uploads of people on. */
export async function receiveDrop(
  links: LinkStorage,
  { identity }: Pick<Caller, "identity">,
  header: UploadHeader,
  receive: (header: UploadHeader) => Promise<Reply>,
): Promise<Reply> {
  const { link } = identity;
  if (link === undefined) return receive(header);
  if (!header.sizeKnown || header.uploadId !== "") {
    throw new GroveError("BAD_ARGUMENT", "what is dropped by a link comes at once and with its size");
  }
  if (header.size > BigInt(FILE_MAX_BYTES)) throw tooLarge();
  const claim = { owner: link.owner, id: link.id, bytes: Number(header.size) };
  await links.claimDrop(claim);
  try {
    const { bytesWritten } = await receive({ ...header, onExists: OnExists.FAIL });
    // Neither the name that it got nor the owner's quota.
    return { attr: undefined, bytesWritten, quotaUsed: 0n, quotaLimit: 0n, uploadId: "" };
  } catch (error) {
    // What cannot be taken back, as in a root that moves, stays counted: the limit holds all the same.
    await links.returnDrop(claim).catch(() => {});
    throw withoutFigures(error);
  }
}

/** Where a drop goes: its own name, or another that is free. Throws NOT_SHARED. */
export function reachForDrop(access: Access, identity: VerifiedIdentity, path: string): Reached {
  const names = splitPath(path);
  if (names.length !== 1) throw new GroveError("BAD_NAME", "a file is dropped by its name alone");
  try {
    return access.reach(identity, "", path, "write");
  } catch (error) {
    if (!isGroveError(error, "NOT_SHARED")) throw error;
    return access.reach(identity, "", `/${otherName(names[0] ?? "")}`, "write");
  }
}

/** Repeats a commit that is stale, and that of a drop whose name another took meanwhile. */
export async function retryWhenTaken<T>(identity: VerifiedIdentity, attempt: () => Promise<T>): Promise<T> {
  for (let tries = 1; ; tries++) {
    try {
      return await retryWhenStale(attempt);
    } catch (error) {
      const isTaken = identity.link !== undefined && isGroveError(error, "PATH_EXISTS", "NOT_SHARED");
      if (!isTaken || tries >= NAME_TRIES) throw error;
    }
  }
}

/** The name with letters before its extension that hardly another has: looking for a number is work. */
function otherName(name: string): string {
  const dot = name.lastIndexOf(".");
  const extension = dot > 0 && name.length - dot <= 16 ? name.slice(dot) : "";
  const suffix = ` (${randomBytes(4).toString("hex")})${extension}`;
  const room = NAME_MAX_BYTES - Buffer.byteLength(suffix);
  const characters = Array.from(name.slice(0, name.length - extension.length));
  while (Buffer.byteLength(characters.join("")) > room) characters.pop();
  return `${characters.join("")}${suffix}`.normalize("NFC");
}

/** A visitor learns that there is no room, and not how much the owner has or who works there. */
function withoutFigures(error: unknown): unknown {
  if (isGroveError(error, "QUOTA_EXCEEDED", "INODE_LIMIT", "DISK_RESERVE")) {
    return new GroveError("QUOTA_EXCEEDED", "there is no room for it at the moment");
  }
  if (isGroveError(error, "LOCKED")) return new GroveError("LOCKED", "the folder is locked at the moment");
  return error;
}
