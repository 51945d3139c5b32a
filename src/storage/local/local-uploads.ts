// Resumable uploads on one machine: rows in the database, chunks beside it, a sink per stream (decision D15).
import type { StatementSync } from "node:sqlite";
import type { Clock } from "#base/clock.ts";
import { UPLOAD_IDLE_MS } from "#base/limits.ts";
import type { ContentElsewhere } from "#storage/contract/content-elsewhere.ts";
import type { Counted } from "#storage/contract/inode.ts";
import type {
  NewUpload,
  ResumableSink,
  StagingChange,
  StoredUpload,
  UploadStore,
} from "#storage/contract/upload-store.ts";
import { IS_HERE } from "#storage/metadata/moved-roots.ts";
import type { SnapshotTables } from "#storage/metadata/snapshot-reader.ts";
import { noSuchUpload } from "#storage/writer/upload-commands.ts";
import type { WriteQueue } from "#storage/writer/write-queue.ts";
import type { ResumePoint } from "./upload-sink.ts";

/**
 * After a start no upload expires before this, since the clock may have been set while the machine was off.
 */
export const UPLOAD_RESTART_GRACE_MS: number = 60 * 60_000;

const COLUMNS = `upload_id, root.owner, upload.username, path, size, replaces, if_match, mtime_ms, staged_bytes, touched_at_ms, content_id, crc32
  FROM upload JOIN root ON root.number = root_number AND ${IS_HERE}`;
type Row = [
  string,
  string,
  string,
  string,
  number,
  number,
  string | null,
  number,
  number,
  number,
  number,
  number,
];

/** Dependencies of the upload store. */
export interface LocalUploadsDeps {
  readonly queue: Pick<WriteQueue, "submit">;
  readonly tables: SnapshotTables;
  readonly clock: Clock;
  /** Makes the sink of one stream. */
  readonly openSink: (
    upload: StoredUpload,
    point: ResumePoint,
    onStaged: (change: StagingChange) => void,
    elsewhere: ContentElsewhere | undefined,
  ) => ResumableSink;
}

/** See UploadStore. */
export class LocalUploads implements UploadStore {
  readonly #deps: LocalUploadsDeps;
  readonly #one: StatementSync;
  readonly #untouched: StatementSync;
  readonly #shutOut: StatementSync;
  readonly #ofUser: StatementSync;
  readonly #wallAtStartMs: number;
  readonly #steadyAtStartMs: number;

  constructor(deps: LocalUploadsDeps) {
    this.#deps = deps;
    const { tables } = deps;
    this.#one = tables.prepare(`SELECT ${COLUMNS} WHERE upload_id = ?`);
    this.#untouched = tables.prepare(
      `SELECT ${COLUMNS} WHERE touched_at_ms <= ? AND (touched_at_ms, upload_id) > (?, ?)
       ORDER BY touched_at_ms, upload_id LIMIT ?`,
    );
    this.#shutOut = tables.prepare(
      `SELECT ${COLUMNS} WHERE upload_id > ? AND username <> owner AND coalesce((SELECT held.excluded FROM share_grant AS held
       WHERE held.username = upload.username AND held.owner = root.owner
         AND (held.path IN ('/', upload.path) OR substr(upload.path, 1, length(held.path) + 1) = held.path || '/')
       ORDER BY length(held.path) DESC LIMIT 1), 1) = 1 ORDER BY upload_id LIMIT ?`,
    );
    this.#ofUser = tables.prepare(`SELECT ${COLUMNS} WHERE upload.username = ? LIMIT ?`);
    this.#wallAtStartMs = Math.trunc(deps.clock.wallMs());
    this.#steadyAtStartMs = deps.clock.steadyMs();
  }

  /**
   * The time off is unknown, since the clock may have been wrong then or may be so now. At a start no
   * upload's time is in the future, and none is so old that it expires before its client can return.
   */
  async boundTimes(): Promise<void> {
    const latestMs = this.nowMs();
    const earliestMs = latestMs - UPLOAD_IDLE_MS + UPLOAD_RESTART_GRACE_MS;
    await this.#deps.queue.submit({ op: "boundUploadTimes", earliestMs, latestMs });
  }

  nowMs(): number {
    return this.#wallAtStartMs + Math.trunc(this.#deps.clock.steadyMs() - this.#steadyAtStartMs);
  }

  async create(upload: NewUpload): Promise<StoredUpload> {
    const { accessVersion, ...rest } = upload;
    const nowMs = this.nowMs();
    await this.#deps.queue.submit({ op: "createUpload", accessVersion, ...rest, nowMs });
    return { ...rest, stagedBytes: 0, touchedAtMs: nowMs };
  }

  find(uploadId: string): StoredUpload | undefined {
    return this.#find(uploadId)?.upload;
  }

  open(
    uploadId: string,
    onStaged: (change: StagingChange) => void,
    elsewhere?: ContentElsewhere,
  ): ResumableSink {
    const found = this.#find(uploadId);
    if (found === undefined) throw noSuchUpload();
    return this.#deps.openSink(found.upload, found.point, onStaged, elsewhere);
  }

  drop(uploadId: string): Promise<Counted<StagingChange>> {
    return this.#deps.queue.submit({ op: "dropUpload", uploadId });
  }

  untouchedSince(timeMs: number, limit: number, after?: StoredUpload): StoredUpload[] {
    const { touchedAtMs, uploadId } = after ?? { touchedAtMs: Number.MIN_SAFE_INTEGER, uploadId: "" };
    return this.#deps.tables.read(() => toUploads(this.#untouched.all(timeMs, touchedAtMs, uploadId, limit)));
  }

  shutOut(limit: number, after?: StoredUpload): StoredUpload[] {
    return this.#deps.tables.read(() => toUploads(this.#shutOut.all(after?.uploadId ?? "", limit)));
  }

  ofUser(username: string, limit: number): StoredUpload[] {
    return this.#deps.tables.read(() => toUploads(this.#ofUser.all(username, limit)));
  }

  #find(uploadId: string): { upload: StoredUpload; point: ResumePoint } | undefined {
    const row = this.#deps.tables.read(() => this.#one.get(uploadId) as Row | undefined);
    return row === undefined ? undefined : toUpload(row);
  }
}

function toUploads(rows: unknown): StoredUpload[] {
  return (rows as Row[]).map((row) => toUpload(row).upload);
}

function toUpload(row: Row): { upload: StoredUpload; point: ResumePoint } {
  const [uploadId, owner, by, path, sizeBytes, replaces, ifMatch, mtimeMs, offsetBytes, touchedAtMs] = row;
  const onExists = replaces === 1 ? "replace" : "fail";
  return {
    upload: {
      uploadId,
      owner,
      by,
      path,
      sizeBytes,
      onExists,
      ifMatch: ifMatch ?? undefined,
      mtimeMs,
      stagedBytes: offsetBytes,
      touchedAtMs,
    },
    point: { contentId: row[10], offsetBytes, crc32: row[11] },
  };
}
