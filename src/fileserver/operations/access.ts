// Resolves a request's root and path to an inode that the caller may reach: the policy step (spec 5.4, D13).
import { type ErrorCode, GroveError } from "#base/errors.ts";
import { STALE_ACCESS_RETRIES } from "#base/limits.ts";
import { canonicalUsername, covers, joinPath, longestCovering, splitPath } from "#base/names.ts";
import type { LinkRight, VerifiedIdentity } from "#base/verified-identity.ts";
import {
  type Decision,
  decide,
  decideHeld,
  decideScope,
  type Heir,
  type Holder,
  type Permission,
} from "#security/policy/decide.ts";
import {
  type Inode,
  type InodeId,
  inodeIdText,
  parseInodeId,
  StaleAccessError,
} from "#storage/contract/inode.ts";
import { LINK_ENDED_TEXT } from "#storage/contract/links.ts";
import type { LockStorage } from "#storage/contract/locks.ts";
import { againWhenRowsCome } from "#storage/contract/rows-to-come.ts";
import type { Resolution, ShareStorage, Storage } from "#storage/contract/storage.ts";
import { rootIsElsewhere, rootIsFrozen } from "./moving-roots.ts";

/** Dependencies of the policy step. */
export interface AccessDeps {
  readonly storage: Pick<Storage, "root" | "resolve"> & {
    readonly locks: Pick<LockStorage, "namesBelow">;
    readonly shares: Pick<ShareStorage, "pathsOf" | "usersOf">;
  };
  /** SVC_ADMIN_EMAIL (spec 5.5). */
  readonly adminUsername: string | undefined;
  /** Address of the node that holds the root of a user who has none here, if known (D19). */
  readonly homeAddressOf: (username: string) => string | undefined;
  /** True while a root waits for its switch to another node. */
  readonly isFrozen?: ((owner: string) => boolean) | undefined;
  /** True for a root that was here and has moved to another node. */
  readonly hasMoved?: ((owner: string) => boolean) | undefined;
  /** True when an administrator has closed the shares of this owner. */
  readonly closesShares?: ((owner: string) => boolean) | undefined;
  /** True while a visitor's link goes on; absent where no links are. */
  readonly linkGoesOn?: ((link: LinkRight) => boolean) | undefined;
  /** The user as the heir of a root, while a hand-over or a role in its group holds. */
  readonly heirOf?: ((owner: string, username: string) => Heir | undefined) | undefined;
}

/** A place that the caller was allowed to reach; the path below what exists may be missing. */
export interface Reached {
  readonly owner: string;
  /** Canonical names of the whole path. */
  readonly names: readonly string[];
  readonly resolution: Resolution;
  /** The deepest inode that exists. */
  readonly last: Inode;
  readonly isOwner: boolean;
  /** Set when the root was handed over to the caller, or is the caller's group's. */
  readonly heir?: Heir | undefined;
  /** For a visitor by a link: how many names lead to what the link opens. */
  readonly linkDepth?: number | undefined;
}

/** The one way from a request to storage. Decision and read happen in one turn and see the same state. */
export class Access {
  readonly #deps: AccessDeps;

  constructor(deps: AccessDeps) {
    this.#deps = deps;
  }

  /** The username whose root a request names: empty means the caller's own (D13). Throws BAD_ARGUMENT. */
  ownerOf(caller: VerifiedIdentity, root: string): string {
    return root === "" || root === caller.username ? caller.username : canonicalUsername(root);
  }

  /**
   * Resolves a path and decides. Throws BAD_ARGUMENT and BAD_NAME for invalid paths, WRONG_NODE for the
   * caller's own root on another node, NOT_OWNER or NOT_SHARED. A caller without access gets the same answer
   * by the same work whether or not root and path exist (D1): only the caller's own shares are read.
   */
  reach(caller: VerifiedIdentity, root: string, path: string, permission: Permission): Reached {
    const names = splitPath(path);
    if (caller.link !== undefined) return this.#reachByLink(caller, caller.link, names, permission);
    return this.reachNames(caller, this.ownerOf(caller, root), names, permission);
  }

