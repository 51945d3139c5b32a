// Content in the database: rows of small files, chunk lists of large ones, and their release when replaced.
import type { DatabaseSync, StatementSync } from "node:sqlite";
import { GroveError } from "#base/errors.ts";
import type { NewChunk } from "#storage/chunks/chunk-writer.ts";
import type { InodeId } from "#storage/contract/inode.ts";
import { SELECT_INLINE } from "./inode-columns.ts";
import type { Ledger } from "./unit-of-work.ts";

/** Rows that one slice of a background purge removes; it bounds the wait of other commands. */
export const PURGE_SLICE_ROWS = 512;
/** Removed chunk files that are unlinked together. */
export const GARBAGE_BATCH_CHUNKS = 256;

/** Chunk lists up to this length are released within the command; longer ones in slices afterwards. */
const RELEASED_AT_ONCE = 256;

/** A file's content, as the writer needs it to replace or remove it. */
export interface StoredContent {
  readonly id: InodeId;
  readonly size: number;
  readonly contentId: number | null;
}

/** Rows of inline content, chunks, chunk lists and garbage. */
export class ContentRows {
  readonly #ledger: Ledger;
  readonly #insertInline: StatementSync;
  readonly #selectInline: StatementSync;
  readonly #deleteInline: StatementSync;
  readonly #moveInline: StatementSync;
  readonly #insertChunk: StatementSync;
  readonly #insertPosition: StatementSync;
  readonly #selectPositions: StatementSync;
  readonly #selectPosition: StatementSync;
  readonly #selectAfter: StatementSync;
  readonly #addReference: StatementSync;
  readonly #chunkByName: StatementSync;
  readonly #deletePosition: StatementSync;
  readonly #dropReference: StatementSync;
  readonly #insertGarbage: StatementSync;
  readonly #deleteGarbage: StatementSync;
  readonly #deleteChunk: StatementSync;
  readonly #insertStaging: StatementSync;
  readonly #deleteStaging: StatementSync;
  readonly #insertPurging: StatementSync;
  #nextChunkId: number;
  #nextGarbage: number;

