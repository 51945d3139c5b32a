// Checks a data directory without a server: recounts, compares rows with files, repairs on request.
import { existsSync } from "node:fs";
import { join } from "node:path";
import type { DatabaseSync } from "node:sqlite";
import { GroveError } from "#base/errors.ts";
import { lockDataDirectory, readIdentity } from "#storage/metadata/data-directory.ts";
import {
  DATABASE_FILE,
  isOnReadOnlyDisk,
  openReaderAnywhere,
  openWriter,
  refuseForeignSchema,
  SCHEMA_VERSION,
  schemaVersionOf,
} from "#storage/metadata/schema.ts";
import { isBrokenDatabase, whyNotRead } from "#storage/metadata/sqlite-errors.ts";
import { checkContent } from "./check-content.ts";
import { Findings, type StorageReport } from "./check-report.ts";
import { checkTree } from "./check-tree.ts";

/**
 * Recounts and verifies everything in a data directory. `repair` corrects counters in one transaction and
 * marks files with missing or wrong bytes as damaged. It moves chunk files without an owner to `lost+found/`
 * and never deletes. `deep` also reads every stored byte. Throws DATA_IN_USE when another process holds the
 * directory, and NO_SUCH_PATH when it is no data directory.
 */
export function checkStorage(directory: string, options: { repair: boolean; deep: boolean }): StorageReport {
  const databasePath = join(directory, DATABASE_FILE);
  if (!existsSync(directory)) throw new GroveError("NO_SUCH_PATH", `${directory} does not exist`);
  const dataId = readIdentity(directory);
  if (dataId === undefined || !existsSync(databasePath)) {
    throw new GroveError(
      "NO_SUCH_PATH",
      `${directory} is no data directory, or its identity or database is missing`,
    );
  }
  const release = lockDataDirectory(directory);
  try {
    if (options.repair && isOnReadOnlyDisk(databasePath)) {
      throw new GroveError(
        "STORAGE_FAILED",
        `${directory} lies on a disk that is read-only, where nothing can be repaired: mount it for writing, or copy the folder to another disk and name the copy`,
      );
    }
    const db = options.repair ? openWriter(databasePath) : openReaderAnywhere(databasePath);
    try {
      return checkDatabase(db, { directory, databasePath, dataId, ...options });
    } finally {
      db.close();
    }
  } catch (error) {
    throw whyNotRead(directory, error);
  } finally {
    release();
  }
}

/**
 * Checks rows whose chunks lie elsewhere: a database that was filled for this check alone. Its counters of the
 * whole database are made here, since the shared engine has none.
 */
export function checkRows(db: DatabaseSync): Omit<StorageReport, "dataId"> {
  const findings = new Findings();
  db.exec(`
    INSERT INTO counter (name, value) VALUES
      ('inodes', (SELECT coalesce(sum(1 + tree_inodes), 0) FROM root JOIN inode ON inode.id = directory_id)),
      ('trash_bytes', (SELECT coalesce(sum(trash_bytes), 0) FROM root)),
      ('chunks', (SELECT count(*) FROM chunk WHERE refs > 0))
      ON CONFLICT (name) DO UPDATE SET value = excluded.value`);
  let verifiedBytes = 0;
  if (isIntact(db, findings)) {
    verifiedBytes = checkContent({ db, directory: undefined, findings, repair: false, deep: true });
    checkTree(db, findings, false);
  }
  return { ...totals(db), verifiedBytes, ...findings.result };
}

interface Check {
  readonly directory: string;
  readonly databasePath: string;
  readonly dataId: string;
  readonly repair: boolean;
  readonly deep: boolean;
}

