// Rows of a moving root in buckets, as lines of JSON with ids counted within the root.
import { createHash } from "node:crypto";
import type { StatementSync } from "node:sqlite";
import { GroveError } from "#base/errors.ts";
import { CHUNK_BYTES } from "#base/limits.ts";
import { isChunkName } from "#storage/chunks/chunk-names.ts";
import { ROOT_STRIDE } from "#storage/contract/inode.ts";
import type { MoveBucket, MoveBucketKey, MovedChunk } from "#storage/contract/root-move.ts";

/** Ids of a bucket of kind 0, positions of one of kind 1, ids of one of kind 2, as powers of two. */
export const MOVE_BUCKET_BITS = [8, 12, 4] as const;

/** A value of a row; bytes travel in base64. */
export type MoveValue = string | number | null;

/** A row: the table's letter and its values. */
export type MoveRow = readonly [table: string, ...values: MoveValue[]];

const RANGE = "BETWEEN ?2 AND ?3";

/** Tables of kind 0, each with its letter; ?1 is the id before the root's first. */
const TABLES: readonly (readonly [letter: string, sql: string])[] = [
  [
    "i",
    `SELECT id - ?1, parent_id - ?1, name, kind, size, crc32, version, mtime_ms, ctime_ms, flags, content_id - ?1,
       created_by, child_count, tree_inodes, tree_files, height FROM inode WHERE id ${RANGE} ORDER BY id`,
  ],
  [
    "g",
    `SELECT inode_id - ?1, username, granted_by, granted_at_ms, path, excluded FROM share_grant
     WHERE inode_id ${RANGE} ORDER BY inode_id, username`,
  ],
  [
    "t",
    `SELECT inode_id - ?1, id, original_path, trashed_at_ms, trashed_by FROM trash WHERE inode_id ${RANGE}
     ORDER BY inode_id`,
  ],
  [
    "f",
    `SELECT inode_id - ?1, trash_id, username, path, excluded FROM trash_grant WHERE inode_id ${RANGE}
     ORDER BY inode_id, trash_id, username`,
  ],
  [
    "l",
    `SELECT inode_id - ?1, token, username, credential, is_exclusive, is_deep, note, expires_at_ms FROM lock
     WHERE inode_id ${RANGE} ORDER BY inode_id, token`,
  ],
  [
    "k",
    `SELECT inode_id - ?1, id, token_hash, kind, password, pass_key, created_ms, ends_ms, max_downloads, max_bytes,
       max_files, downloads, bytes, files, recent FROM link WHERE inode_id ${RANGE} ORDER BY inode_id, id`,
  ],
  ["y", `SELECT inode_id - ?1, namespace, name, xml FROM property WHERE inode_id ${RANGE} ORDER BY 1, 2, 3`],
  [
    "u",
    `SELECT content_id - ?1, upload_id, username, path, size, replaces, if_match, mtime_ms, staged_bytes, crc32,
       touched_at_ms FROM upload WHERE content_id ${RANGE} ORDER BY content_id`,
  ],
  [
    "p",
    // What is under removal here, and copies that would be, after a restart.
    `SELECT inode_id - ?1 AS inode, NULL AS content FROM purging WHERE inode_id ${RANGE}
     UNION SELECT NULL, content_id - ?1 FROM purging WHERE content_id ${RANGE}
     UNION SELECT inode_id - ?1, NULL FROM copying WHERE inode_id ${RANGE} ORDER BY 1, 2`,
  ],
];

// Lists of uploads that are no resumable ones stay behind: their senders begin again.
const POSITIONS = `SELECT content_id - ?1, position, name, length, chunk.crc32, block_crcs, found_at_ms, problem
  FROM file_chunk JOIN chunk ON chunk.id = file_chunk.chunk_id LEFT JOIN damaged_chunk ON damaged_chunk.chunk_id = chunk.id
  WHERE content_id = ?2 AND position BETWEEN ?3 AND ?4
    AND NOT EXISTS (SELECT 1 FROM staging WHERE staging.content_id = file_chunk.content_id) ORDER BY position`;

