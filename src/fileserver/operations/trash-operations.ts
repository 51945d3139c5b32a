// TrashFile, ShowTrash, RestoreFile, PurgeTrash: for owners only, at any quota, on a full disk (D14).
import { GroveError } from "#base/errors.ts";
import { LIST_PAGE_MAX, TRASH_PURGE_BATCH } from "#base/limits.ts";
import { joinPath, splitPath } from "#base/names.ts";
import type { Claim } from "#quota/ledger.ts";
import type { ConflictRule } from "#storage/contract/inode.ts";
import { againWhenRowsCome, whenRowsAreHere } from "#storage/contract/rows-to-come.ts";
import type { Storage } from "#storage/contract/storage.ts";
import type { ListedTrashItem } from "#storage/contract/trash.ts";
import { type Attr, Kind } from "#wire/proto/gen/grove/v1/common_pb.ts";
import type {
  OperatorLook,
  PurgeTrashResponse,
  ShowTrashResponse,
  TrashItem as TrashItemMessage,
} from "#wire/proto/gen/grove/v1/file_server_pb.ts";
import { existing, type Reached, retryWhenStale } from "./access.ts";
import type { Caller } from "./caller.ts";
import { expected } from "./changes.ts";
import { attrAt, type NamespaceDeps, type Place } from "./namespace-operations.ts";
import type { OperatorLooks } from "./operator-looks.ts";
import { auditRestored, auditTrashed } from "./trash-audit.ts";

/** Dependencies of the operations. */
export interface TrashDeps extends NamespaceDeps {
  /** How long the trash keeps items, in milliseconds; 0 means until space is needed. */
  readonly retentionMs: number;
  /** Administrators' looks at users' trashes. */
  readonly looks: Pick<OperatorLooks, "of">;
}

type Plain<T> = Omit<T, "$typeName" | "$unknown">;

/** The operations on the trash of a root (spec 4.5). Errors are those of D1. */
export class TrashOperations {
  readonly #deps: TrashDeps;

  constructor(deps: TrashDeps) {
    this.#deps = deps;
  }

  /**
   * Puts a file, or a folder with its content, into the trash in constant time and ends its shares. Throws
   * NO_SUCH_PATH, NOT_OWNER, BAD_ARGUMENT for the root directory, ETAG_MISMATCH.
   */
  trashFile(
    caller: Caller,
    place: Place & { readonly ifMatch: string },
  ): Promise<{ item: TrashItemMessage }> {
    return this.#deps.meter.later("write", () =>
      retryWhenStale(async () => {
        const reached = this.#deps.access.reach(caller.identity, place.root, place.path, "delete");
        this.#deps.locks.require(caller, reached, "entries");
        this.#deps.locks.require(caller, reached, "tree");
        const inode = existing(reached);
        if (inode.parentId === undefined) {
          throw new GroveError("BAD_ARGUMENT", "the root directory itself cannot be put into the trash");
        }
        const { item } = await this.#deps.changes.run(caller, reached, undefined, (context) =>
          this.#deps.storage.trash({ ...context, inodeId: inode.id, ifMatch: expected(place.ifMatch) }),
        );
        const act = { actor: caller.identity.username, owner: reached.owner };
        auditTrashed(this.#deps.audit, act, item);
        return { item: trashMessage({ ...item, parentExists: true }, this.#deps.retentionMs) };
      }),
    );
  }

  /**
   * One page of the trash, newest first, stable under change. Throws BAD_ARGUMENT for a page above 1000 or a
   * foreign token.
   */
  showTrash(
    caller: Caller,
    request: {
      readonly root: string;
      readonly pageSize: number;
      readonly pageToken: string;
      readonly trashId: string;
      readonly originalPath: string;
    },
  ): Plain<ShowTrashResponse> | Promise<Plain<ShowTrashResponse>> {
    return this.#deps.meter.run("read", () => {
      const { pageSize, pageToken, trashId, originalPath } = request;
      if (pageSize > LIST_PAGE_MAX) {
        throw new GroveError("BAD_ARGUMENT", `a page has at most ${LIST_PAGE_MAX} items`, {
          metadata: { limit: String(LIST_PAGE_MAX) },
        });
      }
      const { owner } = this.#reachTrash(caller, request.root);
      const page = this.#deps.storage.listTrash(owner, {
        limit: pageSize === 0 ? LIST_PAGE_MAX : pageSize,
        pageToken,
        ...(trashId === "" ? {} : { id: trashId }),
        ...(originalPath === "" ? {} : { originalPath: joinPath(splitPath(originalPath)) }),
      });
      return {
        items: page.items.map((item) => trashMessage(item, this.#deps.retentionMs)),
        nextPageToken: page.nextPageToken ?? "",
        operatorLooks: pageToken === "" && trashId === "" && originalPath === "" ? this.#looksAt(owner) : [],
        nowMs: BigInt(this.#deps.clock.wallMs()),
      };
    });
  }

