// The matrix test's table: each FileServer operation's answer to each caller (4.5, 5.3 to 5.5, D1, D13).
import type { ErrorCode } from "#base/errors.ts";
import type { Client } from "#wire/grpc/client.ts";
import type { CallOptions } from "#wire/grpc/client-call.ts";
import { Perm } from "#wire/proto/gen/grove/v1/common_pb.ts";
import type { FileServer } from "#wire/proto/gen/grove/v1/file_server_pb.ts";

/** How a call ends: well, by a refusal, or by `success: false` where the spec wants no status (5.5). */
export type Outcome = "OK" | "success=false" | ErrorCode;

/** A place in the owner's root for one case of the matrix alone. It is shared with the sharee. */
export interface Target {
  readonly root: string;
  /** A directory with the file and the directory below in it. */
  readonly folder: string;
  readonly file: string;
  readonly directory: string;
  readonly trashId: string;
  readonly uploadId: string;
  /** A session of the owner, of no other use. */
  readonly sessionId: string;
}

/**
 * What an app password of the owner needs for it: its scope to allow reading or writing there, a scope of the
 * whole root, a sign-in instead, or no more than the owner.
 */
export type DoorNeed = "read" | "write" | "whole root" | "sign-in" | "nothing";

/** The call of an operation, and its answers to callers with a session. */
export interface Row {
  readonly call: (client: Client<typeof FileServer>, at: Target, options: CallOptions) => Promise<unknown>;
  /** What the target needs beside files. */
  readonly needs?: "trash" | "upload" | "session" | "share";
  readonly stranger: Outcome;
  readonly sharee: Outcome;
  readonly owner: Outcome;
  /** The administrator has no right to other users' files (spec 5.4). */
  readonly administrator: Outcome;
  readonly door: DoorNeed;
  /** Answers without a session, for operations with a credential of their own (spec 5.3, 5.5). */
  readonly withoutSession?: { readonly nothing: Outcome; readonly badSession: Outcome | undefined };
}

const READ = {
  stranger: "NOT_SHARED",
  sharee: "OK",
  owner: "OK",
  administrator: "NOT_SHARED",
  door: "read",
} as const;
const WRITE = { ...READ, door: "write" } as const;
const OWNER_ONLY = {
  stranger: "NOT_OWNER",
  sharee: "NOT_OWNER",
  owner: "OK",
  administrator: "NOT_OWNER",
  door: "write",
} as const;
const EVERYBODY = {
  stranger: "OK",
  sharee: "OK",
  owner: "OK",
  administrator: "OK",
  door: "nothing",
} as const;
const ADMINISTRATORS_ONLY = {
  stranger: "NOT_ADMIN",
  sharee: "NOT_ADMIN",
  owner: "NOT_ADMIN",
  administrator: "OK",
  door: "nothing",
} as const;
const DATA = Buffer.from("from the matrix");

