// Compares grants and exclusions with their inodes: the mark, the owner, and the path.
import type { DatabaseSync } from "node:sqlite";
import { FLAG_HAS_GRANTS } from "#storage/metadata/schema.ts";
import type { Findings } from "./check-report.ts";
import { describeInode } from "./check-tree-path.ts";

interface GrantFacts {
  readonly inodeId: number;
  readonly username: string;
  readonly owner: string;
  readonly path: string;
  readonly excluded: number;
}

/** Owner and path that a grant should have; undefined when its inode lies in no root's tree. */
type Place = { readonly owner: string; readonly path: string } | undefined;

/**
 * Checks every grant and exclusion. `repair` corrects marks and paths, and removes rows on inodes outside of
 * every tree, which have no effect. It needs an open transaction.
 */
export function checkGrants(db: DatabaseSync, findings: Findings, repair: boolean): void {
  checkPlaces(db, findings, repair);
  const sql = `SELECT id, flags FROM inode
    WHERE ((flags & ${FLAG_HAS_GRANTS}) <> 0) <> EXISTS (SELECT 1 FROM share_grant WHERE inode_id = inode.id)`;
  const rows = db.prepare(sql).all() as { id: number; flags: number }[];
  const update = db.prepare("UPDATE inode SET flags = ? WHERE id = ?");
  for (const { id, flags } of rows) {
    if (repair) update.run(flags ^ FLAG_HAS_GRANTS, id);
    findings.difference(
      `${describeInode(db, id)}: the mark for shares does not tell whether there are any`,
      repair,
    );
  }
}

function checkPlaces(db: DatabaseSync, findings: Findings, repair: boolean): void {
  const grants = db
    .prepare(
      "SELECT inode_id AS inodeId, username, owner, path, excluded FROM share_grant ORDER BY inode_id, username",
    )
    .all() as unknown as GrantFacts[];
  const update = db.prepare("UPDATE share_grant SET owner = ?, path = ? WHERE inode_id = ? AND username = ?");
  const drop = db.prepare("DELETE FROM share_grant WHERE inode_id = ? AND username = ?");
  const bump = db.prepare("UPDATE root SET access_version = access_version + 1 WHERE owner = ?");
  const placeOf = placeFinder(db);
  for (const { inodeId, username, owner, path, excluded } of grants) {
    const place = placeOf(inodeId);
    const what = excluded === 0 ? "share" : "exclusion";
    const whose = excluded === 0 ? `with ${username}` : `of ${username}`;
    const from = excluded === 0 ? "of" : "from";
    if (place === undefined) {
      if (repair) drop.run(inodeId, username);
      findings.difference(
        `the ${what} ${from} ${describeInode(db, inodeId)} ${whose} is of nothing in a root`,
        repair,
      );
    } else if (place.owner !== owner || place.path !== path) {
      if (repair) update.run(place.owner, place.path, inodeId, username);
      findings.difference(
        `the ${what} ${from} ${place.owner}:${place.path} ${whose} says that it is ${from} ${owner}:${path}`,
        repair,
      );
    } else {
      if (username === owner) findings.difference(`${owner}:${path} is shared with its own owner`);
      continue;
    }
    // The MetaServer and connected clients receive the change.
    if (repair) bump.run(place?.owner ?? owner);
  }
}

function placeFinder(db: DatabaseSync): (inodeId: number) => Place {
  const select = db.prepare("SELECT parent_id AS parentId, name FROM inode WHERE id = ?");
  const root = db.prepare(
    // The shares of a root that has departed keep its owner's name.
    `SELECT coalesce((SELECT root_move.owner FROM root_move WHERE root_move.number = root.number AND state = 'departed'), owner)
       AS owner FROM root WHERE directory_id = ?`,
  );
  return (inodeId) => {
    const names: string[] = [];
    let id = inodeId;
    for (const seen = new Set<number>(); !seen.has(id); ) {
      seen.add(id);
      const row = select.get(id) as { parentId: number | null; name: string } | undefined;
      if (row === undefined) return undefined;
      if (row.parentId === null) {
        const found = root.get(id) as { owner: string } | undefined;
        return found === undefined ? undefined : { owner: found.owner, path: `/${names.join("/")}` };
      }
      names.unshift(row.name);
      id = row.parentId;
    }
    return undefined;
  };
}
