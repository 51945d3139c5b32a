// The gRPC routes of the FileServer: each only maps a message to an operation and its outcome to a message.

import { GroveError } from "#base/errors.ts";
import { bearerToken, type Caller, callerOf, currentCaller } from "#fileserver/operations/caller.ts";
import { sendDownload } from "#fileserver/operations/download.ts";
import type { Asked } from "#fileserver/operations/explain-operations.ts";
import type { FileService } from "#fileserver/operations/file-service.ts";
import { type AdminCredential, PASSWORD_HASH_HEADER } from "#fileserver/operations/quota-operations.ts";
import { receiveUpload } from "#fileserver/operations/upload.ts";
import type { ConflictRule, TreeConflictRule } from "#storage/contract/inode.ts";
import { whenRowsAreHere } from "#storage/contract/rows-to-come.ts";
import type { ListSort } from "#storage/contract/storage.ts";
import { EncodedReply } from "#wire/framing/encoded-reply.ts";
import type { CallContext, ServiceHandlers } from "#wire/grpc/handler.ts";
import { slicedClientStream, slicedServerStream } from "#wire/grpc/sliced.ts";
import { encodeAttr } from "#wire/proto/attr-encoder.ts";
import { type Attr, OnConflict, Perm, Sort } from "#wire/proto/gen/grove/v1/common_pb.ts";
import type {
  DownloadRequestSchema,
  DownloadResponseSchema,
  FileServer,
  RegisterClientRequest,
  UploadRequestSchema,
  UploadResponseSchema,
} from "#wire/proto/gen/grove/v1/file_server_pb.ts";
import { lockRoutes, propertyRoutes } from "./dav-routes.ts";
import { linkRoutes } from "./link-routes.ts";

/** Methods that bring another credential instead of a session (spec 5.3, 5.5). */
export const SESSIONLESS_METHODS: ReadonlySet<string> = new Set([
  "RegisterClient",
  "SetQuota",
  "SetUserState",
  "ListUserStates",
]);

/** Methods that administrators may call with the password and no session: the console has none (spec 4.3). */
export const PASSWORD_METHODS: ReadonlySet<string> = new Set(["ShowTrash", "RestoreFile"]);

const SORTS: ReadonlyMap<number, ListSort> = new Map([
  [Sort.NAME, "name"],
  [Sort.NAME_DESC, "name-desc"],
  [Sort.SIZE, "size"],
  [Sort.SIZE_DESC, "size-desc"],
  [Sort.MTIME, "mtime"],
  [Sort.MTIME_DESC, "mtime-desc"],
]);

const CONFLICTS: ReadonlyMap<number, ConflictRule> = new Map([
  [OnConflict.FAIL, "fail"],
  [OnConflict.RENAME, "rename"],
  [OnConflict.REPLACE, "replace"],
]);

/** Of what comes from a place in the tree. */
const CONFLICTS_IN_TREE: ReadonlyMap<number, TreeConflictRule> = new Map([
  ...CONFLICTS,
  [OnConflict.TRASH, "trash"] as const,
]);

const PERMISSIONS: ReadonlyMap<number, Asked> = new Map([
  [Perm.READ, "read"],
  [Perm.WRITE, "write"],
  [Perm.DELETE, "delete"],
]);

/** The handlers; methods without one answer UNIMPLEMENTED. */
export function fileServerRoutes(service: FileService): Partial<ServiceHandlers<typeof FileServer>> {
  const { namespace, content, trash, sessions, quotas } = service;
  return {
    ...looks(service),
    ...sharing(service),
    ...transfers(service),
    registerClient: (request, context) => registerClient(service, request, context),
    endSession: (request, context) => sessions.endSession(currentCaller(context), request),
    listSessions: (_request, context) => sessions.listSessions(currentCaller(context)),

    createFile: async (request, context) =>
      encoded(await namespace.createFile(currentCaller(context), request)),
    createDirectory: async (request, context) =>
      encoded(await namespace.createDirectory(currentCaller(context), request)),
    writeFile: (request, context) => content.writeFile(currentCaller(context), request),
    deleteFile: async (request, context) => {
      const { freedBytes, inodeCount } = await namespace.deleteFile(currentCaller(context), request);
      return { freedBytes: BigInt(freedBytes), inodeCount: BigInt(inodeCount) };
    },
    rename: (request, context) =>
      namespace.rename(currentCaller(context), {
        ...request,
        onConflict: known(CONFLICTS_IN_TREE, request.onConflict, "on_conflict"),
      }),

    trashFile: (request, context) => trash.trashFile(currentCaller(context), request),
    showTrash: (request, context) =>
      request.operator === undefined
        ? trash.showTrash(callerWithSession(context, service), request)
        : service.operatorTrash.list(request, adminCredential(context, service)),
    restoreFile: async (request, context) => {
      const requested = { ...request, onConflict: known(CONFLICTS, request.onConflict, "on_conflict") };
      return encoded(
        request.operator === undefined
          ? await trash.restoreFile(callerWithSession(context, service), requested)
          : await service.operatorTrash.restore(requested, adminCredential(context, service)),
      );
    },
    purgeTrash: (request, context) => trash.purgeTrash(currentCaller(context), request),

    copy: async (request, context) => {
      const onConflict = known(CONFLICTS_IN_TREE, request.onConflict, "on_conflict");
      const requested = { ...request, onConflict };
      return encoded(await service.copies.copy(currentCaller(context), requested, context.signal));
    },
    beginUpload: (request, context) =>
      service.resumable.begin(currentCaller(context), request, context.signal),
    getUpload: (request, context) => service.resumable.get(currentCaller(context), request),
    abortUpload: (request, context) => service.resumable.abort(currentCaller(context), request),

    explain: (request, context) =>
      service.explanations.explain(currentCaller(context), {
        ...request,
        permission: known(PERMISSIONS, request.permission, "permission"),
      }),

    ...lockRoutes(service),
    ...linkRoutes(service),
    ...propertyRoutes(service),

    getQuota: (request, context) =>
      whenRowsAreHere(() => quotas.getQuota(currentCaller(context), request.root)),
    setQuota: (request, context) => quotas.setQuota(request, adminCredential(context, service)),
    setUserState: (request, context) => service.users.setState(request, adminCredential(context, service)),
    listUserStates: (request, context) =>
      service.users.listStates(request, adminCredential(context, service)),
  };
}

