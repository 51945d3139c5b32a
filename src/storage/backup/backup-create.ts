// Makes a backup of a data directory, served or not: a snapshot of the database and every chunk that it
// names.
import {
  closeSync,
  existsSync,
  mkdirSync,
  openSync,
  readdirSync,
  renameSync,
  rmSync,
  statSync,
} from "node:fs";
import { join } from "node:path";
import { backup, type DatabaseSync } from "node:sqlite";
import { GroveError } from "#base/errors.ts";
import { VERSION } from "#base/version.ts";
import { holdShared, makeLockFile } from "#os/file-lock.ts";
import {
  BACKUP_LEASE_FILE,
  BACKUP_SCHEMA,
  BACKUPS_FOLDER,
  FILES_FOLDER,
  isTakenFile,
  isTakenFolder,
  isTakenInside,
  nextBackupId,
  POOL_FOLDER,
  poolPath,
} from "#storage/chunks/backup-layout.ts";
import type { ChunkFacts } from "#storage/chunks/chunk-check.ts";
import { CHUNK_DIRECTORIES, chunkPath, directoryOfChunk } from "#storage/chunks/chunk-names.ts";
import { readIdentity, syncDirectoryNow } from "#storage/metadata/data-directory.ts";
import {
  DATABASE_FILE,
  isOnReadOnlyDisk,
  openReaderAnywhere,
  refuseForeignSchema,
  SCHEMA_VERSION,
  schemaVersionOf,
} from "#storage/metadata/schema.ts";
import { whyNotRead } from "#storage/metadata/sqlite-errors.ts";
import { chunkFileProblem, copyWhole, flushFile, linkWhole } from "./backup-files.ts";
import {
  backupIds,
  lockBackupFolder,
  neededChunks,
  neededTotals,
  openBackupDatabase,
  openBackupFolder,
  removeUnfinished,
  requireApart,
  UNFINISHED,
} from "./backup-folder.ts";
import { type Manifest, type ManifestFile, sealOf, writeManifest } from "./backup-manifest.ts";

/** Pages of the database that are copied between two turns of the event loop. */
const PAGES_AT_ONCE = 2_000;

/** Source and target of a backup. */
export interface BackupOrder {
  readonly directory: string;
  readonly folder: string;
  /** Also takes the node's private key. */
  readonly keys: boolean;
  /** Also reads chunks of earlier backups, and replaces damaged ones. */
  readonly full: boolean;
  /** Copies even where a link would do, so that one bad sector cannot damage both. */
  readonly copies: boolean;
  readonly nowMs: () => number;
  readonly progress: (done: BackupProgress) => void;
}

/** Progress of a backup, a check or a restore. */
export interface BackupProgress {
  readonly doneBytes: number;
  readonly totalBytes: number;
}

/** Result of a backup. */
export interface BackupReport {
  readonly id: string;
  readonly manifest: Manifest;
  readonly newChunks: number;
  readonly newBytes: number;
  /** Chunks that were linked instead of copied. */
  readonly linkedChunks: number;
  /** Chunks that are damaged in the data directory, but sound in an older backup. */
  readonly savedByOlder: number;
  /** Chunks that could not be taken and why; one line each, as many as the manifest names. */
  readonly problems: readonly string[];
}

/**
 * Makes one backup with everything that was acknowledged before the call. Throws NO_SUCH_PATH when there is
 * no data directory, DATA_IN_USE when another backup works on the folder. Throws CORRUPT when the database is
 * damaged, BAD_ARGUMENT for folders that do not fit. A failed backup leaves nothing that counts as one.
 */
