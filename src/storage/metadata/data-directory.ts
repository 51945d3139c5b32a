// Opens a data directory: locks it against a second process, checks its identity, refuses a broken one.
import {
  chmodSync,
  closeSync,
  existsSync,
  fsyncSync,
  mkdirSync,
  openSync,
  readdirSync,
  readFileSync,
  statSync,
} from "node:fs";
import { dirname, join, resolve } from "node:path";
import type { DatabaseSync } from "node:sqlite";
import type { Clock } from "#base/clock.ts";
import { GroveError } from "#base/errors.ts";
import type { Random } from "#base/random.ts";
import { ulid } from "#base/ulid.ts";
import { writeFileAtomic } from "#os/atomic-file.ts";
import { holdAlone } from "#os/file-lock.ts";
import { makePrivateFolder } from "#os/private-folder.ts";
import { copyBeforeUpgrade, type SchemaUpgrade } from "#os/schema-copy.ts";
import { requireKnownSchema } from "#os/state-file.ts";
import { CHUNK_DIRECTORIES, CHUNKS_DIRECTORY } from "#storage/chunks/chunk-names.ts";
import {
  closeWriter,
  DATABASE_FILE,
  migrate,
  openWriter,
  refuseForeignSchema,
  SCHEMA_VERSION,
  schemaVersionOf,
} from "./schema.ts";
import { isBrokenDatabase } from "./sqlite-errors.ts";

const LOCK_FILE = "grove.lock";
/** File with the identity of the data directory. */
export const IDENTITY_FILE = "identity.json";
/** Schema of that file. */
export const IDENTITY_SCHEMA = 1;
/** File of a folder whose process works on the shared engine. */
export const ENGINE_FILE = "engine-instance";
const ULID_FORM = /^[0-9A-HJKMNP-TV-Z]{26}$/;

import { type Recovery, recover } from "./start-recovery.ts";

/** A data directory that this process alone holds. */
export interface DataDirectory {
  readonly path: string;
  readonly databasePath: string;
  /** ULID made with the directory. */
  readonly dataId: string;
  /** Findings and repairs of the start. */
  readonly recovery: Recovery;
  /** The upgrade of its schema at this start, with the copy from before; undefined without one. */
  readonly upgrade: SchemaUpgrade | undefined;
  /** Releases the lock; so does the end of the process. */
  release(): void;
}

/**
 * Locks and opens a data directory; makes it when it is missing or empty. `onLocked` is called before the
 * database is opened. Throws DATA_IN_USE when another process holds it, and STORAGE_FAILED with advice
 * when identity, database or chunks are missing beside stored files, or do not match.
 */
export async function openDataDirectory(
  path: string,
  deps: { clock: Pick<Clock, "wallMs">; random: Random; onLocked?: () => void },
): Promise<DataDirectory> {
  makePrivateDirectory(path);
  const release = lockDataDirectory(path);
  try {
    deps.onLocked?.();
    const identity = readIdentity(path);
    if (identity === undefined) return await makeDataDirectory(path, deps, release);
    const databasePath = join(path, DATABASE_FILE);
    if (existsSync(join(path, ENGINE_FILE))) {
      throw new GroveError(
        "STORAGE_FAILED",
        `${path} is the local folder of a node on the shared engine: start it with -engine and -store`,
      );
    }
    if (!existsSync(databasePath)) {
      throw new GroveError(
        "STORAGE_FAILED",
        `${databasePath} is missing: ${path} belongs to data ${identity}, but its database is gone. Restore it from a backup, or name an empty directory`,
      );
    }
    if (!existsSync(join(path, CHUNKS_DIRECTORY))) {
      throw new GroveError(
        "STORAGE_FAILED",
        `${join(path, CHUNKS_DIRECTORY)} is missing, and with it the bytes of the files: mount its disk, or restore the directory from a backup`,
      );
    }
    makeChunkDirectories(path);
    const opened = bringUpToDate(path, databasePath, { dataId: identity, isNew: false });
    return { path, databasePath, dataId: identity, ...opened, release };
  } catch (error) {
    release();
    throw error;
  }
}

/**
 * Locks an existing data directory; returns the release. Throws DATA_IN_USE when another process holds it.
 */
export function lockDataDirectory(path: string): () => void {
  return holdAlone(
    join(path, LOCK_FILE),
    `${path} is in use by another Grove process; stop that one first, or name another directory`,
  );
}

/**
 * Reads the identity of a data directory; undefined when there is none. Throws STORAGE_FAILED when it is
 * malformed.
 */
export function readIdentity(path: string): string | undefined {
  const identityPath = join(path, IDENTITY_FILE);
  let text: string;
  try {
    // Read as bytes: with an encoding, Node 26.10 aborts the process when the close fails.
    text = readFileSync(identityPath).toString();
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return undefined;
    throw error;
  }
  const identity = parseIdentity(text);
  if (identity === undefined) {
    throw new GroveError(
      "STORAGE_FAILED",
      `${identityPath} is damaged; restore it from a backup, the database knows the data id`,
    );
  }
  requireKnownSchema(identityPath, identity.schema, IDENTITY_SCHEMA);
  return identity.dataId;
}

function parseIdentity(text: string): { schema: number; dataId: string } | undefined {
  try {
    const { schema, data_id: dataId } = JSON.parse(text) as { schema?: unknown; data_id?: unknown };
    if (typeof schema !== "number" || !Number.isSafeInteger(schema) || schema < 1) return undefined;
    if (typeof dataId !== "string" || (schema === IDENTITY_SCHEMA && !ULID_FORM.test(dataId)))
      return undefined;
    return { schema, dataId };
  } catch {
    return undefined;
  }
}

