// A folder of backups: recognised by its mark, locked against a second process that changes it, listed.
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { join, resolve, sep } from "node:path";
import type { DatabaseSync } from "node:sqlite";
import { GroveError } from "#base/errors.ts";
import { writeFileAtomic } from "#os/atomic-file.ts";
import { holdAlone } from "#os/file-lock.ts";
import { requireKnownSchema } from "#os/state-file.ts";
import {
  BACKUP_FOLDER_LOCK,
  BACKUP_MARK_FILE,
  BACKUP_SCHEMA,
  BACKUPS_FOLDER,
  isBackupId,
  POOL_FOLDER,
} from "#storage/chunks/backup-layout.ts";
import { CHUNK_DIRECTORIES } from "#storage/chunks/chunk-names.ts";
import { syncDirectoryNow } from "#storage/metadata/data-directory.ts";
import { DATABASE_FILE, openImmutable, refuseForeignSchema } from "#storage/metadata/schema.ts";

/** Prefix of an unfinished or removed backup's name. */
export const UNFINISHED = ".partial-";

/** A chunk that a backup needs. */
export interface NeededChunk {
  readonly id: number;
  readonly name: string;
  readonly length: number;
  readonly crc32: number;
  readonly blockCrcs: Uint8Array;
}

const SLICE_ROWS = 1_000;

/**
 * Makes the folder when it is missing or empty. Throws BAD_ARGUMENT when it holds other files, or backups of
 * other data.
 */
export async function openBackupFolder(folder: string, dataId: string): Promise<void> {
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  const mark = join(folder, BACKUP_MARK_FILE);
  if (!existsSync(mark)) {
    const others = namesIn(folder).filter((name) => name !== BACKUP_FOLDER_LOCK && !name.startsWith("."));
    if (others.length > 0) {
      throw new GroveError(
        "BAD_ARGUMENT",
        `${folder} holds other files; name an empty folder or one of backups`,
      );
    }
    const text = `${JSON.stringify({ schema: BACKUP_SCHEMA, data_id: dataId })}\n`;
    await writeFileAtomic(mark, text);
  }
  const marked = readMark(folder);
  if (marked !== dataId) {
    throw new GroveError(
      "BAD_ARGUMENT",
      `${folder} holds backups of data ${marked}, not of ${dataId}; name another folder`,
    );
  }
  for (const name of [BACKUPS_FOLDER, POOL_FOLDER])
    mkdirSync(join(folder, name), { recursive: true, mode: 0o700 });
  for (const name of CHUNK_DIRECTORIES)
    mkdirSync(join(folder, POOL_FOLDER, name), { recursive: true, mode: 0o700 });
  syncDirectoryNow(join(folder, POOL_FOLDER));
  syncDirectoryNow(folder);
}

/** Names in a folder; where a disk is mounted there, without the folder that every disk has. */
export function namesIn(folder: string): string[] {
  return readdirSync(folder).filter((name) => name !== "lost+found");
}

/** Throws NO_SUCH_PATH for a folder that is not a backup folder. */
export function requireBackupFolder(folder: string): void {
  if (!existsSync(join(folder, BACKUP_MARK_FILE))) {
    throw new GroveError("NO_SUCH_PATH", `${folder} holds no backups of Grove`);
  }
  readMark(folder);
}

function readMark(folder: string): string {
  const mark = join(folder, BACKUP_MARK_FILE);
  try {
    const { schema, data_id: dataId } = JSON.parse(readFileSync(mark, "utf8")) as Record<string, unknown>;
    requireKnownSchema(mark, schema, BACKUP_SCHEMA);
    if (typeof dataId === "string") return dataId;
  } catch (error) {
    if (error instanceof GroveError) throw error;
  }
  throw new GroveError("CORRUPT", `${mark} is damaged`);
}

/**
 * Locks the folder for a process that changes it; returns the release. Throws DATA_IN_USE when another
 * process has it.
 */
export function lockBackupFolder(folder: string): () => void {
  return holdAlone(
    join(folder, BACKUP_FOLDER_LOCK),
    `another backup or prune works on ${folder}; wait for it`,
  );
}

/** Ids of the finished backups, the oldest first. */
export function backupIds(folder: string): string[] {
  if (!existsSync(join(folder, BACKUPS_FOLDER))) return [];
  return readdirSync(join(folder, BACKUPS_FOLDER)).filter(isBackupId).toSorted();
}

/** The named backup, or the newest. Throws NO_SUCH_PATH when there is none. */
export function chosenBackup(folder: string, id: string | undefined): string {
  const ids = backupIds(folder);
  const chosen = id === undefined ? ids.at(-1) : ids.find((each) => each === id);
  if (chosen !== undefined) return chosen;
  throw new GroveError(
    "NO_SUCH_PATH",
    id === undefined ? `${folder} holds no finished backup` : `there is no backup ${id} in ${folder}`,
  );
}

/** Removes the remains of interrupted backups and prunes. */
export function removeUnfinished(folder: string): void {
  const backups = join(folder, BACKUPS_FOLDER);
  for (const name of readdirSync(backups)) {
    if (name.startsWith(UNFINISHED)) rmSync(join(backups, name), { recursive: true, force: true });
  }
}

/** Opens the database of a backup, which no process changes. */
export function openBackupDatabase(directory: string): DatabaseSync {
  const path = join(directory, DATABASE_FILE);
  const db = openImmutable(path);
  refuseForeignSchema(db, path);
  return db;
}

/** The chunks whose files a database needs, in order of creation; a slice at a time. */
export function* neededChunks(db: DatabaseSync): Generator<NeededChunk> {
  const slice = db.prepare(
    `SELECT id, name, length, crc32, block_crcs AS blockCrcs FROM chunk WHERE refs > 0 AND id > ? ORDER BY id LIMIT ${SLICE_ROWS}`,
  );
  for (let after = -1; ; ) {
    const rows = slice.all(after) as unknown as NeededChunk[];
    yield* rows;
    if (rows.length < SLICE_ROWS) return;
    after = rows.at(-1)?.id ?? after;
  }
}

/** Number and bytes of those chunks. */
export function neededTotals(db: DatabaseSync): { chunks: number; bytes: number } {
  return db
    .prepare("SELECT count(*) AS chunks, coalesce(sum(length), 0) AS bytes FROM chunk WHERE refs > 0")
    .get() as unknown as { chunks: number; bytes: number };
}

/** Throws for folders of which one lies in the other. */
export function requireApart(first: string, second: string): void {
  const [a, b] = [`${resolve(first)}${sep}`, `${resolve(second)}${sep}`];
  if (a.startsWith(b) || b.startsWith(a)) {
    throw new GroveError(
      "BAD_ARGUMENT",
      `${first} and ${second} lie in each other; name two separate folders`,
    );
  }
}
