// What a credential may do at most: read or write, everywhere in a root or below one folder.

/** Bounds of a credential; rights of its person are decided apart, so that a scope only takes away. */
export interface Scope {
  readonly access: "read" | "write";
  /** Id of the inode below which it holds, wherever that lies now; undefined for the whole root. */
  readonly folderId: string | undefined;
  /** Wall time until which it may share too, in unix milliseconds: a browser's after a sign-in. Undefined for never. */
  readonly sharesUntilMs?: number | undefined;
}

/** The scope of who has signed in: everything that the person may. */
export const WHOLE_SCOPE: Scope = { access: "write", folderId: undefined };

/** True for a scope that allows no more than another. */
export function isWithinScope(inner: Scope, outer: Scope): boolean {
  const accessFits = outer.access === "write" || inner.access === "read";
  return accessFits && (outer.folderId === undefined || inner.folderId === outer.folderId);
}
