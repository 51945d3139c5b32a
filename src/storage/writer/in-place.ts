// Where an inode lies now, for commands that change what hangs on it.
import { type InodeId, rootNumberOf } from "#storage/contract/inode.ts";
import { holdToPath } from "#storage/metadata/followed-path.ts";
import type { InodeRows } from "#storage/metadata/inode-rows.ts";
import { type Ledger, noLongerThere, type RootState } from "#storage/metadata/unit-of-work.ts";

/** Directories above an inode of the root's tree, none for its top. Throws NO_SUCH_PATH for one that has gone. */
export function directoriesAbove(
  { ledger, inodes }: { readonly ledger: Ledger; readonly inodes: InodeRows },
  root: RootState,
  { inodeId, at }: { readonly inodeId: InodeId; readonly at?: string | undefined },
): ReadonlySet<InodeId> {
  if (inodeId === root.directoryId) return new Set();
  const row = rootNumberOf(inodeId) === root.number ? inodes.byId(inodeId) : undefined;
  if (row === undefined || row.parentId === null) throw noLongerThere();
  const chain = ledger.chain(root, row.parentId);
  holdToPath(at, chain, row.name);
  return new Set(chain.map(({ id }) => id));
}
