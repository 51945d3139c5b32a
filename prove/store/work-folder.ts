// One folder of a store with its expected content, and every kind of change on it with its result.
import { systemClock } from "#base/clock.ts";
import { systemRandom } from "#base/random.ts";
import { ulid } from "#base/ulid.ts";
import type { ChangeContext, InodeId } from "#storage/contract/inode.ts";
import type { Storage } from "#storage/contract/storage.ts";
import { inodeAt, OWNER } from "#storage/local/store.fixture.ts";
import { type FolderContents, type Node, type TrashedNodes, totalOf } from "./folder-contents.ts";

/** The owner, whom no share or move of others can exclude. */
const BY: ChangeContext = { owner: OWNER, by: OWNER, accessVersion: undefined };
const PIECE_BYTES = 50_000;

/** One change of the folder. */
export interface FolderChange {
  /** The folder's content once it is done; until then it stays as it was. */
  readonly after: FolderContents;
  /** Makes the change. */
  run(): Promise<void>;
}

/** Changes of a folder; undefined where a change makes no sense now. */
export class WorkFolder {
  readonly name: string;
  readonly #storage: () => Storage;
  #contents: FolderContents;

  constructor(storage: () => Storage, name: string, contents: FolderContents) {
    this.#storage = storage;
    this.name = name;
    this.#contents = contents;
  }

  /** The acknowledged content. */
  get contents(): FolderContents {
    return this.#contents;
  }

  /** The change was acknowledged. */
  done(change: FolderChange): void {
    this.#contents = change.after;
  }

  has(path: string): boolean {
    return this.#contents.nodes.has(path);
  }

  makeFolder(path: string): FolderChange | undefined {
    if (this.has(path) || !this.#hasParent(path)) return undefined;
    return this.#change(
      (nodes) => nodes.set(path, null),
      async () => {
        await this.#storage().createDirectory({ ...BY, ...this.#place(path) });
      },
    );
  }

  create(path: string, data: Buffer): FolderChange | undefined {
    if (this.has(path) || !this.#hasParent(path)) return undefined;
    return this.#change(
      (nodes) => nodes.set(path, data),
      async () => {
        await this.#storage().createFile({ ...BY, ...this.#place(path), data, mtimeMs: 0 });
      },
    );
  }

  /** Puts a file there, or other content into the existing one. */
  upload(path: string, bytes: Buffer): FolderChange | undefined {
    if (this.#contents.nodes.get(path) === null || !this.#hasParent(path)) return undefined;
    return this.#change(
      (nodes) => nodes.set(path, bytes),
      async () => {
        const sink = this.#storage().beginUpload({ owner: OWNER, sizeBytes: undefined });
        sink.beginMessage();
        for (let at = 0; at < bytes.length; at += PIECE_BYTES) {
          await sink.write(bytes.subarray(at, at + PIECE_BYTES));
        }
        sink.endMessage();
        const target = { ...this.#place(path), onExists: "replace", ifMatch: undefined, mtimeMs: 0 } as const;
        await sink.commit({ ...BY, ...target });
      },
    );
  }

  /** The same in a resumable upload of two streams. */
  uploadResumably(path: string, bytes: Buffer): FolderChange | undefined {
    if (this.#contents.nodes.get(path) === null || !this.#hasParent(path)) return undefined;
    return this.#change(
      (nodes) => nodes.set(path, bytes),
      async () => {
        const { uploads } = this.#storage();
        const uploadId = ulid(systemClock, systemRandom);
        const settings = { onExists: "replace", ifMatch: undefined, mtimeMs: 0 } as const;
        const upload = { uploadId, path: `/${this.name}/${path}`, sizeBytes: bytes.length };
        await uploads.create({ ...BY, ...settings, ...upload });
        const cut = uploads.open(uploadId, () => undefined);
        cut.beginMessage();
        await cut.write(bytes.subarray(0, bytes.length >> 1));
        cut.endMessage();
        cut.acceptMessage();
        await cut.suspend();
        const { stagedBytes } = uploads.find(uploadId) ?? { stagedBytes: 0 };
        const sink = uploads.open(uploadId, () => undefined);
        sink.beginMessage();
        await sink.write(bytes.subarray(stagedBytes));
        sink.endMessage();
        sink.acceptMessage();
        await sink.commit({ ...BY, ...settings, ...this.#place(path) });
      },
    );
  }

  /** Sends a file and cancels it. */
  abort(bytes: Buffer): FolderChange {
    return this.#change(
      () => undefined,
      async () => {
        const sink = this.#storage().beginUpload({ owner: OWNER, sizeBytes: bytes.length });
        sink.beginMessage();
        await sink.write(bytes);
        await sink.abort();
      },
    );
  }

  write(path: string, offset: number, data: Buffer): FolderChange | undefined {
    const old = this.#contents.nodes.get(path);
    if (!(old instanceof Buffer)) return undefined;
    const bytes = Buffer.alloc(Math.max(old.length, offset + data.length));
    old.copy(bytes);
    data.copy(bytes, offset);
    return this.#change(
      (nodes) => nodes.set(path, bytes),
      async () => {
        const fileId = this.#id(path);
        await this.#storage().writeRange({ ...BY, fileId, offset, data, ifMatch: undefined });
      },
    );
  }

  setSize(path: string, sizeBytes: number): FolderChange | undefined {
    const old = this.#contents.nodes.get(path);
    if (!(old instanceof Buffer)) return undefined;
    const bytes = Buffer.alloc(sizeBytes);
    old.copy(bytes);
    return this.#change(
      (nodes) => nodes.set(path, bytes),
      async () => {
        const fileId = this.#id(path);
        await this.#storage().setSize({ ...BY, fileId, sizeBytes, ifMatch: undefined });
      },
    );
  }

