// Recounts the tree of inodes: sizes and counts of every directory, usage of every root, counters of the data directory.
import type { DatabaseSync } from "node:sqlite";
import { INLINE_FILE_MAX_BYTES } from "#base/limits.ts";
import { checkGrants } from "./check-grants.ts";
import type { Findings } from "./check-report.ts";
import { checkTrash } from "./check-trash.ts";
import { describeInode } from "./check-tree-path.ts";
import { ROOT_STRIDE } from "./ledger.ts";
import { KIND_DIRECTORY, KIND_FILE } from "./schema.ts";

/** Compares, and with `repair` corrects, every number that is kept about the tree. Needs a transaction to be open when it repairs. */
export function checkTree(db: DatabaseSync, findings: Findings, repair: boolean): void {
  checkStructure(db, findings);
  checkGrants(db, findings, repair);
  checkTrash(db, findings, repair);
  checkDirectories(db, findings, repair);
  checkRoots(db, findings, repair);
  checkCounters(db, findings, repair);
}

function checkStructure(db: DatabaseSync, findings: Findings): void {
  const rules: readonly (readonly [string, string])[] = [
    [
      `SELECT child.id FROM inode child JOIN inode parent ON parent.id = child.parent_id WHERE parent.kind <> ${KIND_DIRECTORY}`,
      "lies in a file",
    ],
    [
      `SELECT id FROM inode WHERE parent_id IS NULL AND id NOT IN (SELECT directory_id FROM root)
       AND id NOT IN (SELECT inode_id FROM purging WHERE inode_id IS NOT NULL) AND id NOT IN (SELECT inode_id FROM trash)
       AND id NOT IN (SELECT inode_id FROM copying)`,
      "is detached, and nothing is going to remove it",
    ],
    [
      `SELECT child.id FROM inode child JOIN inode parent ON parent.id = child.parent_id
       WHERE child.id / ${ROOT_STRIDE} <> parent.id / ${ROOT_STRIDE}`,
      "lies below another user's root",
    ],
    [
      `SELECT id FROM inode WHERE kind = ${KIND_FILE} AND size > ${INLINE_FILE_MAX_BYTES} AND content_id IS NULL`,
      "has no list of chunks",
    ],
    [
      `SELECT id FROM inode WHERE (kind = ${KIND_DIRECTORY} OR size <= ${INLINE_FILE_MAX_BYTES}) AND content_id IS NOT NULL`,
      "has a list of chunks that it should not have",
    ],
    [
      `SELECT inode.id FROM inode LEFT JOIN inline_content ON inline_content.inode_id = inode.id
       WHERE kind = ${KIND_FILE} AND size BETWEEN 1 AND ${INLINE_FILE_MAX_BYTES} AND length(data) IS NOT size`,
      "has stored bytes of another length than its size",
    ],
    [
      `SELECT inode.id FROM inline_content JOIN inode ON inode.id = inline_content.inode_id
       WHERE kind <> ${KIND_FILE} OR size = 0 OR size > ${INLINE_FILE_MAX_BYTES}`,
      "has inline bytes that it should not have",
    ],
  ];
  for (const [sql, text] of rules) {
    for (const { id } of db.prepare(sql).iterate() as Iterable<{ id: number }>) {
      findings.difference(`${describeInode(db, id)} (inode ${id}) ${text}`);
    }
  }
  const { count: all } = db.prepare("SELECT count(*) AS count FROM inode").get() as { count: number };
  const reachable = countBelow(
    db,
    `SELECT directory_id FROM root UNION ALL SELECT inode_id FROM purging WHERE inode_id IS NOT NULL
     UNION ALL SELECT inode_id FROM trash UNION ALL SELECT inode_id FROM copying`,
  );
  if (reachable < all) findings.difference(`${all - reachable} inodes hang in no tree`);
}

function countBelow(db: DatabaseSync, starts: string): number {
  const sql = `WITH RECURSIVE below (id) AS (${starts} UNION ALL SELECT inode.id FROM inode JOIN below ON inode.parent_id = below.id)
    SELECT count(*) AS count FROM below`;
  return (db.prepare(sql).get() as { count: number }).count;
}

