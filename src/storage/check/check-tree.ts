// Recounts the tree of inodes: sizes and counts of directories, usage of roots, counters of the data
// directory.
import type { DatabaseSync } from "node:sqlite";
import { INLINE_FILE_MAX_BYTES, NAME_MAX_BYTES } from "#base/limits.ts";
import { ROOT_STRIDE } from "#storage/contract/inode.ts";
import { RECOUNT_KEY } from "#storage/contract/recount-types.ts";
import { KIND_DIRECTORY, KIND_FILE } from "#storage/metadata/schema.ts";
import { counted, isOff, type Offsets, TreeCount, type TreeSums } from "#storage/metadata/tree-count.ts";
import { checkGrants } from "./check-grants.ts";
import { checkKept } from "./check-kept.ts";
import type { Findings } from "./check-report.ts";
import { checkTrash } from "./check-trash.ts";
import { describeInode } from "./check-tree-path.ts";

/** Compares, and with `repair` corrects, every counter of the tree. A repair needs an open transaction. */
export function checkTree(db: DatabaseSync, findings: Findings, repair: boolean): void {
  checkStructure(db, findings, repair);
  checkGrants(db, findings, repair);
  checkTrash(db, findings, repair);
  checkKept(db, findings, repair);
  const count = new TreeCount(db);
  const inodes = checkDirectories(db, count, findings, repair);
  const trashBytes = checkRoots(db, count, findings, repair);
  checkCounters(db, { count, offsets: { inodes, trashBytes } }, findings, repair);
  // The findings of a running node's recount are outdated now.
  if (repair) db.exec(`DELETE FROM meta WHERE key = '${RECOUNT_KEY}'`);
}

/** What has no parent, as a root's directory, has no name that a path shows. The rule is that of `nameProblem`. */
const HAS_BAD_NAME = `parent_id IS NOT NULL AND (name IN ('', '.', '..') OR instr(CAST(name AS BLOB), x'00') > 0
  OR length(CAST(name AS BLOB)) > ${NAME_MAX_BYTES}
  OR name GLOB '*[/' || char(1) || '-' || char(31, 127) || '-' || char(159, 65533) || ']*')`;

