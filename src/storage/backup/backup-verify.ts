// Checks every byte of backups, and removes old ones with the chunks that only they needed.
import { existsSync, readdirSync, renameSync, rmSync } from "node:fs";
import { join } from "node:path";
import type { DatabaseSync } from "node:sqlite";
import { GroveError } from "#base/errors.ts";
import { CHECK_DIFFERENCES_LISTED } from "#base/limits.ts";
import { errorText } from "#base/log.ts";
import { BACKUPS_FOLDER, POOL_FOLDER, poolPath } from "#storage/chunks/backup-layout.ts";
import { CHUNK_DIRECTORIES } from "#storage/chunks/chunk-names.ts";
import { syncDirectoryNow } from "#storage/metadata/data-directory.ts";
import type { BackupProgress } from "./backup-create.ts";
import { chunkFileProblem } from "./backup-files.ts";
import {
  backupIds,
  chosenBackup,
  lockBackupFolder,
  neededChunks,
  neededTotals,
  openBackupDatabase,
  removeUnfinished,
  requireBackupFolder,
  UNFINISHED,
} from "./backup-folder.ts";
import { fileProblems, type Manifest, readManifest } from "./backup-manifest.ts";

/** Findings of a check of backups. */
export interface VerifyReport {
  readonly backups: readonly {
    readonly id: string;
    readonly isGood: boolean;
    /** Chunks that were damaged before the backup. */
    readonly damagedChunks: number;
  }[];
  /** Bytes read and compared. */
  readonly verifiedBytes: number;
  /** Problems found, at most CHECK_DIFFERENCES_LISTED lines. */
  readonly problems: readonly string[];
  readonly problemCount: number;
  /** Interrupted backups, which the next one removes. */
  readonly unfinished: number;
}

/** Result of a prune. */
export interface PruneReport {
  readonly kept: readonly string[];
  readonly removed: readonly string[];
  readonly removedChunks: number;
}

/** One backup, or what is wrong with its manifest. */
export interface ListedBackup {
  readonly id: string;
  readonly manifest: Manifest | undefined;
  readonly problem: string | undefined;
}

/** The finished backups, the oldest first. Throws NO_SUCH_PATH when the folder is not a backup folder. */
export function listBackups(folder: string): ListedBackup[] {
  requireBackupFolder(folder);
  return backupIds(folder).map((id) => {
    try {
      return { id, manifest: readManifest(folder, id), problem: undefined };
    } catch (error) {
      return { id, manifest: undefined, problem: errorText(error) };
    }
  });
}

/**
 * Compares every byte of one backup, or of all, with its checksum. A chunk that several backups share is read
 * once. Throws NO_SUCH_PATH when there is no finished backup.
 */
export function verifyBackups(
  folder: string,
  options: { readonly id: string | undefined; readonly progress: (done: BackupProgress) => void },
): VerifyReport {
  requireBackupFolder(folder);
  chosenBackup(folder, options.id);
  const ids = backupIds(folder).toReversed();
  const verifier = new Verifier(folder, options.progress);
  try {
    for (const id of ids) if (options.id === undefined || options.id === id) verifier.verify(id);
  } finally {
    verifier.close();
  }
  const unfinished = readdirSync(join(folder, BACKUPS_FOLDER)).filter((name) =>
    name.startsWith(UNFINISHED),
  ).length;
  return { ...verifier.result, unfinished };
}

class Verifier {
  readonly #folder: string;
  readonly #progress: (done: BackupProgress) => void;
  /** Databases of the verified backups: their chunks have been read. */
  readonly #before: DatabaseSync[] = [];
  readonly #bad = new Set<string>();
  readonly #backups: { id: string; isGood: boolean; damagedChunks: number }[] = [];
  readonly #problems: string[] = [];
  #problemCount = 0;
  #verifiedBytes = 0;
  #totalBytes = 0;

  constructor(folder: string, progress: (done: BackupProgress) => void) {
    this.#folder = folder;
    this.#progress = progress;
  }

  get result(): Omit<VerifyReport, "unfinished"> {
    return {
      backups: this.#backups,
      verifiedBytes: this.#verifiedBytes,
      problems: this.#problems,
      problemCount: this.#problemCount,
    };
  }

