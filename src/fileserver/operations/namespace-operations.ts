// Operations on names: look, list, make, move, remove. Each is policy, quota, storage, telemetry in order.

import type { AuditSink } from "#base/audit-act.ts";
import { waiting } from "#base/call-waits.ts";
import type { Clock } from "#base/clock.ts";
import { GroveError } from "#base/errors.ts";
import { INLINE_FILE_MAX_BYTES, LIST_PAGE_MAX } from "#base/limits.ts";
import { joinPath } from "#base/names.ts";
import { crc32 } from "#os/crc32.ts";
import type { Inode } from "#storage/contract/inode.ts";
import { whenRowsAreHere } from "#storage/contract/rows-to-come.ts";
import type { ListPage, ListSort, SortedOrder, Storage } from "#storage/contract/storage.ts";
import { type Attr, Perm } from "#wire/proto/gen/grove/v1/common_pb.ts";
import {
  type Access,
  existing,
  existingDirectory,
  type Reached,
  retryWhenStale,
  type Slot,
  slotOf,
} from "./access.ts";
import { attrMessage, permissionsOf } from "./attr-message.ts";
import type { Caller } from "./caller.ts";
import { type Changes, mayMakeWay, requireEtag, type ToPlace, versionsOf } from "./changes.ts";
import { encodeListing, entriesPerReply } from "./listing-bytes.ts";
import type { LockRule } from "./lock-rule.ts";
import { modificationTime } from "./modification-time.ts";
import type { OperationMeter } from "./operation-meter.ts";

/** Entries up to which the thread that answers reads sorts a directory: the work of one page by name. */
export const LIST_SORT_AT_ONCE = 1_000;

/** A place as every request names it (D13). */
export interface Place {
  readonly root: string;
  readonly path: string;
}

/** Which page of a directory is asked for. */
interface ListRequest extends Place {
  readonly pageSize: number;
  readonly pageToken: string;
  readonly sort: ListSort;
}

/** Room before the bytes of a listing, and the deadline for them. */
interface ListReply {
  readonly headBytes: number;
  readonly signal: AbortSignal;
}

/** Dependencies of the operations. */
export interface NamespaceDeps {
  readonly storage: Storage;
  readonly access: Access;
  readonly changes: Changes;
  readonly locks: LockRule;
  readonly meter: OperationMeter;
  readonly clock: Clock;
  readonly audit: AuditSink;
}

/** The operations on names (spec 4.5). Errors are those of D1. */
export class NamespaceOperations {
  readonly #deps: NamespaceDeps;

  constructor(deps: NamespaceDeps) {
    this.#deps = deps;
  }