export async function createBackup(order: BackupOrder): Promise<BackupReport> {
  const { directory, folder } = order;
  requireApart(directory, folder);
  const dataId = existsSync(directory) ? readIdentity(directory) : undefined;
  const databasePath = join(directory, DATABASE_FILE);
  if (dataId === undefined || !existsSync(databasePath)) {
    throw new GroveError("NO_SUCH_PATH", `${directory} is no data directory`);
  }
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  const unlock = lockBackupFolder(folder);
  // Held from before the snapshot until all its chunks are copied: the node unlinks nothing meanwhile.
  let endLease = (): void => undefined;
  try {
    await openBackupFolder(folder, dataId);
    removeUnfinished(folder);
    const id = nextBackupId(backupIds(folder), order.nowMs());
    const partial = join(folder, BACKUPS_FOLDER, `${UNFINISHED}${id}`);
    mkdirSync(partial, { mode: 0o700 });
    endLease = holdLease(directory);
    const takenAtMs = order.nowMs();
    await copyDatabase(databasePath, partial).catch((error: unknown) => {
      throw whyNotRead(directory, error);
    });
    const files = copyFiles(order, partial);
    const database = openBackupDatabase(partial);
    try {
      requireIntact(database, databasePath);
      const copied = copyChunks(order, database);
      endLease();
      const manifest: Manifest = {
        schema: BACKUP_SCHEMA,
        id,
        data_id: dataId,
        taken_at_ms: takenAtMs,
        version: VERSION,
        files: [{ path: DATABASE_FILE, ...sealOf(join(partial, DATABASE_FILE)) }, ...files],
        ...countsOf(database),
        damaged_chunks: copied.damaged,
      };
      await finish(folder, partial, manifest);
      return { id, manifest, ...copied };
    } finally {
      database.close();
    }
  } finally {
    endLease();
    unlock();
  }
}

/** Keeps the node from unlinking chunk files, until it is called. On a disk that is read-only none can be. */
function holdLease(directory: string): () => void {
  const lease = join(directory, BACKUP_LEASE_FILE);
  if (isOnReadOnlyDisk(lease)) return () => undefined;
  makeLockFile(lease);
  return holdShared(lease);
}

/** One state of the database, at any duration and beside any writes: the reader's transaction holds it. */
async function copyDatabase(databasePath: string, partial: string): Promise<void> {
  const db = openReaderAnywhere(databasePath);
  try {
    refuseForeignSchema(db, databasePath);
    if (schemaVersionOf(db) !== SCHEMA_VERSION) {
      throw new GroveError(
        "BAD_ARGUMENT",
        `${databasePath} has an older schema; start the node once, which migrates it`,
      );
    }
    db.exec("BEGIN");
    db.prepare("SELECT count(*) FROM meta").get();
    // Created before SQLite does, since it holds e-mail addresses and the umask may be lenient.
    closeSync(openSync(join(partial, DATABASE_FILE), "wx", 0o600));
    await backup(db, join(partial, DATABASE_FILE), { rate: PAGES_AT_ONCE });
    db.exec("COMMIT");
  } finally {
    db.close();
  }
  flushFile(join(partial, DATABASE_FILE));
}

function requireIntact(db: DatabaseSync, path: string): void {
  const [row] = db.prepare("PRAGMA quick_check(1)").all() as { quick_check: string }[];
  if (row?.quick_check === "ok") return;
  throw new GroveError(
    "CORRUPT",
    `${path} is damaged (${row?.quick_check ?? "unknown"}); nothing was backed up`,
  );
}

/**
 * Identity, role, quotas, subjects, certificates, the audit log: each is replaced as a whole or only grows,
 * so a copy of any moment is good.
 */
function copyFiles({ directory, keys }: BackupOrder, partial: string): ManifestFile[] {
  const files: ManifestFile[] = [];
  const take = (path: string): void => {
    const relative = `${FILES_FOLDER}/${path}`;
    const target = join(partial, relative);
    mkdirSync(join(target, ".."), { recursive: true, mode: 0o700 });
    try {
      copyWhole(join(directory, path), target);
    } catch (error) {
      // Rotated away since it was listed.
      if ((error as NodeJS.ErrnoException).code === "ENOENT") return;
      throw error;
    }
    files.push({ path: relative, ...sealOf(target) });
  };
  for (const entry of readdirSync(directory, { withFileTypes: true })) {
    if (entry.isFile() && isTakenFile(entry.name)) take(entry.name);
    if (!entry.isDirectory() || !isTakenFolder(entry.name)) continue;
    const inside = readdirSync(join(directory, entry.name), { withFileTypes: true }).filter(
      (each) => each.isFile() && isTakenInside(entry.name, each.name, keys),
    );
    if (inside.length === 0) continue;
    // A log's head, which records its length, is copied before the log.
    const first = inside.filter(({ name }) => name.endsWith(".json"));
    const rest = inside.filter((each) => !first.includes(each));
    for (const { name } of [...first, ...rest]) take(`${entry.name}/${name}`);
    syncDirectoryNow(join(partial, FILES_FOLDER, entry.name));
  }
  syncDirectoryNow(join(partial, FILES_FOLDER));
  return files;
}

