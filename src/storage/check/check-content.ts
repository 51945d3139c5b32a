// Compares chunk lists, chunk rows and chunk files, and on request every stored byte with its checksum.

import { existsSync, mkdirSync, readdirSync, renameSync } from "node:fs";
import { join } from "node:path";
import type { DatabaseSync, StatementSync } from "node:sqlite";
import { systemClock } from "#base/clock.ts";
import { CHUNK_BYTES } from "#base/limits.ts";
import { crc32 } from "#os/crc32.ts";
import { bytesProblem, checksumProblem, lengthProblem } from "#storage/chunks/chunk-check.ts";
import {
  CHUNK_DIRECTORIES,
  CHUNKS_DIRECTORY,
  chunkPath,
  directoryOfChunk,
  isChunkName,
} from "#storage/chunks/chunk-names.ts";
import { ListChecksum, type ListedChunk } from "#storage/chunks/list-checksum.ts";
import { syncDirectoryNow } from "#storage/metadata/data-directory.ts";
import { FLAG_DAMAGED, KIND_FILE } from "#storage/metadata/schema.ts";
import type { Findings } from "./check-report.ts";
import { describeInode } from "./check-tree-path.ts";
import { checkUploads } from "./check-uploads.ts";

/** Where files are put aside. Where a disk is mounted at the data folder the first is the disk's own, and root's. */
const LOST_AND_FOUND: readonly string[] = ["lost+found", "lost+found-grove"];
const NOT_OURS: readonly (string | undefined)[] = ["EACCES", "EPERM"];
const SLICE_ROWS = 1_000;

/** Input of a content check. A repair needs an open transaction. */
export interface ContentCheck {
  readonly db: DatabaseSync;
  /** Holds the chunk files; undefined where chunks lie elsewhere, and their rows alone are checked. */
  readonly directory: string | undefined;
  readonly findings: Findings;
  readonly repair: boolean;
  readonly deep: boolean;
}

/** Damage that a check found: inodes with damaged bytes, and chunks. */
interface Damage {
  readonly inodes: Set<number>;
  readonly chunks: Set<number>;
}

interface ChunkRow {
  readonly id: number;
  readonly name: string;
  readonly length: number;
  readonly crc32: number;
  readonly blockCrcs: Uint8Array;
  readonly refs: number;
  readonly uses: number;
  readonly isGarbage: number;
}

/** Checks all content; returns the number of bytes verified against their checksums. */
export function checkContent(check: ContentCheck): number {
  const damage: Damage = { inodes: new Set(), chunks: new Set() };
  checkLists(check);
  let verifiedBytes = checkChunks(check, damage);
  if (check.directory !== undefined) checkOrphanFiles(check, check.directory);
  checkFileChecksums(check, damage);
  checkUploads(check.db, check.findings, check.repair);
  verifiedBytes += checkInline(check, damage);
  checkMarks(check, damage);
  return verifiedBytes;
}

/** Every list belongs to one file, upload or purge, and no chunk lies behind its file's end. */
function checkLists({ db, findings }: ContentCheck): void {
  const orphans = db.prepare(
    `SELECT DISTINCT content_id AS id FROM file_chunk
     WHERE content_id NOT IN (SELECT content_id FROM inode WHERE content_id IS NOT NULL UNION ALL SELECT content_id FROM staging
       UNION ALL SELECT content_id FROM upload UNION ALL SELECT content_id FROM purging WHERE content_id IS NOT NULL)`,
  );
  for (const { id } of orphans.all() as { id: number }[])
    findings.difference(`chunk list ${id} belongs to nothing`);
  const shared = db.prepare(
    "SELECT content_id AS id FROM inode WHERE content_id IS NOT NULL GROUP BY content_id HAVING count(*) > 1",
  );
  for (const { id } of shared.all() as { id: number }[])
    findings.difference(`chunk list ${id} belongs to two files`);
  const tooLong = db.prepare(
    `SELECT DISTINCT inode.id FROM inode JOIN file_chunk USING (content_id) JOIN chunk ON chunk.id = chunk_id
     WHERE position < 0 OR length > ${CHUNK_BYTES} OR position * ${CHUNK_BYTES} + length > size`,
  );
  for (const { id } of tooLong.all() as { id: number }[]) {
    findings.difference(`${describeInode(db, id)}: its chunks reach behind its end`);
  }
}

/** Reads in slices: repairs happen in between, and a node may hold millions. */
function* inSlices(rows: StatementSync): Generator<ChunkRow> {
  for (let after = -1; ; ) {
    const slice = rows.all(after) as unknown as ChunkRow[];
    yield* slice;
    if (slice.length < SLICE_ROWS) return;
    after = slice.at(-1)?.id ?? after;
  }
}

