// Marks of damaged stored bytes in the database: chunks, and the files that use them.
import type { DatabaseSync, StatementSync } from "node:sqlite";
import type { InodeId } from "#storage/contract/inode.ts";
import type { InodeRow, InodeRows } from "./inode-rows.ts";
import { FLAG_DAMAGED } from "./schema.ts";

/**
 * Files that one command of the storage writer marks as damaged; other files of a shared chunk follow in the
 * next.
 */
export const DAMAGED_FILES_PER_COMMAND = 512;

/** Text of the refusal that a reader of a damaged file gets. */
export const damagedText =
  "the stored bytes of this file do not match their checksum; restore it from a backup, overwrite it or delete it";

/** A damaged file at the version that was read, or a damaged chunk. */
export type DamageTarget =
  | { readonly fileId: InodeId; readonly version: number }
  | { readonly chunkId: number };

/** The target to be marked, and the time of the find. */
export interface DamageMark {
  readonly target: DamageTarget;
  readonly problem: string;
  readonly nowMs: number;
}

/** Sets and clears the marks of damage. */
export class DamageRows {
  readonly #inodes: InodeRows;
  readonly #isUsed: StatementSync;
  readonly #insertChunk: StatementSync;
  readonly #unmarkedFiles: StatementSync;
  readonly #hasDamagedChunk: StatementSync;

  constructor(db: DatabaseSync, inodes: InodeRows) {
    this.#inodes = inodes;
    this.#isUsed = db.prepare("SELECT 1 FROM chunk WHERE id = ? AND refs > 0");
    this.#insertChunk = db.prepare(
      "INSERT INTO damaged_chunk (chunk_id, found_at_ms, problem) VALUES (?, ?, ?) ON CONFLICT (chunk_id) DO NOTHING",
    );
    this.#unmarkedFiles = db.prepare(
      `SELECT DISTINCT inode.id AS id, inode.flags AS flags FROM file_chunk JOIN inode ON inode.content_id = file_chunk.content_id
       WHERE file_chunk.chunk_id = ? AND (inode.flags & ${FLAG_DAMAGED}) = 0 LIMIT ?`,
    );
    this.#hasDamagedChunk = db.prepare(
      "SELECT 1 FROM file_chunk JOIN damaged_chunk USING (chunk_id) WHERE content_id = ? LIMIT 1",
    );
  }

  /**
   * Marks a file that is still at the version that was read, or a used chunk with its files. It marks at most
   * DAMAGED_FILES_PER_COMMAND files at a time and returns how many. It skips targets that have changed or
   * gone since the read.
   */
  mark({ target, problem, nowMs }: DamageMark): number {
    if ("fileId" in target) {
      const row = this.#inodes.byId(target.fileId);
      if (row === undefined || row.version !== target.version || (row.flags & FLAG_DAMAGED) !== 0) return 0;
      this.#inodes.setFlags(row.id, row.flags | FLAG_DAMAGED);
      return 1;
    }
    if (this.#isUsed.get(target.chunkId) === undefined) return 0;
    this.#insertChunk.run(target.chunkId, nowMs, problem);
    const files = this.#unmarkedFiles.all(target.chunkId, DAMAGED_FILES_PER_COMMAND) as {
      id: InodeId;
      flags: number;
    }[];
    for (const { id, flags } of files) this.#inodes.setFlags(id, flags | FLAG_DAMAGED);
    return files.length;
  }

  /** Flags of a file after some chunks were replaced: sound again once none of its chunks is damaged. */
  flagsOfNewChunks(row: InodeRow, contentId: number): number {
    if ((row.flags & FLAG_DAMAGED) === 0 || this.#hasDamagedChunk.get(contentId) !== undefined)
      return row.flags;
    return row.flags & ~FLAG_DAMAGED;
  }
}
