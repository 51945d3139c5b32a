// A second implementation of who may do what: from section 5.4 of the specification and D33, without the
// server's code.
import { GroupOracle } from "./group-oracle.ts";

/** An entry of a user's root. */
export interface Entry {
  readonly isFolder: boolean;
  readonly content: string;
  /** Users who have a share here, and those excluded from a share above. */
  readonly marks: Map<string, "in" | "out">;
}

/** The bounds of an app password: reading alone, or below one folder of its owner, wherever that moves. */
export interface Bounds {
  readonly reads: boolean;
  readonly folder: Entry | undefined;
}

/** What is asked of a place. */
export type Right = "read" | "write" | "delete" | "share";

/** The rank of a role that is enough. */
const RANKS: Readonly<Record<Right, number>> = { read: 1, write: 2, delete: 2, share: 3 };

/**
 * All users' entries by absolute path, with their shares. A user without a share learns nothing, not even
 * what exists.
 */
export class Oracle {
  readonly #roots = new Map<string, Map<string, Entry>>();
  /** Groups as they are now; replaced as a whole, so that a rig can ask as before a change. */
  groups = new GroupOracle();
  /** Groups as they were before a change that a FileServer may not have followed yet. */
  formerGroups: GroupOracle | undefined;

  add(owner: string, path: string, content?: string): void {
    const entries = this.#roots.get(owner) ?? new Map<string, Entry>();
    this.#roots.set(owner, entries);
    entries.set(path, { isFolder: content === undefined, content: content ?? "", marks: new Map() });
  }

  /** Where an entry lies now; undefined for one that is gone. */
  placeOf(owner: string, entry: Entry): string | undefined {
    return this.paths(owner).find((path) => this.entry(owner, path) === entry);
  }

  paths(owner: string): string[] {
    return [...(this.#roots.get(owner)?.keys() ?? [])];
  }

  entry(owner: string, path: string): Entry | undefined {
    return this.#roots.get(owner)?.get(path);
  }

  /**
   * Returns "ok", or the reason of the refusal. A missing place counts as the deepest existing folder above
   * it.
   */
  verdict(caller: string, owner: string, path: string, right: Right): string {
    if (caller === owner || this.groups.rank(caller, owner) >= RANKS[right]) return "ok";
    if (right === "delete" || right === "share") return "NOT_OWNER";
    const isShared = this.#nearest(caller, owner, path) === "in" && !this.groups.isClosed(owner);
    return isShared ? "ok" : "NOT_SHARED";
  }

  /** Returns what `verdict` does for a user who comes by an app password with these bounds. */
  verdictWithin(
    bounds: Bounds | undefined,
    ...[caller, owner, path, right]: [caller: string, owner: string, path: string, right: Right]
  ): string {
    const asPerson = this.verdict(caller, owner, path, right);
    if (asPerson !== "ok" || bounds === undefined) return asPerson;
    if (right === "share") return "NOT_OWNER";
    if (bounds.folder !== undefined) {
      const at = this.placeOf(owner, bounds.folder);
      if (caller !== owner || at === undefined || !isIn(path, at)) return "NOT_SHARED";
    }
    return bounds.reads && right !== "read" ? "NOT_OWNER" : "ok";
  }

  /** Returns the entries of a folder that a user may see, also by the groups of before. */
  seenIn(caller: string, owner: string, folder: string): Set<string> {
    const isEntry = (path: string): boolean =>
      path !== "/" && (path.slice(0, path.lastIndexOf("/")) || "/") === folder;
    const { groups } = this;
    const seen = [groups, this.formerGroups ?? groups].flatMap((each) => {
      this.groups = each;
      return this.paths(owner).filter(
        (path) => isEntry(path) && this.verdict(caller, owner, path, "read") === "ok",
      );
    });
    this.groups = groups;
    return new Set(seen);
  }

  /** Returns places of a root with users who have access by a share of a folder above. */
  inherited(owner: string): [path: string, user: string][] {
    return this.marked(owner).flatMap(([at, user, mark]) =>
      this.paths(owner)
        .filter((path) => mark === "in" && path !== at && isIn(path, at))
        .map((path): [string, string] => [path, user]),
    );
  }

  /** Returns every mark in a root: path, user and kind. */
  marked(owner: string): [path: string, user: string, mark: "in" | "out"][] {
    return [...(this.#roots.get(owner) ?? [])].flatMap(([at, { marks }]) =>
      [...marks].map(([user, mark]): [string, string, "in" | "out"] => [at, user, mark]),
    );
  }

  /** Returns the deepest mark of a user on the way to a place. */
  #nearest(caller: string, owner: string, path: string): "in" | "out" | undefined {
    const marked = [...(this.#roots.get(owner) ?? [])].filter(
      ([at, { marks }]) => marks.has(caller) && isIn(path, at),
    );
    const [deepest] = marked.toSorted(([a], [b]) => b.length - a.length);
    return deepest?.[1].marks.get(caller);
  }

  /** Every share but those of whole roots. */
  shares(): { readonly owner: string; readonly path: string; readonly user: string }[] {
    return [...this.#roots].flatMap(([owner, entries]) =>
      [...entries]
        .filter(([path]) => path !== "/")
        .flatMap(([path, { marks }]) =>
          [...marks].filter(([, mark]) => mark === "in").map(([user]) => ({ owner, path, user })),
        ),
    );
  }

  seesQuota(caller: string, owner: string, admin: string): boolean {
    if (caller === owner || caller === admin || this.groups.rank(caller, owner) > 0) return true;
    const entries = [...(this.#roots.get(owner)?.values() ?? [])];
    return !this.groups.isClosed(owner) && entries.some(({ marks }) => marks.get(caller) === "in");
  }

  /** Shares with a user, and lifts an exclusion here where the share above is enough. */
  share(owner: string, path: string, user: string): void {
    const marks = this.entry(owner, path)?.marks;
    const wasOut = marks?.get(user) === "out";
    for (const [at, each] of this.#roots.get(owner) ?? []) {
      if (isIn(at, path) && each.marks.get(user) === "out") each.marks.delete(user);
    }
    if (!wasOut || this.#nearest(user, owner, path) !== "in") marks?.set(user, "in");
  }

  /**
   * Ends a user's shares here and below; an exclusion takes their place where a share above goes on, or where
   * there was one.
   */
  unshare(owner: string, path: string, user: string): void {
    const marks = this.entry(owner, path)?.marks;
    const wasOut = marks?.get(user) === "out";
    for (const [at, each] of this.#roots.get(owner) ?? []) if (isIn(at, path)) each.marks.delete(user);
    if (wasOut || this.#nearest(user, owner, path) === "in") marks?.set(user, "out");
  }

  /** Moves an entry with its marks; removal (to the trash as well) deletes them. */
  move(owner: string, from: string, to: string | undefined): void {
    const entries = this.#roots.get(owner) ?? new Map<string, Entry>();
    for (const [at, entry] of [...entries].filter(([place]) => isIn(place, from))) {
      entries.delete(at);
      if (to !== undefined) entries.set(to + at.slice(from.length), entry);
    }
  }
}

/** True when a place is this file or folder, or lies below it. */
export function isIn(place: string, at: string): boolean {
  return at === "/" || place === at || place.startsWith(`${at}/`);
}