function checkChunks(check: ContentCheck, damage: Damage): number {
  const { db, findings, repair } = check;
  const rows = db.prepare(
    `SELECT id, name, length, crc32, block_crcs AS blockCrcs, refs,
       (SELECT count(*) FROM file_chunk WHERE chunk_id = chunk.id) AS uses,
       EXISTS (SELECT 1 FROM garbage WHERE chunk_id = chunk.id) AS isGarbage
     FROM chunk WHERE id > ? ORDER BY id LIMIT ${SLICE_ROWS}`,
  );
  const setRefs = db.prepare("UPDATE chunk SET refs = ? WHERE id = ?");
  const keep = db.prepare("DELETE FROM garbage WHERE chunk_id = ?");
  const drop = db.prepare("DELETE FROM chunk WHERE id = ?");
  const markChunk = db.prepare(
    "INSERT INTO damaged_chunk (chunk_id, found_at_ms, problem) VALUES (?, ?, ?) ON CONFLICT (chunk_id) DO NOTHING",
  );
  let verifiedBytes = 0;
  for (const chunk of inSlices(rows)) {
    if (chunk.refs !== chunk.uses) {
      if (repair) setRefs.run(chunk.uses, chunk.id);
      findings.difference(`chunk ${chunk.name} says ${chunk.refs} uses; there are ${chunk.uses}`, repair);
    }
    if (chunk.uses > 0 && chunk.isGarbage === 1) {
      if (repair) keep.run(chunk.id);
      findings.difference(`chunk ${chunk.name} is in use and marked for removal`, repair);
    }
    if (chunk.uses === 0 && chunk.isGarbage === 0) {
      if (repair) {
        setAside(check, chunk.name);
        drop.run(chunk.id);
      }
      findings.difference(`chunk ${chunk.name} is used by no file`, repair);
    }
    if (chunk.uses === 0) continue;
    const problem = chunkProblem(check, chunk);
    if (problem === undefined) {
      if (check.deep) verifiedBytes += chunk.length;
      continue;
    }
    const files = db.prepare(
      "SELECT DISTINCT inode.id, flags FROM inode JOIN file_chunk USING (content_id) WHERE chunk_id = ?",
    );
    damage.chunks.add(chunk.id);
    if (repair) markChunk.run(chunk.id, systemClock.wallMs(), problem);
    for (const { id, flags } of files.all(chunk.id) as { id: number; flags: number }[]) {
      markDamaged(check, damage, { id, flags });
      findings.difference(`${describeInode(db, id)}: chunk ${chunk.name} ${problem}`);
    }
  }
  return verifiedBytes;
}

/** Says what is wrong with a chunk's file or checksums. */
function chunkProblem({ directory, deep }: ContentCheck, chunk: ChunkRow): string | undefined {
  const own = checksumProblem(chunk);
  if (directory === undefined) return own;
  const path = chunkPath(directory, chunk.name);
  const problem = own ?? lengthProblem(path, chunk.length);
  return problem ?? (deep ? bytesProblem(path, chunk) : undefined);
}

/** Files without rows: remains of a crash in directories that the next start sweeps, or stray files. */
function checkOrphanFiles(check: ContentCheck, directory: string): void {
  const { db, findings, repair } = check;
  const open = new Set(
    (db.prepare("SELECT name FROM open_directory").all() as { name: string }[]).map(({ name }) => name),
  );
  const known = db.prepare("SELECT 1 FROM chunk WHERE name = ?");
  let leftovers = 0;
  const chunks = join(directory, CHUNKS_DIRECTORY);
  for (const entry of readdirSync(chunks, { withFileTypes: true })) {
    if (!CHUNK_DIRECTORIES.includes(entry.name)) {
      findings.difference(`${join(chunks, entry.name)} does not belong there`);
      continue;
    }
    for (const name of readdirSync(join(chunks, entry.name))) {
      const isOurs = isChunkName(name) && directoryOfChunk(name) === entry.name;
      if (isOurs && known.get(name) !== undefined) continue;
      if (isOurs && open.has(entry.name)) {
        leftovers++;
        continue;
      }
      if (repair) setAside(check, join(entry.name, name));
      findings.difference(`${join(chunks, entry.name, name)} belongs to no file`, repair);
    }
  }
  if (leftovers > 0)
    findings.note(`${leftovers} chunk files of interrupted uploads; the next start removes them`);
}

/** The checksum of each large file must follow from those of its chunks and holes, all of which lie within it. */
function checkFileChecksums(check: ContentCheck, damage: Damage): void {
  const { db, findings } = check;
  const files = db.prepare(
    `SELECT id, size, crc32, flags, content_id AS contentId FROM inode WHERE kind = ${KIND_FILE} AND content_id IS NOT NULL`,
  );
  const positions = db.prepare(
    "SELECT position, length, crc32 FROM file_chunk JOIN chunk ON chunk.id = chunk_id WHERE content_id = ? ORDER BY position",
  );
  const damaged: { id: number; flags: number }[] = [];
  for (const file of files.iterate() as Iterable<{
    id: number;
    size: number;
    crc32: number;
    flags: number;
    contentId: number;
  }>) {
    const list = new ListChecksum();
    for (const chunk of positions.iterate(file.contentId) as Iterable<unknown> as Iterable<ListedChunk>) {
      list.add(chunk);
    }
    const isInside = list.endBytes <= file.size;
    if (isInside && list.crcOf(file.size) === file.crc32) continue;
    damaged.push(file);
    // What reaches behind the end has been told of.
    if (isInside)
      findings.difference(`${describeInode(db, file.id)}: its checksum is not that of its chunks`);
  }
  for (const file of damaged) markDamaged(check, damage, file);
}

