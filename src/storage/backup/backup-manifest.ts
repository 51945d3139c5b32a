// The manifest of a backup, with checksums of every file except chunks, which have their own.
import { createHash } from "node:crypto";
import { closeSync, openSync, readFileSync, readSync } from "node:fs";
import { join } from "node:path";
import { GroveError } from "#base/errors.ts";
import { writeFileAtomic } from "#os/atomic-file.ts";
import { requireKnownSchema } from "#os/state-file.ts";
import { BACKUP_SCHEMA, BACKUPS_FOLDER, MANIFEST_FILE } from "#storage/chunks/backup-layout.ts";

const READ_BYTES = 1_048_576;

/** A file of a backup. */
export interface ManifestFile {
  /** Path within the backup, with slashes. */
  readonly path: string;
  readonly bytes: number;
  /** SHA-256 in hex. */
  readonly sha256: string;
}

/** One backup. */
export interface Manifest {
  readonly schema: number;
  readonly id: string;
  readonly data_id: string;
  /** Time of the snapshot: everything acknowledged before is in it. */
  readonly taken_at_ms: number;
  readonly version: string;
  readonly files: readonly ManifestFile[];
  readonly inode_count: number;
  readonly root_count: number;
  readonly chunk_count: number;
  readonly chunk_bytes: number;
  /**
   * Names of the chunks that were damaged in the data directory at the time of the copy, and so are missing
   * here.
   */
  readonly damaged_chunks: readonly string[];
}

/** Writes a manifest to the folder of its backup, on stable storage. */
export async function writeManifest(folder: string, manifest: Manifest): Promise<void> {
  const text = JSON.stringify(manifest);
  const sealed = { sha256: createHash("sha256").update(text).digest("hex"), manifest };
  await writeFileAtomic(join(folder, MANIFEST_FILE), `${JSON.stringify(sealed)}\n`);
}

/** Reads the manifest of a finished backup. Throws CORRUPT when a byte of it has changed. */
export function readManifest(folder: string, id: string): Manifest {
  const path = join(folder, BACKUPS_FOLDER, id, MANIFEST_FILE);
  let text: string;
  try {
    text = readFileSync(path, "utf8");
  } catch (cause) {
    throw new GroveError("CORRUPT", `${path} cannot be read: ${String(cause)}`, { cause });
  }
  let sealed: { sha256?: unknown; manifest?: Manifest };
  try {
    sealed = JSON.parse(text) as typeof sealed;
  } catch (cause) {
    throw new GroveError("CORRUPT", `${path} is damaged`, { cause });
  }
  const { sha256, manifest } = sealed;
  const sum = createHash("sha256")
    .update(JSON.stringify(manifest ?? null))
    .digest("hex");
  if (manifest === undefined || sha256 !== sum || manifest.id !== id)
    throw new GroveError("CORRUPT", `${path} is damaged`);
  requireKnownSchema(path, manifest.schema, BACKUP_SCHEMA);
  return manifest;
}

/** Length and SHA-256 of a file, read in bounded pieces. */
export function sealOf(path: string): { bytes: number; sha256: string } {
  const hash = createHash("sha256");
  const descriptor = openSync(path, "r");
  try {
    const piece = Buffer.allocUnsafe(READ_BYTES);
    let bytes = 0;
    for (;;) {
      const got = readSync(descriptor, piece, 0, piece.length, null);
      if (got === 0) return { bytes, sha256: hash.digest("hex") };
      hash.update(piece.subarray(0, got));
      bytes += got;
    }
  } finally {
    closeSync(descriptor);
  }
}

/** Lists a backup's files that differ from the manifest. */
export function fileProblems(folder: string, manifest: Manifest): string[] {
  return manifest.files.flatMap(({ path, bytes, sha256 }) => {
    try {
      const seal = sealOf(join(folder, BACKUPS_FOLDER, manifest.id, path));
      return seal.bytes === bytes && seal.sha256 === sha256 ? [] : [`${path} is damaged`];
    } catch (error) {
      return [`${path} cannot be read: ${String(error)}`];
    }
  });
}