  /** The Attr of one inode. Throws NO_SUCH_PATH and the policy's refusals. */
  getAttr(caller: Caller, place: Place): Attr | Promise<Attr> {
    return this.#deps.meter.run("read", () => {
      const reached = this.#deps.access.reach(caller.identity, place.root, place.path, "read");
      return attrAt(reached, existing(reached));
    });
  }

  /** A directory's canonical path and Attr; keeps no state (D13). Throws NOT_DIRECTORY. */
  changeDir(caller: Caller, place: Place): Attr | Promise<Attr> {
    return this.#deps.meter.run("read", () => {
      const reached = this.#deps.access.reach(caller.identity, place.root, place.path, "read");
      return attrAt(reached, existingDirectory(reached));
    });
  }

  /**
   * One page of a directory by name, stable under change (D13), as message bytes after some room. Throws
   * BAD_ARGUMENT for a page size above 1000 or a foreign token.
   */
  listDir(caller: Caller, request: ListRequest, reply: ListReply): Buffer | Promise<Buffer> {
    const { meter, storage } = this.#deps;
    if (request.sort === "name" || request.sort === "name-desc") {
      return meter.run("read", () => {
        const { reached, query } = this.#listing(caller, request);
        return encodePage(storage.list(query.directoryId, query), reached, reply.headBytes);
      });
    }
    return meter.later("read", () => retryWhenStale(() => this.#listSorted(caller, request, reply)));
  }

  /** Sorts a larger directory in the background, after other users' requests; decides access at its turn. */
  async #listSorted(caller: Caller, request: ListRequest, reply: ListReply): Promise<Buffer> {
    const { storage } = this.#deps;
    let { reached, query, directory } = this.#listing(caller, request);
    const page =
      directory.childCount <= LIST_SORT_AT_ONCE
        ? storage.list(query.directoryId, query)
        : await waiting(
            "sort",
            storage.listSorted({
              user: caller.identity.username,
              signal: reply.signal,
              query: () => {
                ({ reached, query, directory } = this.#listing(caller, request));
                return query;
              },
            }),
          );
    return encodePage(page, reached, reply.headBytes);
  }

  #listing(
    caller: Caller,
    request: ListRequest,
  ): { reached: Reached; directory: Inode; query: ReturnType<SortedOrder["query"]> } {
    if (request.pageSize > LIST_PAGE_MAX) {
      throw new GroveError("BAD_ARGUMENT", `a page has at most ${LIST_PAGE_MAX} entries`, {
        metadata: { limit: String(LIST_PAGE_MAX) },
      });
    }
    const reached = this.#deps.access.reach(caller.identity, request.root, request.path, "read");
    const directory = existingDirectory(reached);
    const wanted = request.pageSize === 0 ? LIST_PAGE_MAX : request.pageSize;
    const { shared, root } = reached.resolution;
    const query = {
      owner: reached.owner,
      accessVersion: root.accessVersion,
      directoryId: directory.id,
      limit: Math.min(wanted, entriesPerReply(joinPath(reached.names), shared)),
      pageToken: request.pageToken,
      sort: request.sort,
      hiddenFrom: this.#deps.access.hiddenFrom(caller.identity, reached),
    };
    return { reached, directory, query };
  }

  /**
   * Makes a file of at most 65,536 bytes. Throws PATH_EXISTS, QUOTA_EXCEEDED, INODE_LIMIT, DISK_RESERVE
   * (spec 4.6.1, 4.6.3).
   */
  createFile(
    caller: Caller,
    request: Place & {
      readonly data: Uint8Array;
      readonly mtimeMs?: bigint;
      readonly crc32?: number | undefined;
    },
  ): Promise<Attr> {
    return this.#deps.meter.later("write", () => {
      if (request.data.length > INLINE_FILE_MAX_BYTES) {
        throw new GroveError(
          "BAD_ARGUMENT",
          `CreateFile takes at most ${INLINE_FILE_MAX_BYTES} bytes; use UploadFile`,
          { metadata: { limit_bytes: String(INLINE_FILE_MAX_BYTES) } },
        );
      }
      const mtimeMs = modificationTime(request.mtimeMs ?? 0n);
      if (request.crc32 !== undefined && request.crc32 !== crc32(request.data)) {
        throw new GroveError("CHECKSUM_MISMATCH", "the file arrived with other bytes than its checksum says");
      }
      return this.#create(caller, request, request.data.length, ({ parent, name }, context) =>
        this.#deps.storage.createFile({
          ...context,
          parentId: parent.id,
          name,
          data: request.data,
          mtimeMs: mtimeMs === 0 ? this.#deps.clock.wallMs() : mtimeMs,
        }),
      );
    });
  }

  /** Makes a directory. Throws PATH_EXISTS, QUOTA_EXCEEDED, INODE_LIMIT, DISK_RESERVE (spec 4.6.1, 4.6.3). */
  createDirectory(caller: Caller, place: Place): Promise<Attr> {
    return this.#deps.meter.later("write", () =>
      this.#create(caller, place, 0, ({ parent, name }, context) =>
        this.#deps.storage.createDirectory({ ...context, parentId: parent.id, name }),
      ),
    );
  }

  /**
   * Removes for good; owner only (spec 4.5). Throws NOT_EMPTY unless recursive. Works over quota and on a
   * full disk.
   */
  deleteFile(
    caller: Caller,
    request: Place & { readonly recursive: boolean },
  ): Promise<{ freedBytes: number; inodeCount: number }> {
    return this.#deps.meter.later("write", () =>
      retryWhenStale(async () => {
        const reached = this.#deps.access.reach(caller.identity, request.root, request.path, "delete");
        const inode = existing(reached);
        if (inode.parentId === undefined) {
          throw new GroveError("BAD_ARGUMENT", "the root directory itself cannot be deleted");
        }
        this.#deps.locks.require(caller, reached, "entries");
        this.#deps.locks.require(caller, reached, "tree");
        const removal = await this.#deps.changes.run(caller, reached, undefined, (context) =>
          this.#deps.storage.remove({ ...context, inodeId: inode.id, recursive: request.recursive }),
        );
        this.#deps.audit({
          act: "file.delete",
          actor: caller.identity.username,
          subject: `${reached.owner}:${joinPath(reached.names)}`,
          detail: { bytes: removal.freedBytes, inodes: removal.inodeCount },
        });
        return removal;
      }),
    );
  }

  /**
   * Moves or renames inside one root, also across directories (D13). Needs write on both parents in one
   * shared subtree. A move out of it needs delete, as one over a directory or a file with shares or links of its own.
   */
  rename(caller: Caller, request: Place & ToPlace): Promise<Attr> {
    return this.#deps.meter.later("write", () =>
      retryWhenStale(async () => {
        const source = this.#deps.access.reach(caller.identity, request.root, request.path, "write");
        const inode = existing(source);
        if (inode.parentId === undefined) {
          throw new GroveError("BAD_ARGUMENT", "the root directory itself cannot be moved");
        }
        const target = this.#deps.access.reach(caller.identity, request.root, request.targetPath, "write");
        const slot = slotOf(target, "BAD_ARGUMENT");
        if (slot.present?.id === inode.id) {
          for (const version of [request.ifMatch, request.targetIfMatch]) requireEtag(inode, version);
          return attrAt(target, inode);
        }
        for (const moved of [source, target]) {
          this.#deps.locks.require(caller, moved, "entries");
          this.#deps.locks.require(caller, moved, "tree");
        }
        const onConflict = this.#conflictRight(caller, { source, target, slot, wanted: request.onConflict });
        const change = await this.#deps.changes.run(caller, source, undefined, (context) =>
          this.#deps.storage.rename({
            ...context,
            inodeId: inode.id,
            parentId: slot.parent.id,
            name: slot.name,
            targetAt: joinPath(target.names),
            onConflict,
            ...versionsOf(request),
          }),
        );
        return await whenRowsAreHere(() => movedAttr(this.#deps.storage, target, change.inode));
      }),
    );
  }

  /** What storage may do with an existing target, after the checks of the right to it. */
  #conflictRight(
    caller: Caller,
    move: { source: Reached; target: Reached; slot: Slot; wanted: ToPlace["onConflict"] },
  ): ToPlace["onConflict"] {
    const { source, target, slot, wanted } = move;
    const { access } = this.#deps;
    if (wanted === "trash") access.reachNames(caller.identity, target.owner, target.names, "delete");
    if (source.isOwner) return wanted;
    // The shared inode itself hangs in a directory that is not shared: a move would change that directory.
    const above = access.reachNames(caller.identity, source.owner, source.names.slice(0, -1), "write");
    const from = access.sharedSubtree(caller.identity, above);
    const parent = access.reachNames(caller.identity, target.owner, target.names.slice(0, -1), "write");
    const leaves = access.sharedSubtree(caller.identity, parent) !== from || !sharePath(above, parent, from);
    const isFile = source.last.kind === "file";
    const replaces = wanted === "replace" && slot.present !== undefined;
    if (leaves || (replaces && !(isFile && mayMakeWay(this.#deps.storage, target.owner, slot.present)))) {
      access.reachNames(caller.identity, source.owner, source.names, "delete");
    }
    // Without the right to replace a directory today, a later one must not be replaced either.
    return wanted === "replace" && !isFile ? "fail" : wanted;
  }

  #create(
    caller: Caller,
    place: Place,
    bytes: number,
    command: (
      slot: Slot,
      context: Parameters<Parameters<Changes["run"]>[3]>[0],
    ) => ReturnType<Storage["createFile"]>,
  ): Promise<Attr> {
    return retryWhenStale(async () => {
      const reached = this.#deps.access.reach(caller.identity, place.root, place.path, "write");
      const slot = slotOf(reached, "PATH_EXISTS");
      if (slot.present !== undefined) throw new GroveError("PATH_EXISTS", "this name is taken");
      this.#deps.locks.require(caller, reached, "entries");
      const claim = { creates: 1, addsBytes: bytes };
      const change = await this.#deps.changes.run(caller, reached, claim, (context) =>
        command(slot, context),
      );
      return entryAttr(reached, change.inode);
    });
  }
}

