// Valid requests of every method, recorded from clients: the input of mutations.
import { create, toBinary } from "@bufbuild/protobuf";
import { FileServer } from "#wire/proto/gen/grove/v1/file_server_pb.ts";
import { MetaServer } from "#wire/proto/gen/grove/v1/meta_server_pb.ts";
import { RootMoves, RootSource } from "#wire/proto/gen/grove/v1/root_moves_pb.ts";

/** A valid request, as bytes. */
export interface RecordedCall {
  readonly path: string;
  readonly method: string;
  /** One message unless the request is a stream. */
  readonly messages: readonly Uint8Array[];
  readonly hasManyReplies: boolean;
  /** True when a session is what lets the caller in. */
  readonly needsSession: boolean;
}

const OWNER = "fuzz@example.com";
const PLACE = { root: "", path: "/docs/file" };
const DATA = Buffer.from("some bytes of a file");

/** Requests by method; methods without an entry get an empty request. */
const FILE_SERVER: Readonly<Record<string, unknown>> = {
  registerClient: { clientId: "rig", clientVersion: "1", deviceName: "a device" },
  endSession: { sessionId: "0123456789abcdef" },
  createFile: { ...PLACE, path: "/docs/new", data: DATA, mtimeMs: 1_790_000_000_000n, crc32: 7 },
  createDirectory: { root: OWNER, path: "/docs/folder" },
  getAttr: PLACE,
  listDir: { root: "", path: "/docs", pageSize: 10, pageToken: "bnVsbA", sort: 1 },
  changeDir: { root: OWNER, path: "/docs" },
  readFile: { ...PLACE, offset: 3n, length: 10 },
  writeFile: { ...PLACE, offset: 5n, ifMatch: "", data: DATA, truncateSize: 100n },
  uploadFile: [
    { part: { case: "header", value: { path: "/docs/up", size: 40n, sizeKnown: true, onExists: 1 } } },
    { part: { case: "chunk", value: { offset: 0n, data: DATA } } },
    { part: { case: "chunk", value: { offset: 20n, crc32: 9, data: DATA } } },
  ],
  downloadFile: { ...PLACE, offset: 1n, length: 100n },
  deleteFile: { ...PLACE, path: "/docs/new", recursive: true },
  rename: { root: "", path: "/docs/new", targetPath: "/docs/renamed", onConflict: 1 },
  copy: { root: "", path: "/docs/file", targetPath: "/docs/copy", onConflict: 2 },
  trashFile: { ...PLACE, path: "/docs/copy" },
  restoreFile: { root: "", trashId: "01JD0000000000000000000000", targetPath: "/docs/back", onConflict: 1 },
  showTrash: { root: "", pageSize: 10, pageToken: "bnVsbA" },
  purgeTrash: { root: "", trashIds: ["01JD0000000000000000000000"], trashedBeforeMs: 5n },
  share: { root: "", path: "/docs/folder", user: "friend@example.com" },
  listShares: { root: "", path: "/", pageSize: 10, pageToken: "" },
  unshare: { root: "", path: "/docs/folder", user: "friend@example.com" },
  lock: { ...PLACE, shared: true, deep: true, note: "<a/>", seconds: 60 },
  refreshLock: { ...PLACE, token: "urn:uuid:00000000-0000-4000-8000-000000000000", seconds: 60 },
  unlock: { ...PLACE, token: "urn:uuid:00000000-0000-4000-8000-000000000000", breakLocks: true },
  listLocks: { ...PLACE, below: true },
  getProperties: PLACE,
  changeProperties: {
    ...PLACE,
    changes: [{ property: { namespace: "urn:a", name: "b", xml: '<b xmlns="urn:a"/>' } }],
  },
  getQuota: { root: OWNER },
  setQuota: { username: "friend@example.com", quotaBytes: 1_000_000_000n },
  explain: { ...PLACE, permission: 1, addBytes: 100n },
  beginUpload: { root: "", path: "/docs/slow", size: 1_000n, onExists: 1 },
  getUpload: { root: "", uploadId: "01JD0000000000000000000000" },
  abortUpload: { root: "", uploadId: "01JD0000000000000000000000" },
};

const NODE = { fsId: "n9", epoch: 1n };
const META_SERVER: Readonly<Record<string, unknown>> = {
  getRoots: { pageToken: "WyJhQGIuY29tIiwiL2QiXQ" },
  navigate: { root: OWNER, path: "/docs" },
  registerFileServer: {
    fsId: "n9",
    name: "Node 9",
    grpcAddr: "n9.example.com:50051",
    version: "0.1.0",
    instanceId: "i",
    dataId: "d",
    diskTotal: 1n << 40n,
    diskFree: 1n << 39n,
    roots: [{ owner: "w@example.com", rootId: "01ARZ3NDEKTSV4RRFFQ69G5FAV", version: 1n }],
  },
  heartbeat: { ...NODE, diskFree: 7n, rootCount: 3, rootsVersion: 1n, instanceId: "i" },
  claimRoot: { ...NODE, username: "new@example.com", issuer: "https://idp.example", subject: "7" },
  rootShare: { ...NODE, owner: OWNER, path: "/docs", user: "friend@example.com", version: 7n },
  rootUnshare: { ...NODE, owner: OWNER, path: "/docs", user: "friend@example.com", version: 8n },
  joinNode: { token: `gjt_${"0".repeat(16)}.${"A".repeat(43)}.${"0".repeat(64)}`, nodeId: "n8" },
  renewCertificate: { nodeId: "n9" },
};

/** A move that no node has: nothing that is mutated from it may open a root. */
const MOVE = { moveId: "01JD0000000000000000000000", secret: "5e".repeat(16) };
const ROOT_SOURCE: Readonly<Record<string, unknown>> = {
  beginExport: MOVE,
  pullRows: {
    ...MOVE,
    receipts: [
      { kind: 1, a: 7n, b: 0n, changes: 3n, checksum: "ab".repeat(32), rows: 2 },
      { kind: 2, a: 1n, changes: 1n },
    ],
  },
  pullChunk: { ...MOVE, name: "0123456789abcdef0123456789abcdef" },
  freezeRoot: { ...MOVE, attempt: 1 },
  moveChanged: MOVE,
};

const ROOT_MOVES: Readonly<Record<string, unknown>> = {
  listMoves: NODE,
  advanceMove: { ...NODE, moveId: MOVE.moveId, step: 1, attempt: 2, bytes: 5n, left: 1n, problem: "no room" },
};

function recorded(
  service: typeof FileServer | typeof MetaServer | typeof RootMoves | typeof RootSource,
  requests: Readonly<Record<string, unknown>>,
): RecordedCall[] {
  return service.methods.map(({ name, localName, input, methodKind }) => {
    const wanted = requests[localName] ?? {};
    const list = (Array.isArray(wanted) ? wanted : [wanted]) as readonly Record<string, unknown>[];
    return {
      path: `/${service.typeName}/${name}`,
      method: localName,
      messages: list.map((each) => toBinary(input, create(input, each))),
      hasManyReplies: methodKind === "server_streaming",
      needsSession: service === FileServer,
    };
  });
}

/** Of the FileServer. */
export const FILE_SERVER_CALLS: readonly RecordedCall[] = [
  ...recorded(FileServer, FILE_SERVER),
  ...recorded(RootSource, ROOT_SOURCE),
];
/** Of the MetaServer. */
export const META_SERVER_CALLS: readonly RecordedCall[] = [
  ...recorded(MetaServer, META_SERVER),
  ...recorded(RootMoves, ROOT_MOVES),
];