  /** Moves a file or a folder; a file at the target is replaced. */
  rename(from: string, to: string): FolderChange | undefined {
    const node = this.#contents.nodes.get(from);
    const target = this.#contents.nodes.get(to);
    const isWrong = node === undefined || target === null || (node === null && target !== undefined);
    if (isWrong || from === to || to.startsWith(`${from}/`) || !this.#hasParent(to)) return undefined;
    return this.#change(
      (nodes) => {
        for (const [path, moved] of take(nodes, from)) nodes.set(to + path.slice(from.length), moved);
      },
      async () => {
        const inodeId = this.#id(from);
        await this.#storage().rename({ ...BY, inodeId, ...this.#place(to), onConflict: "replace" });
      },
      (grants) => moveGrants(grants, from, to),
    );
  }

  copy(from: string, to: string): FolderChange | undefined {
    if (!this.has(from) || this.has(to) || to.startsWith(`${from}/`) || !this.#hasParent(to))
      return undefined;
    return this.#change(
      (nodes) => {
        for (const [path, node] of within(nodes, from)) nodes.set(to + path.slice(from.length), node);
      },
      async () => {
        const target = {
          ...BY,
          sourceId: this.#id(from),
          ...this.#place(to),
          onConflict: "fail",
        } as const;
        const most = { maxBytes: 2 ** 40, maxInodes: 2 ** 30 };
        const { by } = target;
        await this.#storage().copy({ by, target: () => target, ...most, mayGoOn: () => undefined });
      },
    );
  }

