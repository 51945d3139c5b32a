// Computes the levels below each directory when an older data directory is upgraded.
import type { DatabaseSync } from "node:sqlite";

/** Fills the column `height` of all directories, from the leaves up. */
export function fillHeights(db: DatabaseSync): void {
  const { count } = db.prepare("SELECT count(*) AS count FROM inode WHERE kind = 1").get() as {
    count: number;
  };
  const ids = new Float64Array(count);
  const parentIds = new Float64Array(count);
  const heights = new Uint32Array(count);
  const rows = db.prepare(
    "SELECT id, coalesce(parent_id, 0) AS parentId, child_count > 0 AS height FROM inode WHERE kind = 1 ORDER BY id",
  );
  let at = 0;
  for (const row of rows.iterate() as Iterable<{ id: number; parentId: number; height: number }>) {
    ids[at] = row.id;
    parentIds[at] = row.parentId;
    heights[at] = row.height;
    at++;
  }
  raiseFromLeaves(ids, parentIds, heights);
  const update = db.prepare("UPDATE inode SET height = ? WHERE id = ?");
  for (const [index, height] of heights.entries()) if (height > 0) update.run(height, ids[index] ?? 0);
}

/**
 * Uses arrays of numbers, since a data directory may hold millions of directories. Circles in a damaged one
 * stay.
 */
function raiseFromLeaves(ids: Float64Array, parentIds: Float64Array, heights: Uint32Array): void {
  const parents = Int32Array.from(parentIds, (id) => indexOf(ids, id));
  const waitsFor = new Uint32Array(ids.length);
  for (const parent of parents) if (parent >= 0) waitsFor[parent] = (waitsFor[parent] ?? 0) + 1;
  const ready = new Uint32Array(ids.length);
  let readyCount = 0;
  for (const [index, children] of waitsFor.entries()) if (children === 0) ready[readyCount++] = index;
  for (let done = 0; done < readyCount; done++) {
    const index = ready[done] ?? 0;
    const parent = parents[index] ?? -1;
    if (parent < 0) continue;
    heights[parent] = Math.max(heights[parent] ?? 0, (heights[index] ?? 0) + 1);
    const left = (waitsFor[parent] ?? 0) - 1;
    waitsFor[parent] = left;
    if (left === 0) ready[readyCount++] = parent;
  }
}

/** Index of a number in an ascending list, or -1. */
function indexOf(ascending: Float64Array, wanted: number): number {
  let from = 0;
  let to = ascending.length;
  while (from < to) {
    const middle = (from + to) >>> 1;
    if ((ascending[middle] ?? 0) < wanted) from = middle + 1;
    else to = middle;
  }
  return ascending[from] === wanted ? from : -1;
}