/** One row for each method of the service: a method without one does not compile, and fails the test. */
export const FILE_SERVER_ROWS: Readonly<Record<keyof (typeof FileServer)["method"], Row>> = {
  registerClient: {
    call: (client, _at, options) => client.registerClient({}, options),
    ...EVERYBODY,
    // A session token is never an ID token.
    withoutSession: { nothing: "TOKEN_REJECTED", badSession: "CLIENT_ID_UNSET" },
  },
  endSession: {
    needs: "session",
    // Another user's session is neither revealed nor ended: the owner's list still shows it.
    call: (client, { sessionId }, options) => client.endSession({ sessionId }, options),
    ...EVERYBODY,
    door: "sign-in",
  },
  listSessions: {
    call: (client, _at, options) => client.listSessions({}, options),
    ...EVERYBODY,
    door: "sign-in",
  },

  createFile: {
    call: (client, { root, folder }, options) =>
      client.createFile({ root, path: `${folder}/new`, data: DATA }, options),
    ...WRITE,
  },
  createDirectory: {
    call: (client, { root, folder }, options) =>
      client.createDirectory({ root, path: `${folder}/new` }, options),
    ...WRITE,
  },
  getAttr: {
    call: (client, { root, file }, options) => client.getAttr({ root, path: file }, options),
    ...READ,
  },
  listDir: {
    call: (client, { root, folder }, options) => client.listDir({ root, path: folder }, options),
    ...READ,
  },
  changeDir: {
    call: (client, { root, directory }, options) => client.changeDir({ root, path: directory }, options),
    ...READ,
  },
  readFile: {
    call: (client, { root, file }, options) => client.readFile({ root, path: file, length: 10 }, options),
    ...READ,
  },
  writeFile: {
    call: (client, { root, file }, options) => client.writeFile({ root, path: file, data: DATA }, options),
    ...WRITE,
  },
  uploadFile: {
    call: (client, { root, file }, options) =>
      client.uploadFile(
        (async function* () {
          yield { part: { case: "header", value: { root, path: file } } } as const;
          yield { part: { case: "chunk", value: { offset: 0n, data: DATA } } } as const;
        })(),
        options,
      ),
    ...WRITE,
  },
  downloadFile: {
    call: async (client, { root, file }, options) => {
      for await (const _message of client.downloadFile({ root, path: file }, options));
    },
    ...READ,
  },
  deleteFile: {
    call: (client, { root, file }, options) => client.deleteFile({ root, path: file }, options),
    ...OWNER_ONLY,
  },
  rename: {
    call: (client, { root, file, directory }, options) =>
      client.rename({ root, path: file, targetPath: `${directory}/moved` }, options),
    ...WRITE,
  },
  copy: {
    call: (client, { root, file, directory }, options) =>
      client.copy({ root, path: file, targetPath: `${directory}/copied` }, options),
    ...WRITE,
  },

  trashFile: {
    call: (client, { root, file }, options) => client.trashFile({ root, path: file }, options),
    ...OWNER_ONLY,
  },
  restoreFile: {
    needs: "trash",
    call: (client, { root, trashId }, options) => client.restoreFile({ root, trashId }, options),
    ...OWNER_ONLY,
    door: "whole root",
  },
  showTrash: {
    call: (client, { root }, options) => client.showTrash({ root }, options),
    ...OWNER_ONLY,
    door: "whole root",
  },
  purgeTrash: {
    needs: "trash",
    call: (client, { root, trashId }, options) => client.purgeTrash({ root, trashIds: [trashId] }, options),
    ...OWNER_ONLY,
    door: "whole root",
  },

  share: {
    call: (client, { root, directory }, options) =>
      client.share({ root, path: directory, user: "friend@example.com" }, options),
    ...OWNER_ONLY,
    door: "sign-in",
  },
  unshare: {
    needs: "share",
    call: (client, { root, directory }, options) =>
      client.unshare({ root, path: directory, user: "friend@example.com" }, options),
    ...OWNER_ONLY,
    door: "sign-in",
  },
  listShares: {
    needs: "share",
    call: (client, { root, folder }, options) => client.listShares({ root, path: folder }, options),
    ...OWNER_ONLY,
    door: "sign-in",
  },

  lock: {
    call: (client, { root, file }, options) => client.lock({ root, path: file }, options),
    ...WRITE,
  },
  refreshLock: {
    // Nobody holds that lock: whoever may not write is refused before that is said.
    call: (client, { root, file }, options) => client.refreshLock({ root, path: file, token: "x" }, options),
    stranger: "NOT_SHARED",
    sharee: "NO_SUCH_LOCK",
    owner: "NO_SUCH_LOCK",
    administrator: "NOT_SHARED",
    door: "write",
  },
  unlock: {
    call: (client, { root, file }, options) => client.unlock({ root, path: file, breakLocks: true }, options),
    ...OWNER_ONLY,
    door: "sign-in",
  },
  listLocks: {
    call: (client, { root, file }, options) => client.listLocks({ root, path: file }, options),
    ...READ,
  },

  // A link of a file of the case alone, which ends with it.
  createLink: {
    call: (client, { root, file }, options) => client.createLink({ root, path: file }, options),
    ...OWNER_ONLY,
    door: "sign-in",
  },
  listLinks: {
    call: (client, { root, file }, options) => client.listLinks({ root, path: file }, options),
    ...OWNER_ONLY,
    door: "sign-in",
  },
  revokeLink: {
    async call(client, { root, file }, options) {
      const made = await client.createLink({ root, path: file }, options).catch(() => undefined);
      return client.revokeLink({ root, id: made?.link?.id ?? "aaaaaaaaaaaa" }, options);
    },
    ...OWNER_ONLY,
    door: "sign-in",
  },

  getProperties: {
    call: (client, { root, file }, options) => client.getProperties({ root, path: file }, options),
    ...READ,
  },
  changeProperties: {
    call: (client, { root, file }, options) =>
      client.changeProperties(
        {
          root,
          path: file,
          changes: [{ property: { namespace: "urn:m", name: "p", xml: '<p xmlns="urn:m"/>' } }],
        },
        options,
      ),
    ...WRITE,
  },

  getQuota: {
    call: (client, { root }, options) => client.getQuota({ root }, options),
    stranger: "NOT_SHARED",
    sharee: "OK",
    owner: "OK",
    administrator: "OK",
    door: "nothing",
  },
  setQuota: {
    call: (client, { root }, options) => client.setQuota({ username: root, quotaBytes: 1n << 34n }, options),
    stranger: "success=false",
    sharee: "success=false",
    owner: "success=false",
    administrator: "OK",
    withoutSession: { nothing: "success=false", badSession: undefined },
    door: "nothing",
  },

  setUserState: {
    call: (client, _at, options) =>
      client.setUserState(
        { state: { username: "leaver@example.com", disabled: true, reason: "the matrix" } },
        options,
      ),
    ...ADMINISTRATORS_ONLY,
  },
  listUserStates: {
    call: (client, { root }, options) => client.listUserStates({ username: root }, options),
    ...ADMINISTRATORS_ONLY,
  },

  explain: {
    // It answers every caller, and tells a stranger no more than the refusal does.
    call: (client, { root, file }, options) =>
      client.explain({ root, path: file, permission: Perm.READ }, options),
    ...EVERYBODY,
  },

  beginUpload: {
    call: (client, { root, folder }, options) =>
      client.beginUpload({ root, path: `${folder}/upload`, size: 10n }, options),
    ...WRITE,
  },
  getUpload: {
    needs: "upload",
    call: (client, { uploadId }, options) => client.getUpload({ uploadId }, options),
    // An upload is known only to the user who began it; others do not learn that it exists.
    stranger: "NO_SUCH_UPLOAD",
    sharee: "NO_SUCH_UPLOAD",
    owner: "OK",
    administrator: "NO_SUCH_UPLOAD",
    door: "write",
  },
  abortUpload: {
    needs: "upload",
    call: (client, { uploadId }, options) => client.abortUpload({ uploadId }, options),
    stranger: "NO_SUCH_UPLOAD",
    sharee: "NO_SUCH_UPLOAD",
    owner: "OK",
    administrator: "NO_SUCH_UPLOAD",
    door: "write",
  },
};
