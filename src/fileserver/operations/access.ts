// From a request's root and path to an inode that the caller may reach: the policy step of every operation (spec 5.4, D13).
import { type ErrorCode, GroveError } from "#base/errors.ts";
import { STALE_ACCESS_RETRIES } from "#base/limits.ts";
import { canonicalUsername, joinPath, splitPath } from "#base/names.ts";
import type { VerifiedIdentity } from "#base/verified-identity.ts";
import { type Decision, decide, type Heir, type Permission } from "#security/policy/decide.ts";
import { type Inode, StaleAccessError } from "#storage/contract/inode.ts";
import type { Resolution, ShareStorage, Storage } from "#storage/contract/storage.ts";

/** What the policy step needs. */
export interface AccessDeps {
  readonly storage: Pick<Storage, "root" | "resolve"> & {
    readonly shares: Pick<ShareStorage, "pathsOf" | "usersOf">;
  };
  /** SVC_ADMIN_EMAIL (spec 5.5). */
  readonly adminUsername: string | undefined;
  /** Where the root of a user lives who has none here, if that is known (D19). */
  readonly homeAddressOf: (username: string) => string | undefined;
  /** True where an administrator has closed what a user shares. */
  readonly closesShares?: ((owner: string) => boolean) | undefined;
  /** The user as the heir of a root, where an administrator has handed it over and that holds now. */
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
  /** Set for whom the root was handed over to. */
  readonly heir?: Heir | undefined;
}

/** The one way from a request to storage. Everything is read in one turn, so that decision and read see the same state. */
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
   * Resolves and decides. Throws BAD_ARGUMENT and BAD_NAME for what can be no path, WRONG_NODE for the caller's own root when it is not
   * here, NOT_OWNER or NOT_SHARED. Who is not the owner and is not let in gets the same answer by the same work whether or not root, path
   * and other people's shares exist (D1): nothing is looked at but what is shared with the caller.
   */
  reach(caller: VerifiedIdentity, root: string, path: string, permission: Permission): Reached {
    return this.reachNames(caller, this.ownerOf(caller, root), splitPath(path), permission);
  }

  /** The same for names that are canonical already. */
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
   * How deep the highest directory lies that is shared with the caller on the way to a place, and below what the caller was last taken out
   * of, 0 being the root itself: two places with the same one lie in one shared subtree (D13). Only for callers who are not the owner. To an
   * heir all of the root is one.
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

  /** The user to whom a listing shows not all; the others see every entry, and their listing looks for nothing. */
  hiddenFrom(caller: VerifiedIdentity, { owner, isOwner, heir }: Reached): string | undefined {
    if (isOwner || heir !== undefined) return undefined;
    const { excluded } = this.#deps.storage.shares.pathsOf(owner, caller.username);
    return excluded.length === 0 ? undefined : caller.username;
  }

  /** The caller as the heir of somebody's root; undefined for who is none now. */
  heirOf(owner: string, { username }: Pick<VerifiedIdentity, "username">): Heir | undefined {
    return owner === username ? undefined : this.#deps.heirOf?.(owner, username);
  }

  /** True when anything in a root is shared with somebody; costs the same whether or not there is such a root. */
  sharesAnything(owner: string, username: string): boolean {
    const { granted } = this.#deps.storage.shares.pathsOf(owner, username);
    return granted.length > 0 && !this.#isClosed(owner);
  }

  /**
   * True while the caller may still do what was allowed, asked again when shares, moves or the trash have changed anything since (D13): at
   * the inode that was reached, wherever it lies now.
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
    // Who came as an heir and is none any more had looked at no share.
    if (reached.heir === undefined && now?.accessVersion === reached.resolution.root.accessVersion)
      return true;
    if (now === undefined) return false;
    let shared = storage.shares.usersOf(reached.last.id);
    // What was to be replaced may be gone meanwhile: then the place that it was in decides.
    if (permission === "write" && reached.last.parentId !== undefined) {
      shared ??= storage.shares.usersOf(reached.last.parentId);
    }
    if (shared === undefined) return false;
    const target = { owner, shared };
    return decide(caller, permission, target, adminUsername).allowed;
  }

  /** Refuses who is neither owner nor let in, from the caller's own shares alone. */
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

/** The refusal of what was allowed when it began and is no more: a stream's, to somebody who knows what is there. */
export function noLongerShared(): GroveError {
  return new GroveError("NOT_SHARED", "permission denied: this is no longer shared with you", {
    metadata: { has_ended: "true" },
  });
}

/** Length of the longest of the paths that a place lies at or below; 0 when it is none. Those that do are beginnings of each other. */
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
 * The slot at the end of the path. Throws NO_SUCH_PATH when a directory on the way is missing, NOT_DIRECTORY when it is a file, and the
 * given refusal for the root directory itself, which is no slot.
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

/** Repeats an attempt that a change of shares or a move has overtaken, from the permission check on. Throws OVERLOADED in the end. */
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