  /** The same for names that are already canonical. */
  reachNames(
    caller: VerifiedIdentity,
    owner: string,
    names: readonly string[],
    permission: Permission,
  ): Reached {
    if (owner !== caller.username) this.#requireLetIn(caller, owner, names, permission);
    if (this.#deps.isFrozen?.(owner) === true) throw rootIsFrozen();
    const { adminUsername } = this.#deps;
    const heir = this.heirOf(owner, caller);
    const heirs = heir === undefined ? [] : [heir];
    const resolution = this.#resolve(owner, names);
    if (resolution === undefined) {
      const isElsewhere = this.#deps.hasMoved?.(owner) === true;
      if (owner === caller.username || isElsewhere) throw this.#wrongNode(owner);
      this.#require(decide(caller, permission, { owner, shared: [], heirs }, adminUsername));
      throw new GroveError("NO_SUCH_PATH", "no such root on this fileserver");
    }
    const target = { owner, shared: resolution.shared, heirs, way: wayOf(resolution) };
    this.#require(decide(caller, permission, target, adminUsername));
    const last = resolution.chain[resolution.chain.length - 1] ?? resolution.chain[0];
    return { owner, names, resolution, last, isOwner: owner === caller.username, heir };
  }

  /** True while a holder may write to an inode in somebody's root, wherever it lies now. */
  mayStillHold(owner: string, inodeId: InodeId, holder: Holder): boolean {
    const { shares } = this.#deps.storage;
    const heir = this.heirOf(owner, holder);
    const isOwn = owner === holder.username;
    const shared = isOwn || this.#isClosed(owner) ? [] : (shares.usersOf(inodeId) ?? []);
    const heirs = heir === undefined ? [] : [heir];
    const way = this.#wayBelow(holder.limit?.folderId, inodeId);
    return decideHeld(holder, { owner, shared, heirs, way }).allowed;
  }

  /** The same below what a link opens, wherever that lies now; whatever the request names as root. */
  #reachByLink(
    caller: VerifiedIdentity,
    link: LinkRight,
    below: readonly string[],
    permission: Permission,
  ): Reached {
    const { owner } = link;
    if (this.#deps.isFrozen?.(owner) === true) throw rootIsFrozen();
    this.#requireHere(owner);
    const above = this.#namesOfLink(link);
    if (above === undefined) throw linkEnded();
    const names = [...above, ...below];
    const resolution = this.#resolve(owner, names);
    if (resolution === undefined) throw linkEnded();
    const target = { owner, shared: [], way: wayOf(resolution) };
    this.#require(decide(caller, permission, target, this.#deps.adminUsername));
    const last = resolution.chain.at(-1) ?? resolution.chain[0];
    return { owner, names, resolution, last, isOwner: false, linkDepth: above.length };
  }

  /** Names that lead to what a link opens; undefined for a link that has ended. */
  #namesOfLink(link: LinkRight): readonly string[] | undefined {
    const { storage, linkGoesOn } = this.#deps;
    const id = parseInodeId(link.inodeId);
    const top = storage.root(link.owner)?.directoryId;
    if (linkGoesOn?.(link) !== true || id === undefined || top === undefined) return undefined;
    return storage.locks?.namesBelow(id, top);
  }

  /** True where the caller may read a place by names. */
  mayRead(caller: VerifiedIdentity, owner: string, names: readonly string[]): boolean {
    try {
      this.reachNames(caller, owner, names, "read");
      return true;
    } catch (error) {
      if (error instanceof GroveError) return false;
      throw error;
    }
  }

  /**
   * Depth of the highest directory shared with the caller on the way to a place, below the caller's last
   * exclusion; 0 is the root itself. Two places with the same depth lie in one shared subtree (D13). For
   * non-owners only; to an heir who writes the whole root is one subtree, and one who reads has shares besides.
   */
  sharedSubtree(caller: VerifiedIdentity, reached: Reached): number {
    if (reached.heir !== undefined && reached.heir.readOnly !== true) return 0;
    const { granted, excluded } = this.#deps.storage.shares.pathsOf(reached.owner, caller.username);
    const place = joinPath(reached.names);
    const above = longestCovering(excluded, place);
    const depths = granted
      .filter((path) => covers(path, place) && path.length > above)
      .map((path) => splitPath(path).length);
    return Math.min(reached.names.length, ...depths);
  }

  /** The user from whom a listing hides entries; undefined for callers who see every entry. */
  hiddenFrom(caller: VerifiedIdentity, { owner, isOwner, heir }: Reached): string | undefined {
    if (isOwner || heir !== undefined) return undefined;
    const { excluded } = this.#deps.storage.shares.pathsOf(owner, caller.username);
    return excluded.length === 0 ? undefined : caller.username;
  }

