// Removes at start-up what interrupted uploads have left, before the first call is served.
import { closeSync, fsyncSync, openSync, readdirSync, unlinkSync } from "node:fs";
import { join } from "node:path";
import type { DatabaseSync } from "node:sqlite";
import { CHUNKS_DIRECTORY, isChunkName, nextDirectory } from "#storage/chunks/chunk-names.ts";

/** Findings and repairs of a start. */
export interface Recovery {
  /** Removed chunk files without a row. */
  readonly sweptChunkFiles: number;
  /** Chunk lists of uncommitted uploads that go to the purge. */
  readonly droppedUploads: number;
  /** Directory below chunks/ for new files. */
  readonly firstDirectory: string;
}

/**
 * Sweeps the directories that may hold files without rows, hands staged chunk lists to the purge and records
 * the directory for new files. Its cost does not grow with the data directory. A repetition after a crash is
 * harmless.
 */
export function recover(db: DatabaseSync, directory: string): Recovery {
  const open = db.prepare("SELECT name FROM open_directory ORDER BY name").all() as { name: string }[];
  let sweptChunkFiles = 0;
  for (const { name } of open) sweptChunkFiles += sweepDirectory(db, join(directory, CHUNKS_DIRECTORY, name));
  const last = db.prepare("SELECT value FROM meta WHERE key = 'chunk_directory'").get() as
    | { value: string }
    | undefined;
  const firstDirectory = nextDirectory(last?.value);
  db.exec("BEGIN IMMEDIATE");
  db.exec("INSERT INTO purging (content_id) SELECT content_id FROM staging");
  db.exec("INSERT INTO purging (inode_id) SELECT inode_id FROM copying");
  db.exec("DELETE FROM copying");
  const droppedUploads = Number(db.prepare("DELETE FROM staging").run().changes);
  db.exec("DELETE FROM open_directory");
  db.prepare("INSERT INTO open_directory (name) VALUES (?)").run(firstDirectory);
  db.prepare(
    "INSERT INTO meta (key, value) VALUES ('chunk_directory', ?) ON CONFLICT (key) DO UPDATE SET value = excluded.value",
  ).run(firstDirectory);
  db.exec("COMMIT");
  return { sweptChunkFiles, droppedUploads, firstDirectory };
}

function sweepDirectory(db: DatabaseSync, path: string): number {
  const known = db.prepare("SELECT 1 FROM chunk WHERE name = ?");
  let swept = 0;
  for (const name of readdirSync(path)) {
    if (!isChunkName(name) || known.get(name) !== undefined) continue;
    unlinkSync(join(path, name));
    swept++;
  }
  if (swept === 0) return 0;
  // On stable storage before the directory counts as clean.
  const descriptor = openSync(path, "r");
  fsyncSync(descriptor);
  closeSync(descriptor);
  return swept;
}