  /**
   * Restores an item to its former or another path. It needs no room: the trash counts in the quota already
   * (D14). Makes missing folders on the way, by the usual rule (spec 4.6.1). Throws NO_SUCH_PATH,
   * PATH_EXISTS, NOT_DIRECTORY, IS_DIRECTORY, NOT_EMPTY, and for those folders QUOTA_EXCEEDED, INODE_LIMIT,
   * DISK_RESERVE.
   */
  restoreFile(
    caller: Caller,
    request: {
      readonly root: string;
      readonly trashId: string;
      readonly targetPath: string;
      readonly onConflict: ConflictRule;
    },
  ): Promise<Attr> {
    return this.#deps.meter.later("write", () =>
      retryWhenStale(async () => {
        const { trashId, targetPath, onConflict } = request;
        const reached = this.#reachTrash(caller, request.root);
        const names = targetPath === "" ? undefined : splitPath(targetPath);
        this.#requireUnlockedPlace(caller, reached.owner, trashId, names);
        const claim = claimOfRestore(this.#deps.storage, reached.owner, trashId, names);
        const done = await this.#deps.changes.run(caller, reached, claim, (context) =>
          this.#deps.storage.restore({ ...context, trashId, names, onConflict }),
        );
        const act = { actor: caller.identity.username, owner: reached.owner };
        auditRestored(this.#deps.audit, act, { trashId, path: joinPath(done.names) });
        return await whenRowsAreHere(() => {
          const there = this.#deps.access.reachNames(caller.identity, reached.owner, done.names, "read");
          return attrAt(there, done.inode);
        });
      }),
    );
  }

