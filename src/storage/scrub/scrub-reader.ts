// Reads stored bytes and reports damage, one bounded step at a time; runs in the scrub's thread.
import type { DatabaseSync, StatementSync } from "node:sqlite";
import { crc32 } from "#os/crc32.ts";
import { blockProblems, checksumProblem, lengthProblem } from "#storage/chunks/chunk-check.ts";
import { chunkPath } from "#storage/chunks/chunk-names.ts";
import { ListChecksum, type ListedChunk } from "#storage/chunks/list-checksum.ts";
import type { ScrubFinding, ScrubPass } from "#storage/contract/scrub-types.ts";
import { KIND_FILE } from "#storage/metadata/schema.ts";

/** Rows that the scrub reads in one query. */
const SCRUB_ROWS = 256;
/** Content of small files that the scrub reads in one query. */
const SCRUB_INLINE_BYTES = 1_048_576;

/** Said of a file whose chunks are not those of its checksum. */
export const LIST_PROBLEM = "a large file's chunks do not give its checksum";

interface ChunkRow {
  readonly id: number;
  readonly name: string;
  readonly length: number;
  readonly crc32: number;
  readonly blockCrcs: Uint8Array;
}

/** A row of a file, with the bytes of a small one. */
export interface FileRow {
  readonly id: number;
  readonly kind: number;
  readonly size: number;
  readonly crc32: number;
  readonly version: number;
  readonly contentId: number | null;
  readonly data: Uint8Array | null;
}

/** A step's result: bytes read or a finding, and the pass after it. */
export interface ScrubStep {
  readonly pass: ScrubPass;
  readonly readBytes: number;
  readonly found: ScrubFinding | undefined;
}

/** Cost of a row in bytes, so that a node with many inodes and few bytes is read gently too. */
export const ROW_BYTES = 512;
/** Cost of a finding, so that a failed disk does not fill the writer's queue with marks. */
export const FOUND_BYTES = 65_536;

/** One pass over everything, from its saved progress. */
export class ScrubReader {
  readonly #directory: string;
  readonly #db: DatabaseSync;
  readonly #chunks: StatementSync;
  readonly #chunk: StatementSync;
  readonly #files: StatementSync;
  readonly #list: StatementSync;
  readonly #version: StatementSync;

