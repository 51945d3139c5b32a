// Compares the trash with the tree: every item is in its owner's trash alone, and none is shared.
import type { DatabaseSync } from "node:sqlite";
import { ROOT_STRIDE } from "#storage/contract/inode.ts";
import type { Findings } from "./check-report.ts";

/** Checks the rows of the trash. A repair leaves an inode that is in both tree and trash to the tree. */
export function checkTrash(db: DatabaseSync, findings: Findings, repair: boolean): void {
  const tell = (sql: string, what: string): void => {
    for (const { id, path } of db.prepare(sql).all() as { id: string; path: string }[]) {
      findings.difference(`item ${id} of the trash (${path}) ${what}`, repair);
    }
  };
  const hanging = `SELECT trash.id, original_path AS path, root_number AS number FROM trash JOIN inode ON inode.id = inode_id
    WHERE parent_id IS NOT NULL OR inode_id IN (SELECT directory_id FROM root)
      OR inode_id IN (SELECT inode_id FROM purging WHERE inode_id IS NOT NULL)`;
  tell(hanging, "is in the tree as well, or on its way out");
  if (repair) {
    const rows = db.prepare(hanging).all() as { id: string; number: number }[];
    const forgetShares = db.prepare("DELETE FROM trash_grant WHERE root_number = ? AND trash_id = ?");
    const forget = db.prepare("DELETE FROM trash WHERE root_number = ? AND id = ?");
    for (const { id, number } of rows) {
      forgetShares.run(number, id);
      forget.run(number, id);
    }
  }
  for (const { id, path } of db
    .prepare(
      `SELECT id, original_path AS path FROM trash WHERE inode_id / ${ROOT_STRIDE} <> root_number OR original_path NOT LIKE '/%'`,
    )
    .all() as { id: string; path: string }[]) {
    findings.difference(`item ${id} of the trash (${path}) is in another user's trash, or its path is none`);
  }
  checkSharesInTrash(db, findings);
}

/**
 * Shares below an item would return with a restore, without the owner's consent. A repair has removed them
 * before, since they belong to no inode in a root.
 */
function checkSharesInTrash(db: DatabaseSync, findings: Findings): void {
  const { shares } = db.prepare("SELECT count(*) AS shares FROM share_grant").get() as { shares: number };
  if (shares === 0) return;
  const rows = db
    .prepare(
      `WITH RECURSIVE above (start, id) AS (
         SELECT DISTINCT inode_id, inode_id FROM share_grant
         UNION SELECT start, parent_id FROM above JOIN inode USING (id) WHERE parent_id IS NOT NULL
       ) SELECT DISTINCT start AS id FROM above JOIN trash ON trash.inode_id = above.id`,
    )
    .all() as { id: number }[];
  for (const { id } of rows) findings.difference(`inode ${id} lies in the trash and is shared`);
}