interface Sums {
  size: number;
  childCount: number;
  treeInodes: number;
  treeFiles: number;
}

/** Every directory must be the sum of its own entries; then all are right up to the root. */
function checkDirectories(db: DatabaseSync, findings: Findings, repair: boolean): void {
  const wrong = db
    .prepare(
      `SELECT directory.id, directory.size, child_count AS childCount, tree_inodes AS treeInodes, tree_files AS treeFiles,
         coalesce(sums.size, 0) AS sumSize, coalesce(sums.children, 0) AS sumChildren,
         coalesce(sums.inodes, 0) AS sumInodes, coalesce(sums.files, 0) AS sumFiles
       FROM inode directory LEFT JOIN (
         SELECT parent_id, sum(size) AS size, count(*) AS children, sum(1 + tree_inodes) AS inodes,
           sum(CASE kind WHEN ${KIND_FILE} THEN 1 ELSE tree_files END) AS files
         FROM inode WHERE parent_id IS NOT NULL GROUP BY parent_id
       ) sums ON sums.parent_id = directory.id
       WHERE kind = ${KIND_DIRECTORY} AND directory.id NOT IN (SELECT inode_id FROM purging WHERE inode_id IS NOT NULL)
         AND (directory.size, child_count, tree_inodes, tree_files) IS NOT
           (coalesce(sums.size, 0), coalesce(sums.children, 0), coalesce(sums.inodes, 0), coalesce(sums.files, 0))`,
    )
    .all() as unknown as (Sums & {
    id: number;
    sumSize: number;
    sumChildren: number;
    sumInodes: number;
    sumFiles: number;
  })[];
  for (const row of wrong) {
    const said = `${row.size} bytes, ${row.childCount} entries, ${row.treeInodes} inodes, ${row.treeFiles} files`;
    const is = `${row.sumSize}, ${row.sumChildren}, ${row.sumInodes}, ${row.sumFiles}`;
    findings.difference(`${describeInode(db, row.id)}: says ${said}; its entries sum up to ${is}`, repair);
  }
  if (wrong.length > 0 && repair) recountDirectories(db);
}

/** Recounts all directories from their leaves up. */
function recountDirectories(db: DatabaseSync): void {
  const sums = new Map<number, Sums>();
  const parents = new Map<number, number | null>();
  const directories = db
    .prepare(`SELECT id, parent_id AS parentId FROM inode WHERE kind = ${KIND_DIRECTORY}`)
    .all() as {
    id: number;
    parentId: number | null;
  }[];
  const waitingFor = new Map<number, number>();
  for (const { id, parentId } of directories) {
    sums.set(id, { size: 0, childCount: 0, treeInodes: 0, treeFiles: 0 });
    parents.set(id, parentId);
    if (parentId !== null) waitingFor.set(parentId, (waitingFor.get(parentId) ?? 0) + 1);
  }
  const files = db.prepare(
    `SELECT parent_id AS parentId, sum(size) AS size, count(*) AS count FROM inode WHERE kind = ${KIND_FILE} GROUP BY parent_id`,
  );
  for (const row of files.iterate() as Iterable<{ parentId: number; size: number; count: number }>) {
    const sum = sums.get(row.parentId);
    if (sum !== undefined)
      add(sum, { size: row.size, entries: row.count, inodes: row.count, files: row.count });
  }
  const ready = directories.filter(({ id }) => !waitingFor.has(id)).map(({ id }) => id);
  const update = db.prepare(
    "UPDATE inode SET size = ?, child_count = ?, tree_inodes = ?, tree_files = ? WHERE id = ?",
  );
  for (let id = ready.pop(); id !== undefined; id = ready.pop()) {
    const own = sums.get(id);
    const parentId = parents.get(id) ?? null;
    if (own === undefined) continue;
    update.run(own.size, own.childCount, own.treeInodes, own.treeFiles, id);
    const above = parentId === null ? undefined : sums.get(parentId);
    if (above === undefined || parentId === null) continue;
    add(above, { size: own.size, entries: 1, inodes: 1 + own.treeInodes, files: own.treeFiles });
    const left = (waitingFor.get(parentId) ?? 1) - 1;
    waitingFor.set(parentId, left);
    if (left === 0) ready.push(parentId);
  }
}