  constructor(db: DatabaseSync, directory: string) {
    this.#directory = directory;
    this.#db = db;
    const chunk = "SELECT id, name, length, crc32, block_crcs AS blockCrcs FROM chunk WHERE refs > 0 AND";
    this.#chunks = db.prepare(`${chunk} id > ? AND id <= ? ORDER BY id LIMIT ${SCRUB_ROWS}`);
    this.#chunk = db.prepare(`${chunk} id = ?`);
    this.#files = db.prepare(
      `SELECT id, kind, size, crc32, version, content_id AS contentId, CAST(data AS BLOB) AS data
       FROM inode LEFT JOIN inline_content ON inode_id = id WHERE id > ? ORDER BY id LIMIT ${SCRUB_ROWS}`,
    );
    this.#list = db.prepare(
      `SELECT position, length, crc32 FROM file_chunk JOIN chunk ON chunk.id = chunk_id
       WHERE content_id = ? AND position > ? ORDER BY position LIMIT ${SCRUB_ROWS}`,
    );
    this.#version = db.prepare("SELECT 1 FROM inode WHERE id = ? AND version = ?");
  }

  /**
   * The rest of a pass. Throws SQLite's errors for a broken database, and system errors for want of
   * descriptors.
   */
  *steps(from: ScrubPass): Generator<ScrubStep> {
    let pass = from;
    if (pass.part === "chunks") {
      for (const step of this.#chunkSteps(pass)) {
        pass = step.pass;
        yield step;
      }
      pass = { ...pass, part: "files", position: 0 };
    }
    if (pass.part === "files") {
      for (const step of this.#fileSteps(pass)) {
        pass = step.pass;
        yield step;
      }
      pass = { ...pass, part: "database", position: 0 };
    }
    yield* this.#tableSteps(pass);
  }

  *#chunkSteps(from: ScrubPass): Generator<ScrubStep> {
    let pass = from;
    for (;;) {
      const rows = this.#chunks.all(pass.position, pass.lastChunk) as unknown as ChunkRow[];
      for (const row of rows) {
        for (const step of this.#readChunk(row, pass)) {
          pass = step.pass;
          yield step;
        }
      }
      if (rows.length < SCRUB_ROWS) return;
    }
  }

  *#readChunk(row: ChunkRow, from: ScrubPass): Generator<ScrubStep> {
    let pass = from;
    const path = chunkPath(this.#directory, row.name);
    let problem = checksumProblem(row) ?? lengthProblem(path, row.length);
    const blocks = blockProblems(path, row);
    try {
      for (let block = blocks.next(); problem === undefined; block = blocks.next()) {
        if (block.done === true) {
          problem = block.value;
          break;
        }
        pass = { ...pass, readBytes: pass.readBytes + block.value };
        yield { pass, readBytes: block.value, found: undefined };
      }
    } finally {
      // Closes the file when the scrub is stopped halfway.
      blocks.return(undefined);
    }
    pass = { ...pass, position: row.id };
    // Its file may have been removed with it since the row was read.
    if (problem === undefined || this.#chunk.get(row.id) === undefined) {
      yield { pass, readBytes: ROW_BYTES, found: undefined };
      return;
    }
    pass = { ...pass, found: pass.found + 1 };
    yield { pass, readBytes: FOUND_BYTES, found: { kind: "chunk", chunkId: row.id, problem } };
  }

  *#fileSteps(from: ScrubPass): Generator<ScrubStep> {
    let pass = from;
    for (;;) {
      const { rows, isEnd } = this.#nextFiles(pass.position);
      let readBytes = 0;
      for (const row of rows) {
        readBytes += ROW_BYTES + (row.data?.length ?? 0);
        let problem = smallFileProblem(row);
        if (row.contentId !== null) {
          for (const step of this.#readList(row, row.contentId)) {
            if (typeof step === "number") yield { pass, readBytes: step, found: undefined };
            else ({ problem } = step);
          }
        }
        pass = { ...pass, position: row.id };
        if (problem === undefined) continue;
        pass = { ...pass, found: pass.found + 1 };
        const { id: fileId, version } = row;
        yield { pass, readBytes: FOUND_BYTES, found: { kind: "file", fileId, version, problem } };
      }
      pass = { ...pass, readBytes: pass.readBytes + readBytes };
      yield { pass, readBytes, found: undefined };
      if (isEnd) return;
    }
  }

  /** Yields the cost of each query on a list of chunks, and at last returns what is wrong with it. */
  *#readList(file: FileRow, contentId: number): Generator<number | { problem: string | undefined }> {
    const list = new ListChecksum();
    for (let after = -1, isEnd = false; !isEnd; ) {
      const rows = this.#list.all(contentId, after) as unknown as ListedChunk[];
      for (const row of rows) list.add(row);
      after = rows.at(-1)?.position ?? after;
      isEnd = rows.length < SCRUB_ROWS;
      yield rows.length * ROW_BYTES;
    }
    if (list.endBytes <= file.size && list.crcOf(file.size) === file.crc32) return;
    // It may have been changed or removed during the read.
    if (this.#version.get(file.id, file.version) === undefined) return;
    yield { problem: LIST_PROBLEM };
  }

  /** Rows of one short query: a long snapshot would keep the writer from reusing the log. */
  #nextFiles(position: number): { rows: FileRow[]; isEnd: boolean } {
    const rows: FileRow[] = [];
    let bytes = 0;
    for (const row of this.#files.iterate(position) as Iterable<unknown> as Iterable<FileRow>) {
      rows.push(row);
      bytes += row.data?.length ?? 0;
      if (bytes >= SCRUB_INLINE_BYTES) return { rows, isEnd: false };
    }
    return { rows, isEnd: rows.length < SCRUB_ROWS };
  }

  /** SQLite's own check, table by table, so that each query stays short. */
  *#tableSteps(from: ScrubPass): Generator<ScrubStep> {
    const tables = this.#db
      .prepare("SELECT name FROM sqlite_schema WHERE type = 'table' ORDER BY name")
      .all();
    let pass = from;
    for (const [index, { name }] of (tables as { name: string }[]).entries()) {
      if (index < from.position) continue;
      const rows = this.#db.prepare(`PRAGMA integrity_check("${name}")`).all() as {
        integrity_check: string;
      }[];
      const problem = rows.find((row) => row.integrity_check !== "ok")?.integrity_check;
      pass = { ...pass, position: index + 1 };
      if (problem === undefined) yield { pass, readBytes: ROW_BYTES, found: undefined };
      else
        yield {
          pass: { ...pass, found: pass.found + 1 },
          readBytes: 0,
          found: { kind: "database", problem },
        };
    }
  }
}

/** Says what is wrong with a file whose bytes lie in the database; undefined for every other inode. */
export function smallFileProblem({
  kind,
  contentId,
  size,
  crc32: wanted,
  data,
}: FileRow): string | undefined {
  if (kind !== KIND_FILE || contentId !== null) return undefined;
  if ((data?.length ?? 0) !== size) return `a small file of ${size} bytes has ${data?.length ?? 0}`;
  if (data === null || crc32(data) === wanted) return undefined;
  return "a small file does not match its checksum";
}
