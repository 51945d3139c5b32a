// Opens a data directory as Storage: SQLite and chunk files behind one writer, with synchronous reads.
import { existsSync, renameSync, rmSync } from "node:fs";
import { join } from "node:path";
import type { Clock } from "#base/clock.ts";
import { GroveError } from "#base/errors.ts";
import { errorText, type Logger } from "#base/log.ts";
import type { Random } from "#base/random.ts";
import type { Storage } from "#storage/contract/storage.ts";
import { openDataDirectory } from "#storage/metadata/data-directory.ts";
import { isDatabaseDamaged, isDatabaseUnwritable, lacksRoomToOpen } from "#storage/metadata/sqlite-errors.ts";
import { LocalStorage } from "./local-storage.ts";

/** Size of the ballast, which removals use on a full disk. */
const STORAGE_BALLAST_BYTES = 16_777_216;
/** Name of its file. */
const BALLAST_FILE = "ballast";
/** Name of that file in Grove 0.1.0. */
const BALLAST_FILE_BEFORE = "slack";

/** Options of storage. */
export interface OpenStorageOptions {
  /** The data directory; created with mode 0700 when it is missing. */
  readonly directory: string;
  readonly clock: Clock;
  readonly random: Random;
  readonly logger: Logger;
  /** Size of the ballast for removals on a full disk; default STORAGE_BALLAST_BYTES, 0 for none. */
  readonly ballastBytes?: number;
}

/**
 * Locks the data directory, recovers from a crash, and serves it. Throws STORAGE_FAILED with advice in the
 * text when the directory is in use, damaged, or of another version.
 */
export async function openStorage(options: OpenStorageOptions): Promise<Storage> {
  const { directory, logger } = options;
  const onLocked = (): void => makeRoomForStart(directory);
  const data = await openDataDirectory(directory, { ...options, onLocked }).catch((error: unknown) => {
    throw notOpened(directory, error);
  });
  try {
    if (data.upgrade !== undefined) logger.warn("storage.upgraded", { ...data.upgrade });
    const { sweptChunkFiles, droppedUploads, firstDirectory } = data.recovery;
    if (sweptChunkFiles > 0 || droppedUploads > 0) {
      logger.info("storage.swept_leftovers", { chunkFiles: sweptChunkFiles, uploads: droppedUploads });
    }
    const storage = new LocalStorage({
      ...options,
      data,
      firstDirectory,
      ballastPath: takeBallastOver(directory),
      ballastBytes: options.ballastBytes ?? STORAGE_BALLAST_BYTES,
    });
    await storage.ready();
    return storage;
  } catch (error) {
    data.release();
    logger.error("storage.not_opened", { error: errorText(error) });
    throw notOpened(directory, error);
  }
}

/** The path of the ballast. A file of the former name becomes it, as both would take twice the space. */
function takeBallastOver(directory: string): string {
  const path = join(directory, BALLAST_FILE);
  const before = join(directory, BALLAST_FILE_BEFORE);
  if (existsSync(before)) renameSync(before, path);
  return path;
}

/** On a full disk the ballast goes before the database is opened. */
function makeRoomForStart(directory: string): void {
  if (lacksRoomToOpen(directory)) rmSync(takeBallastOver(directory), { force: true });
}

function notOpened(directory: string, error: unknown): GroveError {
  if (error instanceof GroveError) return error;
  return new GroveError("STORAGE_FAILED", `${directory} cannot be opened: ${whyNotOpened(error)}`, {
    cause: error,
  });
}

/** The error with what to do, where the cause is the disk's or the database's. */
function whyNotOpened(error: unknown): string {
  const text = errorText(error);
  if (isDatabaseDamaged(error)) {
    return `${text}. Its database is damaged: restore the newest backup to another folder ('grove backup restore'), and keep this one`;
  }
  if (isDatabaseUnwritable(error)) {
    return `${text}. The disk must be mounted for writing ('findmnt -T'), and every file in it be this user's`;
  }
  return text;
}
