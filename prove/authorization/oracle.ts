// Who may do what, told a second time: from the specification's section 5.4 alone, with nothing of the server's code.

/** An entry of somebody's root. */
interface Entry {
  readonly isFolder: boolean;
  readonly content: string;
  /** Users who are let in here, and those who are taken out of what a folder above gives. */
  readonly marks: Map<string, "in" | "out">;
}

/** What is asked of a place. */
export type Right = "read" | "write" | "delete";

/** Everybody's entries by absolute path, and the shares that hang at them. Whoever has no share learns nothing, not even of what is there. */
export class Oracle {
  readonly #roots = new Map<string, Map<string, Entry>>();

  add(owner: string, path: string, content?: string): void {
    const entries = this.#roots.get(owner) ?? new Map<string, Entry>();
    this.#roots.set(owner, entries);
    entries.set(path, { isFolder: content === undefined, content: content ?? "", marks: new Map() });
  }

  paths(owner: string): string[] {
    return [...(this.#roots.get(owner)?.keys() ?? [])];
  }

  entry(owner: string, path: string): Entry | undefined {
    return this.#roots.get(owner)?.get(path);
  }

  /** "ok", or why not. A place that is missing counts as the deepest folder above it that is there. */
  verdict(caller: string, owner: string, path: string, right: Right): string {
    if (caller === owner) return "ok";
    if (right === "delete") return "NOT_OWNER";
    return this.#nearest(caller, owner, path) === "in" ? "ok" : "NOT_SHARED";
  }

  /** Entries of a folder that somebody may see. */
  seenIn(caller: string, owner: string, folder: string): Set<string> {
    const isEntry = (path: string): boolean =>
      path !== "/" && (path.slice(0, path.lastIndexOf("/")) || "/") === folder;
    const seen = this.paths(owner).filter(
      (path) => isEntry(path) && this.verdict(caller, owner, path, "read") === "ok",
    );
    return new Set(seen);
  }

  /** Places of a root with users who are let in there by a share of a folder above. */
  inherited(owner: string): [path: string, user: string][] {
    return this.marked(owner).flatMap(([at, user, mark]) =>
      this.paths(owner)
        .filter((path) => mark === "in" && path !== at && isIn(path, at))
        .map((path): [string, string] => [path, user]),
    );
  }

  /** Every mark in a root: where, of whom, and which. */
  marked(owner: string): [path: string, user: string, mark: "in" | "out"][] {
    return [...(this.#roots.get(owner) ?? [])].flatMap(([at, { marks }]) =>
      [...marks].map(([user, mark]): [string, string, "in" | "out"] => [at, user, mark]),
    );
  }

  /** The mark of somebody on the way to a place that hangs deepest. */
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
    const entries = [...(this.#roots.get(owner)?.values() ?? [])];
    return caller === owner || caller === admin || entries.some(({ marks }) => marks.get(caller) === "in");
  }

  /** Lets a user in, also where the user was taken out below; where that was here, what is above may be enough again. */
  share(owner: string, path: string, user: string): void {
    const marks = this.entry(owner, path)?.marks;
    const wasOut = marks?.get(user) === "out";
    for (const [at, each] of this.#roots.get(owner) ?? []) {
      if (isIn(at, path) && each.marks.get(user) === "out") each.marks.delete(user);
    }
    if (!wasOut || this.#nearest(user, owner, path) !== "in") marks?.set(user, "in");
  }

  /** Ends what a user has here and below; where something above goes on, or the user was out already, the user is out from here on. */
  unshare(owner: string, path: string, user: string): void {
    const marks = this.entry(owner, path)?.marks;
    const wasOut = marks?.get(user) === "out";
    for (const [at, each] of this.#roots.get(owner) ?? []) if (isIn(at, path)) each.marks.delete(user);
    if (wasOut || this.#nearest(user, owner, path) === "in") marks?.set(user, "out");
  }

  /** A move takes its marks along; what goes (to the trash as well) loses them. */
  move(owner: string, from: string, to: string | undefined): void {
    const entries = this.#roots.get(owner) ?? new Map<string, Entry>();
    for (const [at, entry] of [...entries].filter(([place]) => isIn(place, from))) {
      entries.delete(at);
      if (to !== undefined) entries.set(to + at.slice(from.length), entry);
    }
  }
}

/** Whether a place is a folder or file, or lies below it. */
export function isIn(place: string, at: string): boolean {
  return at === "/" || place === at || place.startsWith(`${at}/`);
}
