// Commands on resumable uploads: begun, staged chunk by chunk, dropped, or taken over by their commit
// (decision D15).
import type { DatabaseSync, StatementSync } from "node:sqlite";
import { crc32Combine } from "#base/crc32-combine.ts";
import { GroveError } from "#base/errors.ts";
import { CHUNK_BYTES } from "#base/limits.ts";
import type { StagingChange } from "#storage/contract/upload-store.ts";
import type { ContentRows } from "#storage/metadata/content-rows.ts";
import { type Ledger, type RootState, usageOf } from "#storage/metadata/unit-of-work.ts";
import type {
  BoundUploadTimesCommand,
  CreateUploadCommand,
  DropUploadCommand,
  StageUploadCommand,
} from "#storage/metadata/upload-messages.ts";

/** Unfinished resumable uploads kept for one user; more are answered TOO_MANY_UPLOADS (decision D15). */
export const UPLOADS_KEPT_PER_USER = 256;

interface UploadRow {
  readonly contentId: number;
  readonly stagedBytes: number;
  readonly crc32: number;
  readonly sizeBytes: number;
}

/** Commands on resumable uploads; run one at a time within a transaction. */
export class UploadCommands {
  readonly #ledger: Ledger;
  readonly #content: ContentRows;
  readonly #select: StatementSync;
  readonly #count: StatementSync;
  readonly #insert: StatementSync;
  readonly #update: StatementSync;
  readonly #delete: StatementSync;
  readonly #bound: StatementSync;

  constructor(db: DatabaseSync, rows: { ledger: Ledger; content: ContentRows }) {
    this.#ledger = rows.ledger;
    this.#content = rows.content;
    this.#select = db.prepare(
      "SELECT content_id AS contentId, staged_bytes AS stagedBytes, crc32, size AS sizeBytes FROM upload WHERE upload_id = ?",
    );
    this.#count = db.prepare("SELECT count(*) AS count FROM upload WHERE username = ?");
    this.#insert = db.prepare(
      `INSERT INTO upload (content_id, upload_id, root_number, username, path, size, replaces, if_match, mtime_ms, staged_bytes, crc32,
         touched_at_ms)
       VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, 0, 0, ?)`,
    );
    this.#update = db.prepare(
      "UPDATE upload SET staged_bytes = ?, crc32 = ?, touched_at_ms = ? WHERE content_id = ?",
    );
    this.#delete = db.prepare("DELETE FROM upload WHERE content_id = ?");
    this.#bound = db.prepare(
      "UPDATE upload SET touched_at_ms = min(max(touched_at_ms, ?1), ?2) WHERE touched_at_ms NOT BETWEEN ?1 AND ?2",
    );
  }

  create(command: CreateUploadCommand): undefined {
    const root = this.#ledger.root(command.owner, command.accessVersion);
    const { count } = this.#count.get(command.by) as { count: number };
    if (count >= UPLOADS_KEPT_PER_USER) {
      throw new GroveError(
        "TOO_MANY_UPLOADS",
        `you have ${count} unfinished uploads, which is as many as are kept; finish or abort one, or wait until they expire`,
        { metadata: { uploads: String(count), limit: String(UPLOADS_KEPT_PER_USER) } },
      );
    }
    this.#insert.run(
      this.#ledger.takeId(root),
      command.uploadId,
      root.number,
      command.by,
      command.path,
      command.sizeBytes,
      command.onExists === "replace" ? 1 : 0,
      command.ifMatch ?? null,
      command.mtimeMs,
      command.nowMs,
    );
    return undefined;
  }

  stage({ uploadId, chunks, nowMs }: StageUploadCommand): StagingChange {
    const row = this.#row(uploadId);
    let { stagedBytes, crc32 } = row;
    for (const chunk of chunks) {
      if (chunk.position * CHUNK_BYTES !== stagedBytes) {
        throw new GroveError("INTERNAL", "a chunk was staged that does not follow the one before");
      }
      stagedBytes += chunk.length;
      crc32 = crc32Combine(crc32, chunk.crc32, chunk.length);
    }
    this.#content.addChunks(row.contentId, chunks);
    this.#update.run(stagedBytes, crc32, nowMs, row.contentId);
    return this.#changed(row, stagedBytes - row.stagedBytes);
  }

  drop({ uploadId }: DropUploadCommand): StagingChange {
    const row = this.#row(uploadId);
    this.#delete.run(row.contentId);
    if (row.stagedBytes > 0) this.#content.purgeLater({ contentId: row.contentId });
    return this.#changed(row, -row.stagedBytes);
  }

  /** Gives an upload's chunk list to the file that it becomes; its bytes no longer count as staged. */
  take(uploadId: string, root: RootState): { contentId: number; stagedBytes: number } {
    const { contentId, stagedBytes } = this.#row(uploadId);
    this.#delete.run(contentId);
    this.#ledger.addBytes(root, "stagingBytes", -stagedBytes);
    return { contentId, stagedBytes };
  }

  boundTimes({ earliestMs, latestMs }: BoundUploadTimesCommand): void {
    this.#bound.run(earliestMs, latestMs);
  }

  #row(uploadId: string): UploadRow {
    const row = this.#select.get(uploadId) as UploadRow | undefined;
    if (row === undefined) throw noSuchUpload();
    return row;
  }

  #changed({ contentId }: UploadRow, bytes: number): StagingChange {
    const root = this.#ledger.rootOfId(contentId);
    if (root === undefined) throw new GroveError("INTERNAL", "an upload belongs to no root");
    this.#ledger.frozen.requireChangeable(root.number);
    this.#ledger.addBytes(root, "stagingBytes", bytes);
    return { usage: usageOf(root), usedDeltaBytes: bytes };
  }
}

/** The refusal for an upload that has ended, never began, or belongs to another user. */
export function noSuchUpload(): GroveError {
  return new GroveError(
    "NO_SUCH_UPLOAD",
    "there is no such upload; it is finished, was aborted or has expired",
  );
}