interface CopiedChunks {
  readonly newChunks: number;
  readonly newBytes: number;
  readonly linkedChunks: number;
  readonly savedByOlder: number;
  readonly damaged: readonly string[];
  readonly problems: readonly string[];
}

/** Adds missing chunks to the pool, each checked against its checksums. */
function copyChunks(order: BackupOrder, db: DatabaseSync): CopiedChunks {
  const { directory, folder } = order;
  const totalBytes = neededTotals(db).bytes;
  const pool = new Pool(folder);
  const damaged: string[] = [];
  const problems: string[] = [];
  let [newChunks, newBytes, linkedChunks, savedByOlder, doneBytes] = [0, 0, 0, 0, 0];
  let mayLink = !order.copies;
  for (const chunk of neededChunks(db)) {
    const source = chunkPath(directory, chunk.name);
    const target = poolPath(folder, chunk.name);
    doneBytes += chunk.length;
    if (pool.has(chunk.name) && isUsable(order, source, target, chunk)) {
      if (!existsSync(source)) savedByOlder++;
    } else {
      rmSync(target, { force: true });
      const problem = bring(source, target, mayLink, chunk);
      if (problem === "copied") mayLink = false;
      if (problem === "linked") linkedChunks++;
      if (problem === "linked" || problem === "copied") {
        newChunks++;
        newBytes += chunk.length;
      } else {
        damaged.push(chunk.name);
        problems.push(`chunk ${chunk.name} ${problem}`);
      }
    }
    order.progress({ doneBytes, totalBytes });
  }
  for (const name of CHUNK_DIRECTORIES) syncDirectoryNow(join(folder, POOL_FOLDER, name));
  return { newChunks, newBytes, linkedChunks, savedByOlder, damaged, problems };
}

/** True when the chunk of an earlier backup is usable. */
function isUsable(order: BackupOrder, source: string, target: string, chunk: ChunkFacts): boolean {
  if (order.copies && isSameFile(source, target)) return false;
  return !order.full || chunkFileProblem(target, chunk) === undefined;
}

function isSameFile(first: string, second: string): boolean {
  const [a, b] = [first, second].map((path) => statSync(path, { throwIfNoEntry: false }));
  return a !== undefined && b !== undefined && a.ino === b.ino && a.dev === b.dev;
}

/** "linked" or "copied", or what is wrong with the chunk. */
function bring(source: string, target: string, mayLink: boolean, chunk: ChunkFacts): string {
  let how = "copied";
  try {
    if (mayLink && linkWhole(source, target)) how = "linked";
    else copyWhole(source, target);
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === "ENOENT") return "has no file";
    if (code === "EIO") return `cannot be read: ${String(error)}`;
    throw error;
  }
  const problem = chunkFileProblem(target, chunk);
  if (problem === undefined) return how;
  rmSync(target, { force: true });
  return problem;
}

/** Names in the pool, one of its directories in memory at a time: successive chunks share theirs. */
class Pool {
  readonly #folder: string;
  #directory = "";
  #names = new Set<string>();

  constructor(folder: string) {
    this.#folder = folder;
  }

  has(name: string): boolean {
    const directory = directoryOfChunk(name);
    if (directory !== this.#directory) {
      this.#directory = directory;
      this.#names = new Set(readdirSync(join(this.#folder, POOL_FOLDER, directory)));
    }
    return this.#names.has(name);
  }
}

function countsOf(
  db: DatabaseSync,
): Pick<Manifest, "inode_count" | "root_count" | "chunk_count" | "chunk_bytes"> {
  const counts = db
    .prepare("SELECT (SELECT count(*) FROM inode) AS inode_count, (SELECT count(*) FROM root) AS root_count")
    .get() as unknown as { inode_count: number; root_count: number };
  const { chunks, bytes } = neededTotals(db);
  return { ...counts, chunk_count: chunks, chunk_bytes: bytes };
}

/** The manifest is the last file, and the rename the last step: a folder without either is no backup. */
async function finish(folder: string, partial: string, manifest: Manifest): Promise<void> {
  await writeManifest(partial, manifest);
  renameSync(partial, join(folder, BACKUPS_FOLDER, manifest.id));
  syncDirectoryNow(join(folder, BACKUPS_FOLDER));
}
