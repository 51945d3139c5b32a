// Makes a data directory from a backup in an empty folder, with every file checked and a new identity.
import { existsSync, mkdirSync } from "node:fs";
import { dirname, join } from "node:path";
import type { DatabaseSync } from "node:sqlite";
import type { Clock } from "#base/clock.ts";
import { GroveError } from "#base/errors.ts";
import type { Random } from "#base/random.ts";
import { ulid } from "#base/ulid.ts";
import { writeFileAtomic } from "#os/atomic-file.ts";
import { BACKUPS_FOLDER, FILES_FOLDER, poolPath } from "#storage/chunks/backup-layout.ts";
import { CHUNK_DIRECTORIES, CHUNKS_DIRECTORY, chunkPath } from "#storage/chunks/chunk-names.ts";
import { IDENTITY_FILE, IDENTITY_SCHEMA, syncDirectoryNow } from "#storage/metadata/data-directory.ts";
import { journalRemovals } from "#storage/metadata/move-journal.ts";
import { closeWriter, DATABASE_FILE, FLAG_DAMAGED, migrate, openWriter } from "#storage/metadata/schema.ts";
import type { BackupProgress } from "./backup-create.ts";
import { chunkFileProblem, copyWhole } from "./backup-files.ts";
import {
  chosenBackup,
  namesIn,
  neededChunks,
  neededTotals,
  openBackupDatabase,
  requireApart,
  requireBackupFolder,
} from "./backup-folder.ts";
import { fileProblems, readManifest } from "./backup-manifest.ts";

/** Source and target of a restore. */
export interface RestoreOrder {
  readonly folder: string;
  /** Undefined for the newest. */
  readonly id: string | undefined;
  /** Must be missing or empty. */
  readonly target: string;
  readonly clock: Pick<Clock, "wallMs">;
  readonly random: Random;
  readonly progress: (done: BackupProgress) => void;
  /** Called when everything but the identity is in place: its writes belong to the restored folder. */
  readonly onFilled?: (from: { readonly backup: string; readonly takenAtMs: number }) => Promise<void>;
}

/** Result of a restore. */
export interface RestoreReport {
  readonly id: string;
  readonly takenAtMs: number;
  readonly dataId: string;
  readonly inodes: number;
  readonly chunks: number;
  readonly bytes: number;
  /** Chunks that are damaged or missing in the backup; the files that use them are marked. */
  readonly problems: readonly string[];
  /** Files marked as damaged in the restored directory. */
  readonly damagedFiles: number;
}

/**
 * Restores one backup. The identity comes last, so an interrupted restore cannot be served. It is new: while
 * the old directory exists, that one and not its copy serves its roots (D19). Throws BAD_ARGUMENT for a
 * folder that is not empty, NO_SUCH_PATH when there is no such backup, CORRUPT for a damaged database.
 */
export async function restoreBackup(order: RestoreOrder): Promise<RestoreReport> {
  const { folder, target } = order;
  requireBackupFolder(folder);
  requireApart(folder, target);
  const id = chosenBackup(folder, order.id);
  const manifest = readManifest(folder, id);
  const [problem] = fileProblems(folder, manifest);
  if (problem !== undefined) throw new GroveError("CORRUPT", `backup ${id}: ${problem}; restore another one`);
  if (existsSync(target) && namesIn(target).length > 0) {
    throw new GroveError("BAD_ARGUMENT", `${target} is not empty; name a folder that is missing or empty`);
  }
  mkdirSync(target, { recursive: true, mode: 0o700 });
  const source = join(folder, BACKUPS_FOLDER, id);
  const db = openBackupDatabase(source);
  let copied: CopiedChunks;
  try {
    copied = copyChunks(order, db);
  } finally {
    db.close();
  }
  copyWhole(join(source, DATABASE_FILE), join(target, DATABASE_FILE));
  for (const { path } of manifest.files) {
    if (!path.startsWith(`${FILES_FOLDER}/`)) continue;
    const to = join(target, path.slice(FILES_FOLDER.length + 1));
    if (to === join(target, IDENTITY_FILE)) continue;
    mkdirSync(dirname(to), { recursive: true, mode: 0o700 });
    copyWhole(join(source, path), to);
    syncDirectoryNow(dirname(to));
  }
  const dataId = ulid(order.clock, order.random);
  const damagedFiles = makeOwn(join(target, DATABASE_FILE), dataId, copied.damaged, order.clock.wallMs());
  syncDirectoryNow(target);
  await order.onFilled?.({ backup: id, takenAtMs: manifest.taken_at_ms });
  const identity = {
    schema: IDENTITY_SCHEMA,
    data_id: dataId,
    created_at_ms: order.clock.wallMs(),
    restored_from: { backup: id, data_id: manifest.data_id, taken_at_ms: manifest.taken_at_ms },
  };
  await writeFileAtomic(join(target, IDENTITY_FILE), `${JSON.stringify(identity)}\n`);
  return {
    id,
    takenAtMs: manifest.taken_at_ms,
    dataId,
    inodes: manifest.inode_count,
    chunks: manifest.chunk_count,
    bytes: copied.bytes,
    problems: copied.damaged.map(({ name, problem: what }) => `chunk ${name} ${what}`),
    damagedFiles,
  };
}