/** The bytes of small files. Those of another length than the file are told of with the tree. */
function checkInline(check: ContentCheck, damage: Damage): number {
  const { db, findings, deep } = check;
  const rows = db.prepare(
    `SELECT id, size, crc32, flags, length(data) AS length, ${deep ? "data" : "x'' AS data"}
     FROM inode LEFT JOIN inline_content ON inode_id = inode.id
     WHERE kind = ${KIND_FILE} AND content_id IS NULL AND size > 0`,
  );
  let verifiedBytes = 0;
  const damaged: { id: number; size: number; flags: number; length: number | null }[] = [];
  for (const row of rows.iterate() as Iterable<{
    id: number;
    size: number;
    crc32: number;
    flags: number;
    length: number | null;
    data: Uint8Array;
  }>) {
    if (row.length !== row.size || (deep && crc32(row.data) !== row.crc32)) damaged.push(row);
    else if (deep) verifiedBytes += row.size;
  }
  for (const { id, size, flags, length } of damaged) {
    markDamaged(check, damage, { id, flags });
    if (length === size) findings.difference(`${describeInode(db, id)}: its bytes do not match its checksum`);
  }
  return verifiedBytes;
}

/**
 * Compares marks of damage with the findings. A deep check with repair clears the marks of intact content,
 * such as a chunk file that was put back from a backup.
 */
function checkMarks({ db, directory, findings, repair, deep }: ContentCheck, damage: Damage): void {
  const unmarked = db.prepare(
    `SELECT DISTINCT inode.id, flags FROM damaged_chunk JOIN file_chunk USING (chunk_id) JOIN inode USING (content_id)
     WHERE (flags & ${FLAG_DAMAGED}) = 0`,
  );
  const setFlags = db.prepare("UPDATE inode SET flags = ? WHERE id = ?");
  for (const { id, flags } of unmarked.all() as { id: number; flags: number }[]) {
    if (repair) setFlags.run(flags | FLAG_DAMAGED, id);
    findings.difference(
      `${describeInode(db, id)}: uses a damaged chunk and is not marked as damaged`,
      repair,
    );
  }
  const marked = db.prepare(`SELECT id, flags FROM inode WHERE (flags & ${FLAG_DAMAGED}) <> 0`);
  const files = marked.all() as { id: number; flags: number }[];
  if (!deep) {
    if (files.length > 0)
      findings.note(`${files.length} files are marked as damaged; -deep says what is wrong with them`);
    return;
  }
  const isOfDamagedChunk = db.prepare(
    "SELECT 1 FROM inode JOIN file_chunk USING (content_id) JOIN damaged_chunk USING (chunk_id) WHERE inode.id = ?",
  );
  for (const { id, flags } of files) {
    if (damage.inodes.has(id)) continue;
    // Without chunk files the marks of chunks are all that tells.
    if (directory === undefined && isOfDamagedChunk.get(id) !== undefined) continue;
    if (repair) setFlags.run(flags & ~FLAG_DAMAGED, id);
    findings.difference(
      `${describeInode(db, id)}: is marked as damaged, and all its bytes are right`,
      repair,
    );
  }
  const unmark = db.prepare("DELETE FROM damaged_chunk WHERE chunk_id = ?");
  for (const { id } of db.prepare("SELECT chunk_id AS id FROM damaged_chunk").all() as { id: number }[]) {
    if (repair && !damage.chunks.has(id)) unmark.run(id);
  }
}

function markDamaged(
  { db, repair }: ContentCheck,
  damage: Damage,
  { id, flags }: { readonly id: number; readonly flags: number },
): void {
  damage.inodes.add(id);
  if (repair) db.prepare("UPDATE inode SET flags = ? WHERE id = ?").run(flags | FLAG_DAMAGED, id);
}

/** Moves a file out of chunks/ and keeps it: a check never destroys bytes that may be a user's. */
function setAside({ directory }: ContentCheck, name: string): void {
  if (directory === undefined) return;
  const path = isChunkName(name) ? chunkPath(directory, name) : join(directory, CHUNKS_DIRECTORY, name);
  if (!existsSync(path)) return;
  for (const folder of LOST_AND_FOUND) {
    try {
      moveInto(join(directory, folder), path, name.replaceAll("/", "-"));
      return;
    } catch (error) {
      const isOthers = NOT_OURS.includes((error as NodeJS.ErrnoException).code);
      if (!isOthers || folder === LOST_AND_FOUND.at(-1)) throw error;
    }
  }
}

/** Moves a file into a folder, under the first free name. */
function moveInto(target: string, path: string, name: string): void {
  mkdirSync(target, { recursive: true, mode: 0o700 });
  const kept = join(target, name);
  let free = kept;
  for (let number = 2; existsSync(free); number++) free = `${kept}-${number}`;
  renameSync(path, free);
  syncDirectoryNow(target);
}