function encodePage(page: ListPage, reached: Reached, headBytes: number): Buffer {
  return encodeListing(shown(reached, page), shownPath(reached), scopeOf(reached), headBytes);
}

function sharePath(a: Reached, b: Reached, depth: number): boolean {
  return a.names.slice(0, depth).join("/") === b.names.slice(0, depth).join("/");
}

const scopeOf = (reached: Reached) =>
  reached.linkDepth === undefined
    ? {
        owner: reached.owner,
        shared: reached.resolution.shared,
        permissions: permissionsOf(reached),
      }
    : { owner: "", shared: [], permissions: [Perm.READ] };

/** A visitor by a link sees paths below what the link opens. */
function shownPath({ names, linkDepth = 0 }: Pick<Reached, "linkDepth" | "names">): string {
  return joinPath(names.slice(linkDepth));
}

/** A visitor by a link sees neither who made an entry nor who shares it. */
function shown({ linkDepth }: Reached, page: ListPage): ListPage {
  if (linkDepth === undefined) return page;
  return { ...page, own: new Map(), entries: page.entries.map(unnamed) };
}

const unnamed = (inode: Inode): Inode => ({ ...inode, createdBy: "", parentId: undefined });

/** The Attr of the inode that a path led to. */
export function attrAt(reached: Reached, inode: Inode): Attr {
  const seen = reached.linkDepth === undefined ? inode : unnamed(inode);
  return attrMessage(seen, shownPath(reached), scopeOf(reached));
}

/** The Attr of an entry made where a path points; a free name that storage chose may differ from it. */
export function entryAttr(reached: Reached, inode: Inode): Attr {
  return attrMessage(inode, entryPath(reached, inode), scopeOf(reached));
}

/** The same for an entry that was moved or copied: it has its own shares, not those of what it replaced. */
export function movedAttr(storage: Pick<Storage, "shares">, reached: Reached, inode: Inode): Attr {
  const shared = storage.shares.usersOf(inode.id) ?? [];
  return attrMessage(inode, entryPath(reached, inode), { ...scopeOf(reached), shared });
}

function entryPath(reached: Reached, inode: Inode): string {
  return joinPath([...reached.names.slice(0, -1), inode.name]);
}