function checkStructure(db: DatabaseSync, findings: Findings, repair: boolean): void {
  const rules: readonly (readonly [sql: string, text: string, repair?: string])[] = [
    [
      `SELECT child.id FROM inode child JOIN inode parent ON parent.id = child.parent_id WHERE parent.kind <> ${KIND_DIRECTORY}`,
      "lies in a file",
    ],
    [
      `SELECT id FROM inode WHERE ${HAS_BAD_NAME}`,
      "has a name that no path can hold; a repair names it name-ID",
      `UPDATE OR IGNORE inode SET name = 'name-' || id WHERE ${HAS_BAD_NAME}`,
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
      `SELECT id FROM inode WHERE kind = ${KIND_FILE} AND height <> 0`,
      "is a file and has levels below it",
      `UPDATE inode SET height = 0 WHERE kind = ${KIND_FILE} AND height <> 0`,
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
  for (const [sql, text, correction] of rules) {
    const isRepaired = repair && correction !== undefined;
    for (const { id } of db.prepare(sql).iterate() as Iterable<{ id: number }>) {
      findings.difference(`${describeInode(db, id)} (inode ${id}) ${text}`, isRepaired);
    }
    if (isRepaired) db.exec(correction);
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

/**
 * Every directory must be the sum of its entries, and one higher than the highest; then all are right up to
 * the root. Returns the difference in inodes of the directories in sight.
 */
function checkDirectories(db: DatabaseSync, count: TreeCount, findings: Findings, repair: boolean): number {
  let inodesOff = 0;
  let isWrong = false;
  for (let after = -1; ; ) {
    const slice = count.slice(after, Number.MAX_SAFE_INTEGER);
    if (slice === undefined) break;
    for (const { id, said } of count.directories(after, slice.end)) {
      const is = counted(count.entriesOf(id));
      if (!isOff({ id, said, is })) continue;
      const where = count.whereabouts(id);
      if (where === "passing") continue;
      isWrong = true;
      if (where === "live") inodesOff += said.inodes - is.inodes;
      findings.difference(
        `${describeInode(db, id)}: says ${inWords(said)}; its entries sum up to ${Object.values(is).join(", ")}`,
        repair,
      );
    }
    after = slice.end;
  }
  if (!isWrong || !repair) return inodesOff;
  recountDirectories(db);
  return 0;
}

function inWords({ bytes, entries, inodes, files, height }: TreeSums): string {
  return `${bytes} bytes, ${entries} entries, ${inodes} inodes, ${files} files, ${height} levels`;
}

interface Sums {
  size: number;
  childCount: number;
  treeInodes: number;
  treeFiles: number;
  height: number;
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
    sums.set(id, { size: 0, childCount: 0, treeInodes: 0, treeFiles: 0, height: 0 });
    parents.set(id, parentId);
    if (parentId !== null) waitingFor.set(parentId, (waitingFor.get(parentId) ?? 0) + 1);
  }
  const files = db.prepare(
    `SELECT parent_id AS parentId, sum(size) AS size, count(*) AS count FROM inode WHERE kind = ${KIND_FILE} GROUP BY parent_id`,
  );
  for (const row of files.iterate() as Iterable<{ parentId: number; size: number; count: number }>) {
    const sum = sums.get(row.parentId);
    if (sum !== undefined)
      add(sum, { size: row.size, entries: row.count, inodes: row.count, files: row.count, height: 0 });
  }
  const ready = directories.filter(({ id }) => !waitingFor.has(id)).map(({ id }) => id);
  const update = db.prepare(
    "UPDATE inode SET size = ?, child_count = ?, tree_inodes = ?, tree_files = ?, height = ? WHERE id = ?",
  );
  for (let id = ready.pop(); id !== undefined; id = ready.pop()) {
    const own = sums.get(id);
    const parentId = parents.get(id) ?? null;
    if (own === undefined) continue;
    update.run(own.size, own.childCount, own.treeInodes, own.treeFiles, own.height, id);
    const above = parentId === null ? undefined : sums.get(parentId);
    if (above === undefined || parentId === null) continue;
    const { size, treeInodes, treeFiles: files, height } = own;
    add(above, { size, entries: 1, inodes: 1 + treeInodes, files, height });
    const left = (waitingFor.get(parentId) ?? 1) - 1;
    waitingFor.set(parentId, left);
    if (left === 0) ready.push(parentId);
  }
}

function add(
  sum: Sums,
  part: { size: number; entries: number; inodes: number; files: number; height: number },
): void {
  sum.size += part.size;
  sum.childCount += part.entries;
  sum.treeInodes += part.inodes;
  sum.treeFiles += part.files;
  sum.height = Math.max(sum.height, part.height + 1);
}

/** Returns the difference in bytes of the counters of trash. */
function checkRoots(db: DatabaseSync, count: TreeCount, findings: Findings, repair: boolean): number {
  let trashOff = 0;
  for (const { number } of db.prepare("SELECT number FROM root ORDER BY number").all() as {
    number: number;
  }[]) {
    const root = counted(count.root(number));
    if (root?.facts === undefined) {
      findings.difference(`the root of ${root?.owner ?? number} has no directory`);
      continue;
    }
    for (const { what, kind, column, said, is } of root.facts) {
      if (said === is) continue;
      if (repair) db.prepare(`UPDATE root SET ${column} = ? WHERE number = ?`).run(is, number);
      else if (kind === "trash") trashOff += said - is;
      findings.difference(`the root of ${root.owner} says ${said} ${what}; it is ${is}`, repair);
    }
  }
  return trashOff;
}

function checkCounters(
  db: DatabaseSync,
  { count, offsets }: { count: TreeCount; offsets: Offsets },
  findings: Findings,
  repair: boolean,
): void {
  const update = db.prepare(
    "INSERT INTO counter (name, value) VALUES (?, ?) ON CONFLICT (name) DO UPDATE SET value = excluded.value",
  );
  for (const { what, column, said, is } of counted(count.node(offsets))) {
    if (said === is) continue;
    if (repair) update.run(column, is);
    findings.difference(`the counter of ${what} says ${said}; there are ${is}`, repair);
  }
}