  /** The caller as the heir of somebody's root; undefined for who is none now. */
  heirOf(owner: string, { username }: Pick<VerifiedIdentity, "username">): Heir | undefined {
    return owner === username ? undefined : this.#deps.heirOf?.(owner, username);
  }

  /** True when a root shares anything with the user; the cost is the same whether or not the root exists. */
  sharesAnything(owner: string, username: string): boolean {
    const { granted } = this.#deps.storage.shares.pathsOf(owner, username);
    return granted.length > 0 && !this.#isClosed(owner);
  }

  /**
   * True while the caller may still do what was allowed. Decides again after any change of shares, moves or
   * trash, at the inode that was reached, wherever it lies now (D13). Throws WRONG_NODE to others than the owner
   * once the root has moved: what is shared is decided where it lives.
   */
  stillAllowed(caller: VerifiedIdentity, reached: Reached, permission: Permission): boolean {
    const { storage, adminUsername } = this.#deps;
    const { owner } = reached;
    if (!reached.isOwner) this.#requireHere(owner);
    if (caller.link !== undefined) return this.#stillByLink(caller, caller.link, reached, permission);
    // A credential for one folder ends with the place that was reached: another may lie there by now.
    const way = caller.limit?.folderId === undefined ? undefined : this.#wayNow(reached);
    if (reached.isOwner) return decideScope(caller, permission, { owner, way }).allowed;
    const now = storage.root(owner);
    const heir = this.heirOf(owner, caller);
    if (
      heir !== undefined &&
      decide(caller, permission, { owner, shared: [], heirs: [heir] }, adminUsername).allowed
    )
      return now !== undefined;
    if (this.#isClosed(owner)) return false;
    // A former heir has no share that could still apply.
    if (reached.heir === undefined && now?.accessVersion === reached.resolution.root.accessVersion)
      return true;
    if (now === undefined) return false;
    let shared = storage.shares.usersOf(reached.last.id);
    // The file to be replaced may be gone by now: then its former directory decides.
    if (permission === "write" && reached.last.parentId !== undefined) {
      shared ??= storage.shares.usersOf(reached.last.parentId);
    }
    if (shared === undefined) return false;
    const target = { owner, shared };
    return decide(caller, permission, target, adminUsername).allowed;
  }

  /** What was reached must still lie below what the link opens. */
  #stillByLink(
    caller: VerifiedIdentity,
    link: LinkRight,
    { owner, last }: Reached,
    permission: Permission,
  ): boolean {
    const id = parseInodeId(link.inodeId);
    if (id === undefined || this.#namesOfLink(link) === undefined) return false;
    const isBelow = this.#deps.storage.locks?.namesBelow(last.id, id) !== undefined;
    const way = isBelow ? [link.inodeId] : [];
    return decide(caller, permission, { owner, shared: [], way }, undefined).allowed;
  }

  /** Refuses a caller who is neither owner nor sharee, from the caller's own shares alone. */
  #requireLetIn(
    caller: VerifiedIdentity,
    owner: string,
    names: readonly string[],
    permission: Permission,
  ): void {
    const place = joinPath(names);
    const { granted, excluded } = this.#deps.storage.shares.pathsOf(owner, caller.username);
    const isShared = longestCovering(granted, place) > longestCovering(excluded, place);
    const isLetIn = isShared && !this.#isClosed(owner);
    const shared = isLetIn ? [caller.username] : [];
    const heir = this.heirOf(owner, caller);
    const target = { owner, shared, heirs: heir === undefined ? [] : [heir] };
    this.#require(decide(caller, permission, target, this.#deps.adminUsername));
  }

  #isClosed(owner: string): boolean {
    return this.#deps.closesShares?.(owner) === true;
  }

  #resolve(owner: string, names: readonly string[]): Resolution | undefined {
    try {
      return this.#deps.storage.resolve(owner, names);
    } catch (error) {
      if (error instanceof GroveError && error.code === "NO_SUCH_PATH") return undefined;
      throw error;
    }
  }

  #wayNow({ owner, names }: Reached): readonly string[] | undefined {
    const resolution = this.#resolve(owner, names);
    return resolution === undefined ? undefined : wayOf(resolution);
  }

  /** Ids from a credential's folder to what lies below it; undefined for what lies elsewhere. */
  #wayBelow(folderId: string | undefined, inodeId: InodeId): readonly string[] | undefined {
    const folder = folderId === undefined ? undefined : parseInodeId(folderId);
    if (folderId === undefined || folder === undefined) return undefined;
    const names = this.#deps.storage.locks.namesBelow(inodeId, folder);
    return names === undefined ? undefined : [...new Set([folderId, inodeIdText(inodeId)])];
  }

  #require(decision: Decision): void {
    if (!decision.allowed) throw refusalOf(decision);
  }

  #requireHere(owner: string): void {
    const { storage, hasMoved } = this.#deps;
    if (storage.root(owner) === undefined && hasMoved?.(owner) === true) throw this.#wrongNode(owner);
  }

  #wrongNode(owner: string): GroveError {
    return rootIsElsewhere(this.#deps.homeAddressOf(owner));
  }
}

