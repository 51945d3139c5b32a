// Compares unfinished uploads with the chunks that they have staged.
import type { DatabaseSync } from "node:sqlite";
import { crc32Combine } from "#base/crc32-combine.ts";
import { CHUNK_BYTES } from "#base/limits.ts";
import type { Findings } from "./check-report.ts";

interface UploadRow {
  readonly contentId: number;
  readonly uploadId: string;
  readonly size: number;
  readonly stagedBytes: number;
  readonly crc32: number;
}

/**
 * An upload's staged bytes must be whole chunks from the start of its file, or all of it, with the stored
 * checksum. A repair drops any other upload: its sender starts again, and its staged chunks go to the purge.
 */
export function checkUploads(db: DatabaseSync, findings: Findings, repair: boolean): void {
  const uploads = db.prepare(
    "SELECT content_id AS contentId, upload_id AS uploadId, size, staged_bytes AS stagedBytes, crc32 FROM upload",
  );
  for (const upload of uploads.all() as unknown as UploadRow[]) {
    const problem = uploadProblem(db, upload);
    if (problem === undefined) continue;
    if (repair) {
      db.prepare("DELETE FROM upload WHERE content_id = ?").run(upload.contentId);
      db.prepare("INSERT INTO purging (content_id) VALUES (?)").run(upload.contentId);
    }
    findings.difference(`unfinished upload ${upload.uploadId} ${problem}`, repair);
  }
}

function uploadProblem(db: DatabaseSync, upload: UploadRow): string | undefined {
  const chunks = db.prepare(
    "SELECT position, length, crc32 FROM file_chunk JOIN chunk ON chunk.id = chunk_id WHERE content_id = ? ORDER BY position",
  );
  let bytes = 0;
  let crc = 0;
  for (const chunk of chunks.iterate(upload.contentId) as Iterable<{
    position: number;
    length: number;
    crc32: number;
  }>) {
    if (chunk.position * CHUNK_BYTES !== bytes) return "has a gap";
    bytes += chunk.length;
    // The last chunk, after everything was sent and only the commit was refused.
    if (chunk.length !== CHUNK_BYTES && bytes !== upload.size) return "has a gap";
    crc = crc32Combine(crc, chunk.crc32, chunk.length);
  }
  if (bytes !== upload.stagedBytes) return `says ${upload.stagedBytes} staged bytes; there are ${bytes}`;
  if (bytes > upload.size) return "has staged more than it announced";
  return crc === upload.crc32 ? undefined : "has another checksum than its chunks";
}