function checkDatabase(db: DatabaseSync, check: Check): StorageReport {
  const { directory, databasePath, dataId, repair, deep } = check;
  refuseForeignSchema(db, databasePath);
  if (schemaVersionOf(db) !== SCHEMA_VERSION) {
    throw new GroveError(
      "STORAGE_FAILED",
      `${databasePath} has an older schema; start the node once, which migrates it`,
    );
  }
  requireNoArrival(db);
  const findings = new Findings();
  let verifiedBytes = 0;
  if (isIntact(db, findings)) {
    checkIdentity(db, dataId, findings);
    db.exec(repair ? "BEGIN IMMEDIATE" : "BEGIN");
    try {
      verifiedBytes = checkContent({ db, directory, findings, repair, deep });
      checkTree(db, findings, repair);
      noteLeftovers(db, findings);
      db.exec("COMMIT");
    } catch (error) {
      if (db.isTransaction) db.exec("ROLLBACK");
      throw error;
    }
  }
  return { dataId, ...totals(db), verifiedBytes, ...findings.result };
}

/** SQLite's own checks; when they fail, no other check can be trusted. */
function isIntact(db: DatabaseSync, findings: Findings): boolean {
  try {
    const rows = db.prepare("PRAGMA integrity_check(100)").all() as { integrity_check: string }[];
    const problems = rows.filter((row) => row.integrity_check !== "ok");
    for (const row of problems) findings.difference(`the database is damaged: ${row.integrity_check}`);
    const broken = db.prepare("PRAGMA foreign_key_check").all() as { table: string; rowid: number | null }[];
    for (const { table, rowid } of broken) {
      findings.difference(`row ${rowid ?? "(unnamed)"} of ${table} refers to a row that is missing`);
    }
    return problems.length === 0;
  } catch (error) {
    if (!isBrokenDatabase(error)) throw error;
    findings.difference(`the database is damaged: ${String(error)}; restore it from a backup`);
    return false;
  }
}

function checkIdentity(db: DatabaseSync, dataId: string, findings: Findings): void {
  const row = db.prepare("SELECT value FROM meta WHERE key = 'data_id'").get() as
    | { value: string }
    | undefined;
  if (row?.value !== dataId) {
    findings.difference(
      `the database belongs to data ${row?.value ?? "(none)"}, identity.json says ${dataId}`,
    );
  }
}

/** Throws BAD_ARGUMENT while rows are here that refer to others that have yet to come. */
function requireNoArrival(db: DatabaseSync): void {
  const row = db.prepare("SELECT owner FROM root_move WHERE state = 'arriving' LIMIT 1").get();
  if (row === undefined) return;
  throw new GroveError(
    "BAD_ARGUMENT",
    `the root of ${(row as { owner: string }).owner} is on its way here from another node: let the move end or undo it, then check`,
  );
}

function noteLeftovers(db: DatabaseSync, findings: Findings): void {
  for (const [table, what] of [
    ["staging", "interrupted uploads"],
    ["copying", "interrupted copies"],
    ["upload", "unfinished uploads that their senders may go on with"],
    ["purging", "removed trees or contents that are not purged yet"],
    ["garbage", "chunks that wait for their removal"],
    ["root_move", "roots that move to another node or from one"],
  ] as const) {
    const { count } = db.prepare(`SELECT count(*) AS count FROM ${table}`).get() as { count: number };
    if (count > 0) findings.note(`${count} ${what}; the next start goes on with them`);
  }
}

function totals(
  db: DatabaseSync,
): Pick<StorageReport, "rootCount" | "inodeCount" | "chunkCount" | "liveBytes" | "trashBytes"> {
  try {
    return db
      .prepare(
        `SELECT (SELECT count(*) FROM root) AS rootCount, (SELECT count(*) FROM inode) AS inodeCount,
           (SELECT count(*) FROM chunk WHERE refs > 0) AS chunkCount, (SELECT total(live_bytes) FROM root) AS liveBytes,
           (SELECT total(trash_bytes) FROM root) AS trashBytes`,
      )
      .get() as unknown as StorageReport;
  } catch (error) {
    if (!isBrokenDatabase(error)) throw error;
    return { rootCount: 0, inodeCount: 0, chunkCount: 0, liveBytes: 0, trashBytes: 0 };
  }
}