  remove(path: string): FolderChange | undefined {
    if (!this.has(path)) return undefined;
    return this.#change(
      (nodes) => void take(nodes, path),
      async () => {
        await this.#storage().remove({ ...BY, inodeId: this.#id(path), recursive: true });
      },
      (grants) => moveGrants(grants, path, undefined),
    );
  }

  trash(path: string): FolderChange | undefined {
    if (!this.has(path)) return undefined;
    return this.#change(
      (nodes, trash) => {
        const taken = take(nodes, path);
        trash.push({ path, sizeBytes: totalOf(taken), nodes: taken });
      },
      async () => {
        await this.#storage().trash({ ...BY, inodeId: this.#id(path) });
      },
      (grants) => moveGrants(grants, path, undefined),
    );
  }

  /** Restores the item that was trashed last. */
  restore(): FolderChange | undefined {
    const item = this.#contents.trash.at(-1);
    if (item?.nodes === undefined || this.has(item.path) || !this.#hasParent(item.path)) return undefined;
    const { nodes: trashed } = item;
    return this.#change(
      (nodes, trash) => {
        trash.pop();
        for (const [path, node] of trashed) nodes.set(path, node);
      },
      async () => {
        const [trashId = ""] = this.#trashIds(item);
        await this.#storage().restore({ ...BY, trashId, names: undefined, onConflict: "fail" });
      },
    );
  }

  purge(): FolderChange | undefined {
    const { trash } = this.#contents;
    if (trash.length === 0) return undefined;
    return this.#change(
      (_, items) => items.splice(0),
      async () => {
        const trashIds = [...new Set(trash.flatMap((item) => this.#trashIds(item)))];
        await this.#storage().purgeTrash({ owner: OWNER, trashIds });
      },
    );
  }

  share(path: string, username: string): FolderChange | undefined {
    if (!this.has(path) || this.#contents.grants.has(`${path} ${username}`)) return undefined;
    return this.#change(
      () => undefined,
      async () => {
        await this.#storage().shares.grant({ ...BY, inodeId: this.#id(path), username });
      },
      (grants) => void grants.add(`${path} ${username}`),
    );
  }

  /**
   * Ends the grants below it as well; refused, and so not tried, while a folder above is shared with the same
   * user (spec 5.4, D13).
   */
  unshare(path: string, username: string): FolderChange | undefined {
    if (!this.#contents.grants.has(`${path} ${username}`)) return undefined;
    const above = path.split("/").map((_, depth, names) => names.slice(0, depth).join("/"));
    if (above.some((folder) => this.#contents.grants.has(`${folder} ${username}`))) return undefined;
    return this.#change(
      () => undefined,
      async () => {
        await this.#storage().shares.revoke({ ...BY, inodeId: this.#id(path), username });
      },
      (grants) => {
        for (const grant of grants)
          if (
            grant === `${path} ${username}` ||
            (grant.startsWith(`${path}/`) && grant.endsWith(` ${username}`))
          )
            grants.delete(grant);
      },
    );
  }

  #change(
    edit: (nodes: Map<string, Node>, trash: TrashedNodes[]) => unknown,
    run: () => Promise<void>,
    grant: (grants: Set<string>) => void = () => undefined,
  ): FolderChange {
    const nodes = new Map(this.#contents.nodes);
    const trash = [...this.#contents.trash];
    const grants = new Set(this.#contents.grants);
    edit(nodes, trash);
    grant(grants);
    return { after: { nodes, trash, grants }, run };
  }

  #hasParent(path: string): boolean {
    const slash = path.lastIndexOf("/");
    return slash < 0 || this.#contents.nodes.get(path.slice(0, slash)) === null;
  }

  #id(path: string): InodeId {
    return inodeAt(this.#storage(), this.name, ...path.split("/")).id;
  }

  #place(path: string): { parentId: InodeId; name: string } {
    const names = path.split("/");
    const name = names.pop() ?? "";
    return { parentId: inodeAt(this.#storage(), this.name, ...names).id, name };
  }

  /** The newest first. */
  #trashIds({ path }: TrashedNodes): string[] {
    const originalPath = `/${this.name}/${path}`;
    const { items } = this.#storage().listTrash(OWNER, { limit: 1_000, pageToken: "", originalPath });
    return items.map(({ id }) => id);
  }
}

function within(nodes: ReadonlyMap<string, Node>, top: string): Map<string, Node> {
  return new Map([...nodes].filter(([path]) => path === top || path.startsWith(`${top}/`)));
}

function take(nodes: Map<string, Node>, top: string): Map<string, Node> {
  const taken = within(nodes, top);
  for (const path of taken.keys()) nodes.delete(path);
  return taken;
}

/** Grants follow the entry that they were given for; `to` undefined: the entry is out of reach. */
function moveGrants(grants: Set<string>, from: string, to: string | undefined): void {
  const held = Array.from(grants);
  for (const grant of held) if (to !== undefined && grant.startsWith(`${to} `)) grants.delete(grant);
  for (const grant of held) {
    if (!grant.startsWith(`${from} `) && !grant.startsWith(`${from}/`)) continue;
    grants.delete(grant);
    if (to !== undefined) grants.add(to + grant.slice(from.length));
  }
}
