// Resolves a request's root and path to an inode that the caller may reach: the policy step (spec 5.4, D13).
import { type ErrorCode, GroveError } from "#base/errors.ts";
import { STALE_ACCESS_RETRIES } from "#base/limits.ts";
import { canonicalUsername, joinPath, splitPath } from "#base/names.ts";
import type { VerifiedIdentity } from "#base/verified-identity.ts";
import { type Decision, decide, type Heir, type Permission } from "#security/policy/decide.ts";
import { type Inode, StaleAccessError } from "#storage/contract/inode.ts";
import type { Resolution, ShareStorage, Storage } from "#storage/contract/storage.ts";

/** Dependencies of the policy step. */
export interface AccessDeps {
  readonly storage: Pick<Storage, "root" | "resolve"> & {
    readonly shares: Pick<ShareStorage, "pathsOf" | "usersOf">;
  };
  /** SVC_ADMIN_EMAIL (spec 5.5). */
  readonly adminUsername: string | undefined;
  /** Address of the node that holds the root of a user who has none here, if known (D19). */
  readonly homeAddressOf: (username: string) => string | undefined;
  /** True when an administrator has closed the shares of this owner. */
  readonly closesShares?: ((owner: string) => boolean) | undefined;
  /** The user as the heir of a root, while an administrator's hand-over holds. */
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
  /** Set when the root was handed over to the caller. */
  readonly heir?: Heir | undefined;
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
    return this.reachNames(caller, this.ownerOf(caller, root), splitPath(path), permission);
  }

  /** The same for names that are already canonical. */
  reachNames(
    caller: VerifiedIdentity,
    owner: string,
    names: readonly string[],
    permission: Permission,
  ): Reached {
    if (owner !== caller.username) this.#requireLetIn(caller, owner, names, permission);
    const { adminUsername } = this.#deps;
    const heir = this.heirOf(owner, caller);
    const heirs = heir === undefined ? [] : [heir];
    const resolution = this.#resolve(owner, names);
    if (resolution === undefined) {
      if (owner === caller.username) throw this.#wrongNode(owner);
      this.#require(decide(caller, permission, { owner, shared: [], heirs }, adminUsername));
      throw new GroveError("NO_SUCH_PATH", "no such root on this fileserver");
    }
    this.#require(decide(caller, permission, { owner, shared: resolution.shared, heirs }, adminUsername));
    const last = resolution.chain[resolution.chain.length - 1] ?? resolution.chain[0];
    return { owner, names, resolution, last, isOwner: owner === caller.username, heir };
  }

  /**
   * Depth of the highest directory shared with the caller on the way to a place, below the caller's last
   * exclusion; 0 is the root itself. Two places with the same depth lie in one shared subtree (D13). For
   * non-owners only; to an heir the whole root is one subtree.
   */
  sharedSubtree(caller: VerifiedIdentity, reached: Reached): number {
    if (reached.heir !== undefined) return 0;
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
   * trash, at the inode that was reached, wherever it lies now (D13).
   */
  stillAllowed(caller: VerifiedIdentity, reached: Reached, permission: Permission): boolean {
    if (reached.isOwner) return true;
    const { storage, adminUsername } = this.#deps;
    const { owner } = reached;
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

  #require(decision: Decision): void {
    if (!decision.allowed) throw new GroveError(decision.code, decision.message);
  }

  #wrongNode(owner: string): GroveError {
    const address = this.#deps.homeAddressOf(owner);
    return address === undefined
      ? new GroveError("WRONG_NODE", "your root is not on this fileserver; ask the metaserver where it is")
      : new GroveError("WRONG_NODE", `your root is on another fileserver: ${address}`, {
          metadata: { address },
        });
  }
}

/** The refusal of a stream whose permission ended after it began; its caller knew what is there. */
export function noLongerShared(): GroveError {
  return new GroveError("NOT_SHARED", "permission denied: this is no longer shared with you", {
    metadata: { has_ended: "true" },
  });
}

/**
 * Length of the longest of the paths that cover a place, 0 for none. Paths that cover one place are prefixes
 * of each other.
 */
function longestCovering(paths: readonly string[], place: string): number {
  return Math.max(0, ...paths.filter((path) => covers(path, place)).map((path) => path.length));
}

function covers(path: string, place: string): boolean {
  return path === "/" || place === path || place.startsWith(`${path}/`);
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

/** Repeats an attempt from the permission check on after a share or move. Throws OVERLOADED in the end. */
export async function retryWhenStale<T>(attempt: () => Promise<T>): Promise<T> {
  for (let tries = 1; ; tries++) {
    try {
      return await attempt();
    } catch (error) {
      if (!(error instanceof StaleAccessError)) throw error;
      if (tries >= STALE_ACCESS_RETRIES) {
        throw new GroveError(
          "OVERLOADED",
          "the directory is being moved or shared again and again; try later",
        );
      }
    }
  }
}
