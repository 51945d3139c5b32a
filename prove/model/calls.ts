// Makes the calls of the model rig over gRPC, and puts the answers into a form that can be compared.

import { crc32 } from "#os/crc32.ts";
import { reasonOf, type SignedIn } from "#prove/served-node.ts";
import { type Attr, Kind, OnConflict, OnExists, type Sort } from "#wire/proto/gen/grove/v1/common_pb.ts";
import type { TrashItem } from "#wire/proto/gen/grove/v1/file_server_pb.ts";
import type { By } from "./file-model.ts";
import type { Conflict, Operation } from "./operations.ts";
import type { Facts, ItemFacts, Outcome } from "./outcome.ts";

const CONFLICTS: Readonly<Record<Conflict, OnConflict>> = {
  fail: OnConflict.FAIL,
  rename: OnConflict.RENAME,
  replace: OnConflict.REPLACE,
};
const CHUNK_BYTES = 1_000_000;

/** The users of a root. */
export interface Callers {
  readonly users: Readonly<Record<By, SignedIn>>;
  readonly setQuota: (username: string, bytes: bigint) => Promise<void>;
}

/** Calls on one root. */
export class RootCalls {
  readonly #callers: Callers;
  readonly #pool: Buffer;

  constructor(callers: Callers, pool: Buffer) {
    this.#callers = callers;
    this.#pool = pool;
  }

  /** Makes a call; `trashIds` are the items that it names. */
  async make(operation: Operation, trashIds: readonly string[]): Promise<Outcome> {
    try {
      return await this.#make(operation, trashIds);
    } catch (error) {
      return { refused: reasonOf(error) };
    }
  }

