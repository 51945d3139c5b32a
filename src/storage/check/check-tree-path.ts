// The path of an inode for the report of a check.
import type { DatabaseSync } from "node:sqlite";
import { rootNumberOf } from "#storage/contract/inode.ts";

/** Path of an inode as text: the owner's name and the names from the root down. */
export function describeInode(db: DatabaseSync, id: number): string {
  const select = db.prepare("SELECT parent_id AS parentId, name FROM inode WHERE id = ?");
  const names: string[] = [];
  let row = select.get(id) as { parentId: number | null; name: string } | undefined;
  for (let depth = 0; row !== undefined && row.parentId !== null && depth < 10_000; depth++) {
    names.unshift(row.name);
    row = select.get(row.parentId) as typeof row;
  }
  const root = db.prepare("SELECT owner FROM root WHERE number = ?").get(rootNumberOf(id)) as
    | { owner: string }
    | undefined;
  return `${root?.owner ?? "(no root)"}:/${names.join("/")}`;
}