interface DamagedChunk {
  readonly id: number;
  readonly name: string;
  readonly problem: string;
}

interface CopiedChunks {
  readonly bytes: number;
  readonly damaged: readonly DamagedChunk[];
}

/** Copies, never links: served files must not share disk blocks with their backup. */
function copyChunks({ folder, target, progress }: RestoreOrder, db: DatabaseSync): CopiedChunks {
  const chunks = join(target, CHUNKS_DIRECTORY);
  mkdirSync(chunks, { mode: 0o700 });
  for (const name of CHUNK_DIRECTORIES) mkdirSync(join(chunks, name), { mode: 0o700 });
  const totalBytes = neededTotals(db).bytes;
  const damaged: DamagedChunk[] = [];
  let bytes = 0;
  let doneBytes = 0;
  for (const chunk of neededChunks(db)) {
    const from = poolPath(folder, chunk.name);
    const problem = existsSync(from) ? chunkFileProblem(from, chunk) : "has no file";
    if (problem === undefined) {
      copyWhole(from, chunkPath(target, chunk.name));
      bytes += chunk.length;
    } else {
      damaged.push({ id: chunk.id, name: chunk.name, problem });
    }
    doneBytes += chunk.length;
    progress({ doneBytes, totalBytes });
  }
  for (const name of CHUNK_DIRECTORIES) syncDirectoryNow(join(chunks, name));
  syncDirectoryNow(chunks);
  return { bytes, damaged };
}

/**
 * Brings the database of an older Grove to this one's schema, gives it its new identity, and marks exactly the
 * damaged files among those made of chunks.
 */
function makeOwn(path: string, dataId: string, damaged: readonly DamagedChunk[], nowMs: number): number {
  const db = openWriter(path);
  let damagedFiles: number;
  try {
    migrate(db, dataId);
    db.exec("BEGIN IMMEDIATE");
    db.prepare("UPDATE meta SET value = ? WHERE key = 'data_id'").run(dataId);
    // The MetaServer's versions of shares since the backup are higher: only a time is surely higher than
    // those (M-03).
    db.prepare("UPDATE root SET access_version = max(access_version + 1, ?)").run(Math.trunc(nowMs));
    leaveMoves(db);
    // Everything lies on another disk now, so the scrub must read everything again.
    db.exec("DELETE FROM meta WHERE key = 'scrub'; DELETE FROM damaged_chunk");
    db.exec(
      `UPDATE inode SET flags = flags & ~${FLAG_DAMAGED} WHERE (flags & ${FLAG_DAMAGED}) <> 0 AND content_id IS NOT NULL`,
    );
    const insert = db.prepare("INSERT INTO damaged_chunk (chunk_id, found_at_ms, problem) VALUES (?, ?, ?)");
    for (const { id, problem } of damaged) insert.run(id, nowMs, problem);
    db.exec(`UPDATE inode SET flags = flags | ${FLAG_DAMAGED} WHERE content_id IN
      (SELECT content_id FROM file_chunk JOIN damaged_chunk USING (chunk_id))`);
    db.exec("COMMIT");
    const row = db.prepare(`SELECT count(*) AS count FROM inode WHERE (flags & ${FLAG_DAMAGED}) <> 0`).get();
    damagedFiles = (row as { count: number }).count;
  } catch (error) {
    // Nobody serves this folder: a plain close throws nothing that would hide the error.
    db.close();
    throw error;
  }
  closeWriter(db);
  return damagedFiles;
}

/**
 * Ends moves that were under way at the backup: what the other side has since is not in it. The metadata
 * store says which node serves a root. A root that had departed stays so, since its copy may be the last one;
 * one that had not arrived whole is no longer the move's, and the node removes it.
 */
function leaveMoves(db: DatabaseSync): void {
  const moves = db
    .prepare("SELECT number FROM root_move WHERE state IN ('copying', 'frozen', 'arrived')")
    .all();
  for (const { number } of moves as { number: number }[]) {
    for (const statement of journalRemovals(number)) db.exec(statement);
    db.prepare("DELETE FROM move_bucket WHERE number = ?").run(number);
    db.prepare("DELETE FROM root_move WHERE number = ?").run(number);
  }
  db.exec("UPDATE root_move SET move_id = 'restored:' || move_id WHERE state = 'arriving' AND head = ''");
}
