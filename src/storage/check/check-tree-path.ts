// The path of an inode for the report of a check.
import type { DatabaseSync } from "node:sqlite";
import { rootNumberOf } from "#storage/contract/inode.ts";

/**
 * Path of an inode as text: the owner's name and the names from the root down. What lies in the trash has the path
 * that it came from, and says so; what lies in itself has each name once.
 */
export function describeInode(db: DatabaseSync, id: number): string {
  const select = db.prepare("SELECT parent_id AS parentId, name FROM inode WHERE id = ?");
  const item = db.prepare("SELECT original_path AS path FROM trash WHERE inode_id = ?");
  const names: string[] = [];
  const seen = new Set<number>();
  let top = id;
  let row = select.get(id) as { parentId: number | null; name: string } | undefined;
  while (row !== undefined && row.parentId !== null && !seen.has(top)) {
    seen.add(top);
    names.unshift(row.name);
    top = row.parentId;
    row = select.get(top) as typeof row;
  }
  const root = db.prepare("SELECT owner FROM root WHERE number = ?").get(rootNumberOf(id)) as
    | { owner: string }
    | undefined;
  const owner = root?.owner ?? "(no root)";
  const trashed = row === undefined ? undefined : (item.get(top) as { path: string } | undefined);
  if (trashed === undefined) return `${owner}:/${names.join("/")}`;
  return `${owner}:${[trashed.path, ...names].join("/")} (in the trash)`;
}