  /** Removes for good the named items or all, those trashed before a time alone. Each is audited. Throws NOT_OWNER. */
  async purgeTrash(
    caller: Caller,
    request: {
      readonly root: string;
      readonly trashIds: readonly string[];
      readonly trashedBeforeMs: bigint;
    },
  ): Promise<Plain<PurgeTrashResponse>> {
    return this.#deps.meter.later("write", async () => {
      const total = { purgedItems: 0n, freedBytes: 0n };
      for await (const trashIds of this.#batches(caller, request)) {
        const reached = await againWhenRowsCome(() => this.#reachTrash(caller, request.root));
        const done = await this.#deps.changes.run(caller, reached, undefined, ({ owner }) =>
          this.#deps.storage.purgeTrash({ owner, trashIds }),
        );
        for (const { originalPath, id, sizeBytes, inodeCount } of done.items) {
          this.#deps.audit({
            act: "trash.purge",
            actor: caller.identity.username,
            subject: `${reached.owner}:${originalPath}`,
            detail: { trash_id: id, bytes: sizeBytes, inodes: inodeCount },
          });
        }
        total.purgedItems += BigInt(done.items.length);
        total.freedBytes += BigInt(done.freedBytes);
      }
      return total;
    });
  }

  /** Ids to purge, in batches of one transaction each. Items trashed after the call began stay. */
  async *#batches(
    caller: Caller,
    request: {
      readonly root: string;
      readonly trashIds: readonly string[];
      readonly trashedBeforeMs: bigint;
    },
  ): AsyncGenerator<readonly string[]> {
    const { trashIds, trashedBeforeMs } = request;
    const { owner } = await againWhenRowsCome(() => this.#reachTrash(caller, request.root));
    if (trashIds.length > 0) {
      for (let at = 0; at < trashIds.length; at += TRASH_PURGE_BATCH) {
        const named = trashIds.slice(at, at + TRASH_PURGE_BATCH);
        yield trashedBeforeMs === 0n
          ? named
          : await againWhenRowsCome(() => this.#olderOf(owner, named, Number(trashedBeforeMs)));
      }
      return;
    }
    const nowMs = this.#deps.clock.wallMs();
    const beforeMs = trashedBeforeMs === 0n ? nowMs + 1 : Number(trashedBeforeMs);
    if (trashedBeforeMs === 0n) {
      const later = await this.#laterThan(owner, nowMs);
      for (let at = 0; at < later.length; at += TRASH_PURGE_BATCH)
        yield later.slice(at, at + TRASH_PURGE_BATCH);
    }
    for (;;) {
      // Rows may be forgotten between two batches.
      const heads = await againWhenRowsCome(() =>
        this.#deps.storage.oldestTrash(owner, beforeMs, TRASH_PURGE_BATCH),
      );
      if (heads.length === 0) return;
      yield heads.map(({ id }) => id);
    }
  }

  /** Items that seem to come from after a time: the clock was ahead when they were trashed. */
  async #laterThan(owner: string, nowMs: number): Promise<readonly string[]> {
    const ids: string[] = [];
    for (let pageToken: string | undefined = ""; pageToken !== undefined; ) {
      const token: string = pageToken;
      const { items, nextPageToken } = await againWhenRowsCome(() =>
        this.#deps.storage.listTrash(owner, { limit: TRASH_PURGE_BATCH, pageToken: token }),
      );
      const later = items.filter(({ trashedAtMs }) => trashedAtMs > nowMs);
      for (const { id } of later) ids.push(id);
      pageToken = later.length === items.length ? nextPageToken : undefined;
    }
    return ids;
  }

  /** Those of the named items that were trashed before a time. */
  #olderOf(owner: string, trashIds: readonly string[], beforeMs: number): readonly string[] {
    return trashIds.filter((id) => (this.#itemOf(owner, id)?.trashedAtMs ?? beforeMs) < beforeMs);
  }

  #itemOf(owner: string, id: string): ListedTrashItem | undefined {
    return this.#deps.storage.listTrash(owner, { limit: 1, pageToken: "", id }).items[0];
  }

  /** A restore makes an entry, or replaces one. */
  #requireUnlockedPlace(
    caller: Caller,
    owner: string,
    id: string,
    target: readonly string[] | undefined,
  ): void {
    const names = target ?? this.#itemOf(owner, id)?.originalPath.split("/").slice(1);
    if (names === undefined) return;
    const place = this.#deps.access.reachNames(caller.identity, owner, names, "delete");
    this.#deps.locks.require(caller, place, "entries");
    this.#deps.locks.require(caller, place, "tree");
  }

  #looksAt(owner: string): OperatorLook[] {
    return this.#deps.looks.of(owner).map(({ at_ms, by, reason, restored_path }) => ({
      $typeName: "grove.v1.OperatorLook",
      atMs: BigInt(Math.trunc(at_ms)),
      by,
      reason,
      restoredPath: restored_path,
    }));
  }

  /** A root whose trash the caller may see and change: only its owner's (spec 4.5). */
  #reachTrash(caller: Caller, root: string): Reached {
    return this.#deps.access.reach(caller.identity, root, "/", "delete");
  }
}

/** The claim for missing folders above an item's new place; undefined without them, or without the item. */
export function claimOfRestore(
  storage: Pick<Storage, "listTrash" | "resolve">,
  owner: string,
  id: string,
  target: readonly string[] | undefined,
): Claim | undefined {
  const [item] = storage.listTrash(owner, { limit: 1, pageToken: "", id }).items;
  if (item === undefined) return undefined;
  const names = target ?? splitPath(item.originalPath);
  const { chain, missing } = storage.resolve(owner, names.slice(0, -1));
  if (missing.length === 0 || chain.at(-1)?.kind !== "directory") return undefined;
  return { creates: missing.length, addsBytes: 0 };
}

/** The wire message of an item. */
export function trashMessage(item: ListedTrashItem, retentionMs: number): TrashItemMessage {
  return {
    $typeName: "grove.v1.TrashItem",
    trashId: item.id,
    originalPath: item.originalPath,
    kind: item.kind === "file" ? Kind.FILE : Kind.DIRECTORY,
    size: BigInt(item.sizeBytes),
    inodeCount: BigInt(item.inodeCount),
    trashedAtMs: BigInt(item.trashedAtMs),
    expiresAtMs: retentionMs === 0 ? 0n : BigInt(item.trashedAtMs + retentionMs),
    trashedBy: item.trashedBy,
    parentExists: item.parentExists,
    formerShares: item.formerShares.map(({ names, username }) => ({
      $typeName: "grove.v1.FormerShare",
      path: [item.originalPath, ...names].join("/"),
      user: username,
    })),
  };
}
