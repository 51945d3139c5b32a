// Checks that a group writes only to roots under whose epochs it is committed.
import { ROOT_STRIDE } from "#storage/contract/inode.ts";
import type { HeldRoot } from "./commit-client.ts";
import type { TableEffects } from "./table-rows.ts";

/**
 * The column with a root's number, or with an id that begins with it. The other tables' rows tell no root.
 */
export const ROOT_COLUMNS: Readonly<Record<string, readonly [column: string, unit: number]>> = {
  root: ["number", 1],
  inode: ["id", ROOT_STRIDE],
  inline_content: ["inode_id", ROOT_STRIDE],
  file_chunk: ["content_id", ROOT_STRIDE],
  staging: ["content_id", ROOT_STRIDE],
  copying: ["inode_id", ROOT_STRIDE],
  share_grant: ["inode_id", ROOT_STRIDE],
  trash: ["root_number", 1],
  trash_grant: ["root_number", 1],
  upload: ["content_id", ROOT_STRIDE],
  property: ["inode_id", ROOT_STRIDE],
  lock: ["root_number", 1],
  link: ["root_number", 1],
};

/** Throws when a row belongs to another root: its holder would find it changed behind its back. */
export function requireOwnRoots(effects: readonly TableEffects[], held: readonly HeldRoot[]): void {
  const numbers = new Set(held.map(({ number }) => number));
  if (numbers.size === 0) throw new Error("a group changes rows under no root");
  for (const { table, gone, fresh = [], rows } of effects) {
    const [column, unit] = ROOT_COLUMNS[table] ?? [];
    if (column === undefined || unit === undefined) continue;
    for (const row of [...gone, ...fresh, ...rows]) {
      const value = (row as Record<string, unknown>)[column];
      // The key of a lock or link that has ended names no root: only its holder has seen it.
      if (value === undefined) continue;
      const number = Math.floor(Number(value) / unit);
      if (!numbers.has(number)) throw new Error(`a group changes ${table} of a root that it does not hold`);
    }
  }
}