const INLINE = `SELECT inode_id - ?1, data FROM inline_content WHERE inode_id ${RANGE} ORDER BY inode_id`;

/** Reads buckets through one connection. Its statements give rows as arrays. */
export class MoveRows {
  readonly #tables: readonly (readonly [string, StatementSync])[];
  readonly #positions: StatementSync;
  readonly #inline: StatementSync;

  constructor(prepare: (sql: string) => StatementSync) {
    this.#tables = TABLES.map(([letter, sql]) => [letter, prepare(sql)]);
    this.#positions = prepare(POSITIONS);
    this.#inline = prepare(INLINE);
  }

  /** The lines of a bucket of the root with this number, in a fixed order. */
  lines(number: number, key: MoveBucketKey): string[] {
    const base = number * ROOT_STRIDE;
    if (key.kind === 1) {
      const from = key.b * 2 ** MOVE_BUCKET_BITS[1];
      const rows = this.#positions.all(
        base,
        base + key.a,
        from,
        from + 2 ** MOVE_BUCKET_BITS[1] - 1,
      ) as unknown as unknown[][];
      return rows.map((row) => lineOf("c", row));
    }
    const [from, to] = idsOf(number, key);
    if (key.kind === 2) {
      return (this.#inline.all(base, from, to) as unknown as unknown[][]).map((row) => lineOf("d", row));
    }
    return this.#tables.flatMap(([letter, statement]) =>
      (statement.all(base, from, to) as unknown as unknown[][]).map((row) => lineOf(letter, row)),
    );
  }
}

/** First and last id of a bucket of kind 0 or 2. */
export function idsOf(number: number, { kind, a }: MoveBucketKey): readonly [from: number, to: number] {
  const span = 2 ** MOVE_BUCKET_BITS[kind];
  const from = number * ROOT_STRIDE + a * span;
  return [from, from + span - 1];
}

/** SHA-256 of lines. */
export function linesChecksum(lines: readonly string[]): string {
  const hash = createHash("sha256");
  for (const line of lines) hash.update(line).update("\n");
  return hash.digest("hex");
}

/** The row of a line. Throws BAD_ARGUMENT for what no node sends. */
export function rowOf(line: string): MoveRow {
  const row: unknown = JSON.parse(line);
  if (Array.isArray(row) && typeof row[0] === "string" && row.every(isValue)) {
    return row as unknown as MoveRow;
  }
  throw new GroveError("BAD_ARGUMENT", "a row of a moving root is malformed");
}

/** Chunks that buckets name, each once. Throws BAD_ARGUMENT for what is none. */
export function chunksOf(buckets: readonly MoveBucket[]): ReadonlyMap<string, MovedChunk> {
  const chunks = new Map<string, MovedChunk>();
  for (const line of buckets.flatMap(({ kind, lines }) => (kind === 1 ? lines : []))) {
    const [, , , name, length, crc, , , problem] = rowOf(line);
    const chunk = { name: String(name), length: Number(length), crc32: Number(crc) };
    if (!isChunkName(chunk.name)) throw new GroveError("BAD_ARGUMENT", "this is no name of a chunk");
    if (!(chunk.length > 0 && chunk.length <= CHUNK_BYTES)) {
      throw new GroveError("BAD_ARGUMENT", "a chunk of a moving root is longer than chunks are");
    }
    chunks.set(chunk.name, { ...chunk, isDamaged: problem != null });
  }
  return chunks;
}

function isValue(value: unknown): value is MoveValue {
  return value === null || typeof value === "string" || Number.isSafeInteger(value);
}

function lineOf(letter: string, row: readonly unknown[]): string {
  return JSON.stringify([
    letter,
    ...row.map((value) => (value instanceof Uint8Array ? Buffer.from(value).toString("base64") : value)),
  ]);
}