  constructor(db: DatabaseSync, ledger: Ledger) {
    this.#ledger = ledger;
    this.#insertInline = db.prepare(
      "INSERT INTO inline_content (inode_id, data) VALUES (?, ?) ON CONFLICT (inode_id) DO UPDATE SET data = excluded.data",
    );
    this.#selectInline = db.prepare(SELECT_INLINE);
    this.#deleteInline = db.prepare("DELETE FROM inline_content WHERE inode_id = ?");
    this.#moveInline = db.prepare("UPDATE inline_content SET inode_id = ? WHERE inode_id = ?");
    this.#insertChunk = db.prepare(
      "INSERT INTO chunk (id, name, length, crc32, block_crcs, refs) VALUES (?, ?, ?, ?, ?, 1)",
    );
    this.#insertPosition = db.prepare(
      "INSERT INTO file_chunk (content_id, position, chunk_id) VALUES (?, ?, ?)",
    );
    this.#selectPositions = db.prepare(
      "SELECT position, chunk_id AS chunkId FROM file_chunk WHERE content_id = ? ORDER BY position LIMIT ?",
    );
    this.#selectPosition = db.prepare(
      "SELECT position, chunk_id AS chunkId FROM file_chunk WHERE content_id = ? AND position = ?",
    );
    this.#selectAfter = db.prepare(
      "SELECT position, chunk_id AS chunkId FROM file_chunk WHERE content_id = ? AND position > ? AND position < ? ORDER BY position LIMIT ?",
    );
    this.#chunkByName = db.prepare("SELECT id, refs FROM chunk WHERE name = ?");
    this.#addReference = db.prepare("UPDATE chunk SET refs = refs + 1 WHERE id = ?");
    this.#deletePosition = db.prepare("DELETE FROM file_chunk WHERE content_id = ? AND position = ?");
    this.#dropReference = db.prepare("UPDATE chunk SET refs = refs - 1 WHERE id = ? RETURNING refs");
    this.#insertGarbage = db.prepare("INSERT INTO garbage (sequence, chunk_id) VALUES (?, ?)");
    this.#deleteGarbage = db.prepare("DELETE FROM garbage WHERE chunk_id = ?");
    this.#deleteChunk = db.prepare("DELETE FROM chunk WHERE id = ? AND refs = 0");
    this.#insertStaging = db.prepare("INSERT INTO staging (content_id, root_number) VALUES (?, ?)");
    this.#deleteStaging = db.prepare("DELETE FROM staging WHERE content_id = ?");
    this.#insertPurging = db.prepare("INSERT INTO purging (inode_id, content_id) VALUES (?, ?)");
    // Numbers are never used twice while the process lives: the main thread caches chunks by them.
    this.#nextChunkId = highest(db, "SELECT max(id) AS highest FROM chunk") + 1;
    this.#nextGarbage = highest(db, "SELECT max(sequence) AS highest FROM garbage") + 1;
  }

  /** Stores the content of a small file and replaces the old; an empty file gets no row. */
  putInline(inodeId: InodeId, data: Uint8Array): void {
    if (data.length > 0) this.#insertInline.run(inodeId, data);
    else this.#deleteInline.run(inodeId);
  }

  /** Content of a small file, empty when there is no row. */
  inline(inodeId: InodeId): Uint8Array {
    const row = this.#selectInline.get(inodeId) as { data: Uint8Array } | undefined;
    return row?.data ?? new Uint8Array(0);
  }

  /** Moves the content of a small file to another inode. */
  moveInline(fromId: InodeId, toId: InodeId): void {
    this.#moveInline.run(toId, fromId);
  }

  /** Adds chunks to a list. */
  addChunks(contentId: number, chunks: readonly NewChunk[]): void {
    for (const chunk of chunks) {
      const id = this.#nextChunkId++;
      this.#insertChunk.run(id, chunk.name, chunk.length, chunk.crc32, chunk.blockCrcs);
      this.#insertPosition.run(contentId, chunk.position, id);
    }
    if (chunks.length > 0) this.#ledger.count({ chunks: chunks.length });
  }

  /**
   * Adds the chunks between two positions of a list to another list; returns how many, and the last position.
   */
  shareChunks(
    from: number,
    to: number,
    range: { readonly after: number; readonly below: number; readonly limit: number },
  ): { readonly count: number; readonly position: number } {
    const rows = this.#selectAfter.all(from, range.after, range.below, range.limit) as {
      position: number;
      chunkId: number;
    }[];
    for (const { position, chunkId } of rows) {
      this.#insertPosition.run(to, position, chunkId);
      this.#addReference.run(chunkId);
    }
    return { count: rows.length, position: rows.at(-1)?.position ?? range.after };
  }

  /**
   * Adds a chunk that came from another node to a list. False while a former chunk of this name waits for the
   * removal of its file.
   */
  adoptChunk(contentId: number, chunk: NewChunk): boolean {
    const present = this.#chunkByName.get(chunk.name) as { id: number; refs: number } | undefined;
    if (present === undefined) {
      this.addChunks(contentId, [chunk]);
      return true;
    }
    if (present.refs === 0) return false;
    this.#insertPosition.run(contentId, chunk.position, present.id);
    this.#addReference.run(present.id);
    return true;
  }

  /** Removes the chunk at a position from a list, if there is one. */
  releasePosition(contentId: number, position: number): void {
    const row = this.#selectPosition.get(contentId, position) as { chunkId: number } | undefined;
    if (row !== undefined) this.#release(contentId, position, row.chunkId);
  }

  /**
   * Releases a file's content: at once when it is short, otherwise in slices later. Returns the rows handled.
   */
  release(content: StoredContent): number {
    if (content.contentId === null) {
      if (content.size > 0) this.#deleteInline.run(content.id);
      return 1;
    }
    const { contentId } = content;
    const rows = this.#selectPositions.all(contentId, RELEASED_AT_ONCE + 1) as {
      position: number;
      chunkId: number;
    }[];
    if (rows.length > RELEASED_AT_ONCE) {
      this.purgeLater({ contentId });
      return 1;
    }
    for (const row of rows) this.#release(contentId, row.position, row.chunkId);
    return rows.length + 1;
  }

  /** Releases a slice of a long list; false when nothing is left of it. */
  releaseSlice(contentId: number): boolean {
    const rows = this.#selectPositions.all(contentId, PURGE_SLICE_ROWS) as {
      position: number;
      chunkId: number;
    }[];
    for (const row of rows) this.#release(contentId, row.position, row.chunkId);
    return rows.length === PURGE_SLICE_ROWS;
  }

  /** Marks a detached directory or a chunk list for removal in slices. */
  purgeLater(target: { readonly inodeId: InodeId } | { readonly contentId: number }): void {
    if ("inodeId" in target) this.#insertPurging.run(target.inodeId, null);
    else this.#insertPurging.run(null, target.contentId);
  }

  /** Marks a list as staged by an unfinished upload. */
  stage(contentId: number, rootNumber: number): void {
    this.#insertStaging.run(contentId, rootNumber);
  }

  /** Clears that mark; false when there was none. */
  unstage(contentId: number): boolean {
    return this.#deleteStaging.run(contentId).changes === 1;
  }

  /** Forgets chunks whose files were removed. */
  dropGarbage(chunkIds: readonly number[]): void {
    for (const id of chunkIds) {
      if (this.#deleteGarbage.run(id).changes !== 1 || this.#deleteChunk.run(id).changes !== 1) {
        throw new GroveError("INTERNAL", "a chunk that is in use was to be forgotten");
      }
    }
    this.#ledger.count({ garbage: -chunkIds.length });
  }

  #release(contentId: number, position: number, chunkId: number): void {
    this.#deletePosition.run(contentId, position);
    const { refs } = this.#dropReference.get(chunkId) as { refs: number };
    if (refs > 0) return;
    this.#insertGarbage.run(this.#nextGarbage++, chunkId);
    this.#ledger.count({ chunks: -1, garbage: 1 });
  }
}

function highest(db: DatabaseSync, sql: string): number {
  return (db.prepare(sql).get() as { highest: number | null }).highest ?? 0;
}
