// The name of an entry that comes to where something may be, and what it replaces there.
import type { InodeId, TreeConflictRule } from "#storage/contract/inode.ts";
import { freeName } from "#storage/metadata/free-name.ts";
import type { InodeRow, InodeRows } from "#storage/metadata/inode-rows.ts";
import type { PlacedGrant } from "#storage/metadata/share-rows.ts";
import { pathExists } from "./entry-words.ts";

/** What another entry has taken the place of. */
export interface Replaced {
  readonly freedBytes: number;
  /** Exclusions that it had, which hold for what is there now. */
  readonly excluded: readonly PlacedGrant[];
}

/** The name that an entry gets. */
export interface Room extends Replaced {
  readonly name: string;
}

/** A free name in a directory, the wanted one where it may replace what has it. Throws PATH_EXISTS. */
export function makeRoom(
  inodes: InodeRows,
  wanted: {
    readonly parentId: InodeId;
    readonly name: string;
    readonly onConflict: TreeConflictRule;
  },
  replace: (target: InodeRow) => Replaced,
): Room {
  const { parentId, name, onConflict } = wanted;
  const target = inodes.byName(parentId, name);
  if (target === undefined) return { name, freedBytes: 0, excluded: [] };
  if (onConflict === "fail") throw pathExists();
  if (onConflict !== "rename") return { name, ...replace(target) };
  const isTaken = (candidate: string): boolean => inodes.byName(parentId, candidate) !== undefined;
  return { name: freeName(name, isTaken), freedBytes: 0, excluded: [] };
}