function add(sum: Sums, part: { size: number; entries: number; inodes: number; files: number }): void {
  sum.size += part.size;
  sum.childCount += part.entries;
  sum.treeInodes += part.inodes;
  sum.treeFiles += part.files;
}

/** Bytes in the trash of the root in whose row this stands. */
const TRASH_OF_ROOT = `(SELECT coalesce(sum(trashed.size), 0) FROM trash JOIN inode trashed ON trashed.id = trash.inode_id
  WHERE trash.root_number = root.number)`;

function checkRoots(db: DatabaseSync, findings: Findings, repair: boolean): void {
  const rows = db
    .prepare(
      `SELECT number, owner, live_bytes AS liveBytes, trash_bytes AS trashBytes, staging_bytes AS stagingBytes,
         file_count AS fileCount, ${TRASH_OF_ROOT} AS trashed, grant_count AS grantCount, next_id AS nextId, inode.size, inode.tree_files AS treeFiles,
         (SELECT coalesce(sum(staged_bytes), 0) FROM upload WHERE root_number = number) AS staged,
         (SELECT count(*) FROM share_grant WHERE inode_id / ${ROOT_STRIDE} = number) AS grants,
         (SELECT coalesce(max(id), 0) FROM inode WHERE id BETWEEN number * ${ROOT_STRIDE} AND number * ${ROOT_STRIDE} + ${ROOT_STRIDE - 1})
           % ${ROOT_STRIDE} AS lastId
       FROM root LEFT JOIN inode ON inode.id = directory_id`,
    )
    .all() as Record<string, number | null>[];
  const update = db.prepare(
    "UPDATE root SET live_bytes = ?, trash_bytes = ?, staging_bytes = ?, file_count = ?, grant_count = ?, next_id = ? WHERE number = ?",
  );
  for (const row of rows) {
    const owner = String(row["owner"]);
    const { size, treeFiles, trashed, grants, lastId, number, staged } = row;
    if (
      size == null ||
      trashed == null ||
      treeFiles == null ||
      grants == null ||
      lastId == null ||
      number == null ||
      staged == null
    ) {
      findings.difference(`the root of ${owner} has no directory`);
      continue;
    }
    const nextId = Math.max(Number(row["nextId"]), lastId + 1);
    const facts: readonly (readonly [string, unknown, number])[] = [
      ["live bytes", row["liveBytes"], size],
      ["bytes in the trash", row["trashBytes"], trashed],
      ["bytes in staging", row["stagingBytes"], staged],
      ["files", row["fileCount"], treeFiles],
      ["grants", row["grantCount"], grants],
      ["next id", row["nextId"], nextId],
    ];
    const wrong = facts.filter(([, said, is]) => said !== is);
    if (wrong.length > 0 && repair) update.run(size, trashed, staged, treeFiles, grants, nextId, number);
    for (const [what, said, is] of wrong) {
      findings.difference(`the root of ${owner} says ${String(said)} ${what}; it is ${is}`, repair);
    }
  }
}

function checkCounters(db: DatabaseSync, findings: Findings, repair: boolean): void {
  const inodes = countBelow(db, "SELECT directory_id FROM root");
  const { count: chunks } = db.prepare("SELECT count(*) AS count FROM chunk WHERE refs > 0").get() as {
    count: number;
  };
  const { sum: trashBytes } = db
    .prepare(`SELECT coalesce(sum(${TRASH_OF_ROOT}), 0) AS sum FROM root`)
    .get() as { sum: number };
  const select = db.prepare("SELECT value FROM counter WHERE name = ?");
  const update = db.prepare(
    "INSERT INTO counter (name, value) VALUES (?, ?) ON CONFLICT (name) DO UPDATE SET value = excluded.value",
  );
  for (const [name, is] of [
    ["inodes", inodes],
    ["chunks", chunks],
    ["trash_bytes", trashBytes],
  ] as const) {
    const said = (select.get(name) as { value: number } | undefined)?.value ?? 0;
    if (said === is) continue;
    if (repair) update.run(name, is);
    findings.difference(`the counter of ${name} says ${said}; there are ${is}`, repair);
  }
}
