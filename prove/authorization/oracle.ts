// Who may do what, told a second time: from the specification's section 5.4 alone, with nothing of the server's code.

/** An entry of somebody's root. */
interface Entry {
  readonly isFolder: boolean;
  readonly content: string;
  readonly sharedWith: Set<string>;
}

/** What is asked of a place. */
export type Right = "read" | "write" | "delete";

/** Everybody's entries by absolute path, and the shares that hang at them. Whoever has no share learns nothing, not even of what is there. */
export class Oracle {
  readonly #roots = new Map<string, Map<string, Entry>>();

  add(owner: string, path: string, content?: string): void {
    const entries = this.#roots.get(owner) ?? new Map<string, Entry>();
    this.#roots.set(owner, entries);
    entries.set(path, { isFolder: content === undefined, content: content ?? "", sharedWith: new Set() });
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
    const holding = [...(this.#roots.get(owner) ?? [])].filter(([, { sharedWith }]) =>
      sharedWith.has(caller),
    );
    return holding.some(([at]) => isIn(path, at)) ? "ok" : "NOT_SHARED";
  }

  seesQuota(caller: string, owner: string, admin: string): boolean {
    const entries = [...(this.#roots.get(owner)?.values() ?? [])];
    return caller === owner || caller === admin || entries.some(({ sharedWith }) => sharedWith.has(caller));
  }

  share(owner: string, path: string, user: string): void {
    this.entry(owner, path)?.sharedWith.add(user);
  }

  /** Refused while a share above would go on letting the user in; ends those below as well. */
  unshare(owner: string, path: string, user: string): string {
    const entries = [...(this.#roots.get(owner) ?? [])];
    const isAbove = entries.some(
      ([at, { sharedWith }]) => at !== path && isIn(path, at) && sharedWith.has(user),
    );
    if (isAbove) return "SHARED_ABOVE";
    for (const [at, { sharedWith }] of entries) if (isIn(at, path)) sharedWith.delete(user);
    return "ok";
  }

  /** A move takes its shares along; what goes (to the trash as well) loses them. */
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