async function makeDataDirectory(
  path: string,
  deps: { clock: Pick<Clock, "wallMs">; random: Random },
  release: () => void,
): Promise<DataDirectory> {
  const databasePath = join(path, DATABASE_FILE);
  const interrupted = existsSync(databasePath) ? emptyDatabaseIdentity(databasePath) : undefined;
  if (interrupted === "in use" || firstChunkFile(path) !== undefined) {
    throw new GroveError(
      "STORAGE_FAILED",
      `${join(path, IDENTITY_FILE)} is missing although ${path} holds stored files. Put it back from a backup, or name an empty directory`,
    );
  }
  const dataId = interrupted ?? ulid(deps.clock, deps.random);
  makeChunkDirectories(path);
  closeSync(openSync(databasePath, "a", 0o600));
  const opened = bringUpToDate(path, databasePath, { dataId, isNew: true });
  syncDirectoryNow(path);
  // Written last: its presence shows that everything else is complete.
  const identity = { schema: IDENTITY_SCHEMA, data_id: dataId, created_at_ms: deps.clock.wallMs() };
  await writeFileAtomic(join(path, IDENTITY_FILE), `${JSON.stringify(identity)}\n`);
  return { path, databasePath, dataId, ...opened, release };
}

/**
 * Identity in a database without an identity file, from an interrupted set-up; any other database may hold
 * a user's files.
 */
function emptyDatabaseIdentity(databasePath: string): string | undefined {
  const db = openWriter(databasePath);
  try {
    refuseForeignSchema(db, databasePath);
    const tables = db.prepare("SELECT count(*) AS count FROM sqlite_schema").get() as { count: number };
    if (tables.count === 0) return undefined;
    if (db.prepare("SELECT 1 FROM root LIMIT 1").get() !== undefined) return "in use";
    return databaseIdentity(db);
  } finally {
    db.close();
  }
}

/** Migrates, after a copy, and recovers before the first call is served. */
function bringUpToDate(
  path: string,
  databasePath: string,
  { dataId, isNew }: { readonly dataId: string; readonly isNew: boolean },
): Pick<DataDirectory, "recovery" | "upgrade"> {
  const db = openWriter(databasePath);
  let recovery: Recovery;
  let upgrade: SchemaUpgrade | undefined;
  try {
    refuseForeignSchema(db, databasePath);
    const from = schemaVersionOf(db);
    if (from === 0 && !isNew) {
      throw new GroveError(
        "STORAGE_FAILED",
        `${databasePath} is empty, although ${path} belongs to data ${dataId}: restore it from a backup, or name an empty directory`,
      );
    }
    if (from > 0 && from < SCHEMA_VERSION) {
      upgrade = { from, to: SCHEMA_VERSION, copy: copyBeforeUpgrade(db, databasePath, from) };
    }
    migrate(db, dataId);
    const inside = databaseIdentity(db);
    if (inside !== dataId) {
      throw new GroveError(
        "STORAGE_FAILED",
        `${databasePath} belongs to data ${inside ?? "(none)"}, but ${IDENTITY_FILE} beside it says ${dataId}: they come from different data directories`,
      );
    }
    recovery = recover(db, path);
  } catch (error) {
    // Closing brings in the log: after a failed flush it would repeat that flush. The process's end
    // closes it.
    if (!isBrokenDatabase(error)) closeWriter(db);
    throw error;
  }
  closeWriter(db);
  makeLog(path, databasePath);
  return { recovery, upgrade };
}

/** SQLite flushes the directory of a new log, but does not report a failure of that. */
function makeLog(path: string, databasePath: string): void {
  closeSync(openSync(`${databasePath}-wal`, "a", 0o600));
  syncDirectoryNow(path);
}

function databaseIdentity(db: DatabaseSync): string | undefined {
  const row = db.prepare("SELECT value FROM meta WHERE key = 'data_id'").get() as
    | { value: string }
    | undefined;
  return row?.value;
}

function makePrivateDirectory(path: string): void {
  const firstMade = makePrivateFolder(path);
  if ((statSync(path).mode & 0o777) !== 0o700) chmodSync(path, 0o700);
  if (firstMade === undefined) return;
  // Everything stored below is lost when a power cut takes the directory itself.
  const top = dirname(resolve(firstMade));
  for (let made = dirname(resolve(path)); ; made = dirname(made)) {
    syncDirectoryNow(made);
    if (made === top) break;
  }
}

function makeChunkDirectories(path: string): void {
  const chunks = join(path, CHUNKS_DIRECTORY);
  mkdirSync(chunks, { recursive: true, mode: 0o700 });
  const present = new Set(readdirSync(chunks));
  const missing = CHUNK_DIRECTORIES.filter((name) => !present.has(name));
  if (missing.length === 0) return;
  for (const name of missing) mkdirSync(join(chunks, name), { mode: 0o700 });
  syncDirectoryNow(chunks);
  syncDirectoryNow(path);
}

function firstChunkFile(path: string): string | undefined {
  const chunks = join(path, CHUNKS_DIRECTORY);
  if (!existsSync(chunks)) return undefined;
  return readdirSync(chunks, { recursive: true, withFileTypes: true }).find((entry) => entry.isFile())?.name;
}

/** Flushes a directory synchronously, at start-up and in checks. */
export function syncDirectoryNow(path: string): void {
  const descriptor = openSync(path, "r");
  try {
    fsyncSync(descriptor);
  } finally {
    closeSync(descriptor);
  }
}
