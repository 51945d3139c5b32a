// Who reaches what lies below a shared folder: of a user's grants and exclusions the deepest decides (spec 5.4).
import type { InodeId } from "#storage/contract/inode.ts";

/** A user's row on one inode: a grant, or with 1 an exclusion, which ends a grant above. */
export type ShareRow = [username: string, excluded: number];

/** Users whom the rows of inodes let in, in order of names. The inodes run from the root's directory down. */
export function usersLetIn(
  downwards: readonly InodeId[],
  rowsOf: (id: InodeId) => readonly ShareRow[],
): readonly string[] {
  if (downwards.length === 0) return [];
  const users = new Set<string>();
  for (const id of downwards) {
    for (const [username, excluded] of rowsOf(id)) {
      if (excluded === 0) users.add(username);
      else users.delete(username);
    }
  }
  return [...users].toSorted();
}

/** True when the first of a user's rows is a grant. The inodes run from the deepest directory up. */
export function isLetIn<T>(
  upwards: readonly T[],
  rowAt: (inode: T) => "grant" | "exclusion" | undefined,
): boolean {
  for (const inode of upwards) {
    const row = rowAt(inode);
    if (row !== undefined) return row === "grant";
  }
  return false;
}