function linkEnded(): GroveError {
  return new GroveError("NOT_SHARED", LINK_ENDED_TEXT, { metadata: { link: "ended", has_ended: "true" } });
}

function wayOf({ chain }: Resolution): readonly string[] {
  return chain.map(({ id }) => inodeIdText(id));
}

/** The refusal of a decision; one that a credential's bounds or a role have made says so in its metadata. */
export function refusalOf(refused: Exclude<Decision, { allowed: true }>): GroveError {
  const { code, message, leavesScope, isReader } = refused;
  const metadata = { ...(leavesScope && { scope: "left" }), ...(isReader && { role: "read" }) };
  return new GroveError(code, message, { metadata });
}

/** The refusal of a stream whose permission ended after it began; its caller knew what is there. */
export function noLongerShared({ heir }: Pick<Reached, "heir">): GroveError {
  const text =
    heir?.group === undefined
      ? "this is no longer shared with you"
      : `your role in the group ${heir.group} no longer lets you do this`;
  const group = heir?.group === undefined ? {} : { group: heir.group };
  return new GroveError("NOT_SHARED", `permission denied: ${text}`, {
    metadata: { has_ended: "true", ...group },
  });
}

/** The inode at the end of the path. Throws NO_SUCH_PATH. */
export function existing(reached: Reached): Inode {
  if (reached.resolution.missing.length > 0) {
    throw new GroveError("NO_SUCH_PATH", "no such file or directory");
  }
  return reached.last;
}

/** The file at the end of the path. Throws NO_SUCH_PATH, IS_DIRECTORY. */
export function existingFile(reached: Reached): Inode {
  const inode = existing(reached);
  if (inode.kind !== "file") throw new GroveError("IS_DIRECTORY", "this is a directory");
  return inode;
}

/** The directory at the end of the path. Throws NO_SUCH_PATH, NOT_DIRECTORY. */
export function existingDirectory(reached: Reached): Inode {
  const inode = existing(reached);
  if (inode.kind !== "directory") throw new GroveError("NOT_DIRECTORY", "this is not a directory");
  return inode;
}

/** A place for a new or replaced entry: its directory, its name, and what is there now. */
export interface Slot {
  readonly parent: Inode;
  readonly name: string;
  readonly present: Inode | undefined;
}

/**
 * The slot at the end of the path. Throws NO_SUCH_PATH for a missing directory on the way, NOT_DIRECTORY for
 * a file there, and the given refusal for the root directory, which is no slot.
 */
export function slotOf(reached: Reached, rootIsRefusedWith: ErrorCode): Slot {
  const { chain, missing } = reached.resolution;
  const name = reached.names.at(-1);
  if (name === undefined)
    throw new GroveError(rootIsRefusedWith, "the root directory itself is always there");
  if (missing.length === 0) {
    const parent = chain[chain.length - 2];
    if (parent !== undefined) return { parent, name, present: reached.last };
  }
  if (reached.last.kind !== "directory") throw new GroveError("NOT_DIRECTORY", "a file lies on the way");
  if (missing.length > 1) throw new GroveError("NO_SUCH_PATH", "the directory for it does not exist");
  return { parent: reached.last, name, present: undefined };
}

/**
 * Repeats an attempt from the permission check on after a share or move, and when rows have come. It is told when
 * it is the last one. Throws OVERLOADED in the end.
 */
export async function retryWhenStale<T>(attempt: (isLast: boolean) => Promise<T>): Promise<T> {
  for (let tries = 1; ; tries++) {
    try {
      return await againWhenRowsCome(() => attempt(tries === STALE_ACCESS_RETRIES));
    } catch (error) {
      if (!(error instanceof StaleAccessError)) throw error;
      if (tries >= STALE_ACCESS_RETRIES) {
        throw new GroveError(
          "OVERLOADED",
          "the directory is being moved, shared or locked again and again; try later",
        );
      }
    }
  }
}