  async #make(operation: Operation, trashIds: readonly string[]): Promise<Outcome> {
    const user = this.#callers.users[operation.by];
    const { calls } = user;
    const root = this.#callers.users.owner.email;
    switch (operation.op) {
      case "createDirectory":
        return this.#attr(await calls.createDirectory({ root, path: operation.path }, user));
      case "createFile": {
        const data = this.#bytes(operation.data);
        return this.#attr(
          await calls.createFile({ root, path: operation.path, data, crc32: crc32(data) }, user),
        );
      }
      case "upload":
        return this.#upload(operation, user, root);
      case "write": {
        const { path, offset } = operation;
        const data = this.#bytes(operation.data);
        return this.#attr(await calls.writeFile({ root, path, offset: BigInt(offset), data }, user));
      }
      case "truncate": {
        const truncateSize = BigInt(operation.size);
        return this.#attr(await calls.writeFile({ root, path: operation.path, truncateSize }, user));
      }
      case "rename":
      case "copy": {
        const { path, target: targetPath } = operation;
        const request = { root, path, targetPath, onConflict: CONFLICTS[operation.onConflict] };
        return this.#attr(
          await (operation.op === "copy" ? calls.copy(request, user) : calls.rename(request, user)),
        );
      }
      case "delete": {
        const { path, recursive } = operation;
        const done = await calls.deleteFile({ root, path, recursive }, user);
        return { numbers: { freedBytes: Number(done.freedBytes), inodes: Number(done.inodeCount) } };
      }
      case "share":
      case "unshare": {
        const request = { root, path: operation.path, user: this.#callers.users[operation.user].email };
        const done = await (operation.op === "share"
          ? calls.share(request, user)
          : calls.unshare(request, user));
        return { numbers: { inodes: Number(done.affectedInodes) } };
      }
      case "list":
        return this.#list(operation, user, root);
      case "read": {
        const { path, offset, length } = operation;
        const { data } = await calls.readFile({ root, path, offset: BigInt(offset), length }, user);
        return { numbers: { bytes: data.length, crc32: crc32(data) } };
      }
      case "download":
        return this.#download(operation, user, root);
      default:
        return this.#ofTheRoot(operation, user, trashIds);
    }
  }

  /** Calls about the trash, the quota, and single inodes. */
  async #ofTheRoot(operation: Operation, user: SignedIn, trashIds: readonly string[]): Promise<Outcome> {
    const { calls } = user;
    const root = this.#callers.users.owner.email;
    switch (operation.op) {
      case "getAttr":
        return this.#attr(await calls.getAttr({ root, path: operation.path }, user));
      case "changeDir":
        return this.#attr(await calls.changeDir({ root, path: operation.path }, user));
      case "trash": {
        const { item } = await calls.trashFile({ root, path: operation.path }, user);
        return { items: item === undefined ? [] : [this.#item(item)] };
      }
      case "restore": {
        const { target: targetPath } = operation;
        const onConflict = CONFLICTS[operation.onConflict];
        const trashId = trashIds[0] ?? "none";
        return this.#attr(await calls.restoreFile({ root, trashId, targetPath, onConflict }, user));
      }
      case "purge": {
        const done = await calls.purgeTrash({ root, trashIds: [...trashIds] }, user);
        return { numbers: { purged: Number(done.purgedItems), freedBytes: Number(done.freedBytes) } };
      }
      case "showTrash":
        return this.#showTrash(user, root);
      case "getQuota": {
        const { quotaBytes, liveBytes, trashBytes, stagingBytes } = await calls.getQuota({ root }, user);
        const numbers = { quotaBytes, liveBytes, trashBytes, stagingBytes };
        const entries = Object.entries(numbers).map(([name, bytes]) => [name, Number(bytes)] as const);
        return { numbers: Object.fromEntries(entries) };
      }
      case "setQuota":
        await this.#callers.setQuota(root, BigInt(operation.bytes));
        return { numbers: { success: 1 } };
      default:
        throw new Error(`no call for ${operation.op}`);
    }
  }

  async #upload(
    { path, data, sizeKnown, mayReplace }: Extract<Operation, { op: "upload" }>,
    user: SignedIn,
    root: string,
  ): Promise<Outcome> {
    const bytes = this.#bytes(data);
    const onExists = mayReplace ? OnExists.REPLACE : OnExists.FAIL;
    const size = sizeKnown ? BigInt(bytes.length) : 0n;
    async function* parts(): AsyncGenerator<object> {
      yield { part: { case: "header", value: { root, path, size, sizeKnown, onExists } } };
      for (let at = 0; at < bytes.length; at += CHUNK_BYTES) {
        const piece = bytes.subarray(at, at + CHUNK_BYTES);
        yield { part: { case: "chunk", value: { offset: BigInt(at), data: piece, crc32: crc32(piece) } } };
      }
    }
    const { attr } = await user.calls.uploadFile(parts(), user);
    if (attr === undefined) throw new Error("an upload was answered without an Attr");
    return this.#attr(attr);
  }

  async #list(
    { path, pageSize, sort }: Extract<Operation, { op: "list" }> & { readonly sort: Sort },
    user: SignedIn,
    root: string,
  ): Promise<Outcome> {
    const entries: Facts[] = [];
    for (let pageToken = ""; ; ) {
      const page = await user.calls.listDir({ root, path, pageSize, pageToken, sort }, user);
      entries.push(...page.entries.map((attr) => this.#facts(attr)));
      pageToken = page.nextPageToken;
      if (pageToken === "") return { entries };
    }
  }

  async #download(
    { path, offset, length }: Extract<Operation, { op: "read" | "download" }>,
    user: SignedIn,
    root: string,
  ): Promise<Outcome> {
    const pieces: Uint8Array[] = [];
    const request = { root, path, offset: BigInt(offset), length: BigInt(length) };
    for await (const { part } of user.calls.downloadFile(request, user))
      if (part.case === "chunk") pieces.push(part.value.data);
    const data = Buffer.concat(pieces);
    return { numbers: { bytes: data.length, crc32: crc32(data) } };
  }

  async #showTrash(user: SignedIn, root: string): Promise<Outcome> {
    const items: ItemFacts[] = [];
    for (let pageToken = ""; ; ) {
      const page = await user.calls.showTrash({ root, pageSize: 3, pageToken }, user);
      items.push(...page.items.map((item) => this.#item(item)));
      pageToken = page.nextPageToken;
      if (pageToken === "") return { items: items.toSorted((a, b) => (a.id < b.id ? -1 : 1)) };
    }
  }

  #attr(attr: Attr): Outcome {
    return { attr: this.#facts(attr) };
  }

  #facts(attr: Attr): Facts {
    return {
      id: attr.id,
      parentId: attr.parentId,
      path: attr.path,
      name: attr.name,
      kind: attr.kind === Kind.FILE ? "file" : "folder",
      size: Number(attr.size),
      mtimeMs: Number(attr.mtimeMs),
      shared: attr.shared.map((email) => this.#who(email)).join(" "),
      etag: attr.etag,
      crc32: attr.crc32,
      childCount: Number(attr.childCount),
      createdBy: this.#who(attr.createdBy),
      permissions: attr.myPermissions.join(" "),
      damaged: attr.damaged,
    };
  }

  #item(item: TrashItem): ItemFacts {
    return {
      id: item.trashId,
      path: item.originalPath,
      kind: item.kind === Kind.FILE ? "file" : "folder",
      size: Number(item.size),
      inodes: Number(item.inodeCount),
      by: this.#who(item.trashedBy),
      parentExists: item.parentExists,
      formerShares: item.formerShares.map(({ path, user }) => `${path} ${this.#who(user)}`).join(", "),
    };
  }

  /** The user's role, so that the same case reads the same on another root. */
  #who(email: string): string {
    const entries = Object.entries(this.#callers.users);
    return entries.find(([, user]) => user.email === email)?.[0] ?? email;
  }

  #bytes({ from, length }: { from: number; length: number }): Buffer {
    return this.#pool.subarray(from, from + length);
  }
}