  verify(id: string): void {
    const before = this.#problemCount;
    let damagedChunks = 0;
    try {
      const manifest = readManifest(this.#folder, id);
      damagedChunks = manifest.damaged_chunks.length;
      const problems = fileProblems(this.#folder, manifest);
      for (const problem of problems) this.#problem(id, problem);
      for (const { bytes } of manifest.files) this.#verifiedBytes += bytes;
      if (problems.length === 0) this.#chunks(id, manifest);
    } catch (error) {
      this.#problem(id, errorText(error));
    }
    this.#backups.push({ id, isGood: this.#problemCount === before, damagedChunks });
  }

  close(): void {
    for (const db of this.#before) db.close();
  }

  #chunks(id: string, manifest: Manifest): void {
    const db = openBackupDatabase(join(this.#folder, BACKUPS_FOLDER, id));
    this.#totalBytes = this.#verifiedBytes + neededTotals(db).bytes;
    const known = this.#before.map((each) => each.prepare("SELECT 1 FROM chunk WHERE name = ? AND refs > 0"));
    const missing = new Set(manifest.damaged_chunks);
    for (const chunk of neededChunks(db)) {
      if (missing.has(chunk.name)) continue;
      const wasRead = known.some((statement) => statement.get(chunk.name) !== undefined);
      if (!wasRead) {
        const problem = chunkFileProblem(poolPath(this.#folder, chunk.name), chunk);
        if (problem !== undefined) {
          this.#bad.add(chunk.name);
          this.#problem(id, `chunk ${chunk.name} ${problem}`);
        }
        this.#verifiedBytes += chunk.length;
        this.#progress({ doneBytes: this.#verifiedBytes, totalBytes: this.#totalBytes });
      } else if (this.#bad.has(chunk.name)) {
        this.#problem(id, `chunk ${chunk.name} is damaged`);
      }
    }
    this.#before.push(db);
  }

  #problem(id: string, text: string): void {
    this.#problemCount++;
    if (this.#problems.length < CHECK_DIFFERENCES_LISTED) this.#problems.push(`${id}: ${text}`);
  }
}

/**
 * Keeps the newest backups and removes the others with the chunks that no kept backup needs. Throws CORRUPT,
 * with nothing removed, when a kept backup's database is damaged; DATA_IN_USE while a backup is being made.
 */
export function pruneBackups(folder: string, keep: number): PruneReport {
  requireBackupFolder(folder);
  const unlock = lockBackupFolder(folder);
  const databases: DatabaseSync[] = [];
  try {
    const ids = backupIds(folder);
    const kept = ids.slice(Math.max(0, ids.length - keep));
    const removed = ids.slice(0, ids.length - kept.length);
    for (const id of kept) {
      const [problem] = fileProblems(folder, readManifest(folder, id));
      if (problem !== undefined) {
        throw new GroveError(
          "CORRUPT",
          `backup ${id}: ${problem}; nothing was removed. Look with grove backup verify`,
        );
      }
      databases.push(openBackupDatabase(join(folder, BACKUPS_FOLDER, id)));
    }
    const backups = join(folder, BACKUPS_FOLDER);
    // It stops counting as a backup before any of its files goes.
    for (const id of removed) renameSync(join(backups, id), join(backups, `${UNFINISHED}${id}`));
    syncDirectoryNow(backups);
    removeUnfinished(folder);
    return { kept, removed, removedChunks: sweepPool(folder, databases) };
  } finally {
    for (const db of databases) db.close();
    unlock();
  }
}

function sweepPool(folder: string, databases: readonly DatabaseSync[]): number {
  const needed = databases.map((db) => db.prepare("SELECT 1 FROM chunk WHERE name = ? AND refs > 0"));
  let removed = 0;
  for (const directory of CHUNK_DIRECTORIES) {
    const path = join(folder, POOL_FOLDER, directory);
    if (!existsSync(path)) continue;
    for (const name of readdirSync(path)) {
      if (needed.some((statement) => statement.get(name) !== undefined)) continue;
      rmSync(join(path, name), { force: true });
      removed++;
    }
  }
  return removed;
}