/**
 * Reads answered at once, from memory or one database snapshot; except sorted lists of large folders and the
 * bytes of large files.
 */
function looks({
  namespace,
  content,
}: FileService): Pick<ServiceHandlers<typeof FileServer>, "changeDir" | "getAttr" | "listDir" | "readFile"> {
  return {
    readFile: {
      bulky: (request, context) =>
        encodedReply(content.readFile(currentCaller(context), request, EncodedReply.HEAD_BYTES)),
    },
    getAttr: {
      instant: (request, context) => {
        const attr = namespace.getAttr(currentCaller(context), request);
        return attr instanceof Promise ? attr.then(encoded) : encoded(attr);
      },
    },
    listDir: (request, context) => {
      const wanted = { ...request, sort: known(SORTS, request.sort, "sort") };
      const reply = { headBytes: EncodedReply.HEAD_BYTES, signal: context.signal };
      return encodedReply(namespace.listDir(currentCaller(context), wanted, reply));
    },
    changeDir: { instant: (request, context) => namespace.changeDir(currentCaller(context), request) },
  };
}

function transfers({
  uploads,
  downloads,
}: FileService): Pick<ServiceHandlers<typeof FileServer>, "downloadFile" | "uploadFile"> {
  return {
    uploadFile: slicedClientStream<typeof UploadRequestSchema, typeof UploadResponseSchema>(
      "chunk.data",
      (requests, context) => receiveUpload(uploads, currentCaller(context), requests, context),
    ),
    downloadFile: slicedServerStream<typeof DownloadRequestSchema, typeof DownloadResponseSchema>(
      "chunk.data",
      (request, context, writer) => sendDownload(downloads, currentCaller(context), request, writer, context),
    ),
  };
}

function sharing({
  shares,
}: FileService): Pick<ServiceHandlers<typeof FileServer>, "listShares" | "share" | "unshare"> {
  return {
    share: (request, context) => shares.share(currentCaller(context), request),
    unshare: (request, context) => shares.unshare(currentCaller(context), request),
    listShares: (request, context) => shares.listShares(currentCaller(context), request),
  };
}

function encodedReply(bytes: Buffer | Promise<Buffer>): EncodedReply | Promise<EncodedReply> {
  return bytes instanceof Promise ? bytes.then((later) => new EncodedReply(later)) : new EncodedReply(bytes);
}

function encoded(attr: Attr): EncodedReply {
  return new EncodedReply(encodeAttr(attr, EncodedReply.HEAD_BYTES));
}

/** A door opens sessions by tickets alone, and everybody else by ID tokens alone. */
function registerClient(
  { callers, doorSignIn, linkSignIn, sessions }: FileService,
  request: RegisterClientRequest,
  context: CallContext,
): ReturnType<FileService["sessions"]["registerClient"]> {
  const idToken = bearerToken(context);
  const door = callers.peers.of(context);
  if (door === undefined) {
    requireNoTicket(request);
    return sessions.registerClient(request, { idToken, address: context.peer.address });
  }
  if (request.link !== undefined) return linkSignIn.register(request.link, door);
  const ticket = request.ticket === "" ? (idToken ?? "") : request.ticket;
  const { renewedSessionToken: renewedToken, clientVersion: version } = request;
  return doorSignIn.register({ ticket, renewedToken, version }, door);
}

/** Throws CLIENT_CERT_REQUIRED for a ticket or link that comes over anything but a door's certificate. */
function requireNoTicket({ ticket, renewedSessionToken, link }: RegisterClientRequest): void {
  if (ticket === "" && renewedSessionToken === "" && link === undefined) return;
  throw new GroveError("CLIENT_CERT_REQUIRED", "tickets and links count over a door's certificate alone", {
    metadata: { certificate: "is not a door's" },
  });
}

function adminCredential(context: CallContext, service: FileService): AdminCredential {
  return {
    passwordHash: context.metadata.get(PASSWORD_HASH_HEADER),
    peer: context.peer,
    session: () => sessionIfAny(context, service),
  };
}

/** The session for a user's own request, in a method that takes the password too. Throws SESSION_MISSING. */
function callerWithSession(context: CallContext, { callers, state }: FileService): Caller {
  return context.standing.kind === "user" ? currentCaller(context) : callerOf(context, callers, state);
}

function sessionIfAny(context: CallContext, service: FileService): Caller | undefined {
  return bearerToken(context) === undefined ? undefined : callerOf(context, service.callers, service.state);
}

function known<T>(values: ReadonlyMap<number, T>, value: number, field: string): T {
  const found = values.get(value);
  if (found === undefined)
    throw new GroveError("BAD_ARGUMENT", `${field} has a value that this server does not know`, {
      metadata: { field },
    });
  return found;
}
