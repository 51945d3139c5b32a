// Rows of a root that arrives from another node: each bucket replaces what came of it before.
import type { DatabaseSync, StatementSync } from "node:sqlite";
import { GroveError } from "#base/errors.ts";
import { type InodeId, ROOT_STRIDE } from "#storage/contract/inode.ts";
import type { MoveBucket, MoveBucketKey, MovedRootHead, MoveReceipt } from "#storage/contract/root-move.ts";
import type { ContentRows } from "#storage/metadata/content-rows.ts";
import {
  idsOf,
  linesChecksum,
  MOVE_BUCKET_BITS,
  type MoveRow,
  MoveRows,
  type MoveValue,
  rowOf,
} from "#storage/metadata/move-rows.ts";
import type { MoveSums } from "#storage/metadata/move-sums.ts";
import { ARRIVING } from "#storage/metadata/moved-roots.ts";
import type { Ledger } from "#storage/metadata/unit-of-work.ts";

/** Buckets of a content's positions, which are integers of 32 bits. */
const POSITION_BUCKETS = 2 ** (32 - MOVE_BUCKET_BITS[1]);
/** Rows that one command of a dropped import removes. */
const DROPPED_AT_ONCE = 4_096;

/** A root on its way, under the number that it has here. */
interface Arrival {
  readonly number: number;
  readonly moveId: string;
}

/** One whose changed buckets are told before they change. */
interface ChangingArrival extends Arrival {
  readonly about: (key: MoveBucketKey) => void;
}

/** How a table's rows are replaced. */
interface Arriving {
  readonly remove: StatementSync;
  readonly insert: StatementSync;
  /** Values of the statement from those of the line. */
  readonly values: (at: Arrival, values: readonly MoveValue[]) => (MoveValue | Uint8Array)[];
}

/** What arrivals work on. */
export interface MoveArrivalsDeps {
  readonly ledger: Ledger;
  readonly content: ContentRows;
  readonly sums: MoveSums;
}

/** Puts, finishes and drops. Foreign keys are off meanwhile: rows may refer to later ones. */
export class MoveArrivals {
  readonly #db: DatabaseSync;
  readonly #ledger: Ledger;
  readonly #content: ContentRows;
  readonly #sums: MoveSums;
  readonly #rows: MoveRows;
  readonly #tables: ReadonlyMap<string, Arriving>;
  readonly #inTheWay: StatementSync;
  readonly #removeInode: StatementSync;
  readonly #positions: StatementSync;
  readonly #damaged: StatementSync;
  readonly #record: StatementSync;
  readonly #forget: StatementSync;

  constructor(db: DatabaseSync, { ledger, content, sums }: MoveArrivalsDeps) {
    this.#db = db;
    this.#ledger = ledger;
    this.#content = content;
    this.#sums = sums;
    this.#rows = new MoveRows((sql) => {
      const statement = db.prepare(sql);
      statement.setReturnArrays(true);
      return statement;
    });
    this.#tables = tablesOf(db);
    this.#inTheWay = db.prepare("SELECT id FROM inode WHERE parent_id = ? AND name = ?");
    this.#removeInode = db.prepare("DELETE FROM inode WHERE id = ?");
    this.#positions = db.prepare(
      `SELECT position, name FROM file_chunk JOIN chunk ON chunk.id = chunk_id
       WHERE content_id = ? AND position BETWEEN ? AND ?`,
    );
    this.#damaged = db.prepare(
      `INSERT INTO damaged_chunk (chunk_id, found_at_ms, problem) SELECT id, ?, ? FROM chunk WHERE name = ?
       ON CONFLICT (chunk_id) DO NOTHING`,
    );
    this.#record = db.prepare(
      `INSERT INTO move_bucket (number, kind, a, b, changes, sent, checksum, row_count) VALUES (?, ?, ?, ?, 0, 0, ?, ?)
       ON CONFLICT (number, kind, a, b) DO UPDATE SET checksum = excluded.checksum, row_count = excluded.row_count`,
    );
    this.#forget = db.prepare("DELETE FROM move_bucket WHERE number = ? AND kind = ? AND a = ? AND b = ?");
  }

  /** Replaces rows of buckets; the receipts name what is stored, and buckets that must come again. */
  put(at: Arrival, buckets: readonly MoveBucket[]): MoveReceipt[] {
    return this.#sums.changing(at.number, (about) => buckets.flatMap((one) => this.#putOne(at, one, about)));
  }

  #putOne(at: Arrival, bucket: MoveBucket, about: (key: MoveBucketKey) => void): MoveReceipt[] {
    requireBucket(bucket);
    about(bucket);
    const { kind, a, b, changes, lines } = bucket;
    const rows = lines.map(rowOf);
    const again =
      kind === 1 ? this.#putPositions(at, bucket, rows) : this.#putRows({ ...at, about }, bucket, rows);
    if (again === undefined) return [{ kind, a, b, changes, checksum: "", rows: 0 }];
    const stored = this.#rows.lines(at.number, bucket);
    const checksum = linesChecksum(stored);
    if (checksum !== linesChecksum(lines)) {
      throw new GroveError("CHECKSUM_MISMATCH", "rows of a moving root did not arrive as they were sent");
    }
    this.#record.run(at.number, kind, a, b, stored.length === 0 ? "" : checksum, stored.length);
    return [{ kind, a, b, changes, checksum, rows: stored.length }, ...again];
  }

  /** Puts the root's row, under which everything is found. */
  finish(number: number, formerOwner: string, head: MovedRootHead): void {
    const base = number * ROOT_STRIDE;
    this.#db
      .prepare(
        `INSERT INTO root (number, owner, root_id, directory_id, access_version, live_bytes, trash_bytes, staging_bytes,
           file_count, live_inodes, trash_inodes, next_id, grant_count, lock_version, lock_count, property_bytes)
         VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
      )
      .run(
        number,
        head.owner,
        head.rootId,
        base + 1,
        head.accessVersion + 1,
        head.liveBytes,
        head.trashBytes,
        head.stagingBytes,
        head.fileCount,
        head.liveInodes,
        head.trashInodes,
        head.nextId,
        head.grantCount,
        head.lockVersion,
        head.lockCount,
        head.propertyBytes,
      );
    this.#db
      .prepare("UPDATE share_grant SET owner = ? WHERE owner = ? AND inode_id BETWEEN ? AND ?")
      .run(head.owner, formerOwner, base, base + ROOT_STRIDE - 1);
    this.#ledger.count({ inodes: 1 + head.liveInodes, trashBytes: head.trashBytes });
  }

  /** Removes a part of what has arrived; true while more is left. */
  dropSlice(number: number): boolean {
    const within: [number, number] = [number * ROOT_STRIDE, number * ROOT_STRIDE + ROOT_STRIDE - 1];
    const lists = this.#db
      .prepare("SELECT content_id AS id, position FROM file_chunk WHERE content_id BETWEEN ? AND ? LIMIT ?")
      .all(...within, DROPPED_AT_ONCE) as { id: number; position: number }[];
    for (const { id, position } of lists) this.#content.releasePosition(id, position);
    if (lists.length > 0) return true;
    for (const [table, column] of DROPPED) {
      const sql = `DELETE FROM ${table} WHERE ${column} IN (SELECT ${column} FROM ${table} WHERE ${column} BETWEEN ? AND ? LIMIT ?)`;
      if (this.#db.prepare(sql).run(...within, DROPPED_AT_ONCE).changes !== 0) return true;
    }
    return false;
  }

  /** Receipts for buckets in whose rows another row has taken a name. */
  #putRows(at: ChangingArrival, bucket: MoveBucket, rows: readonly MoveRow[]): MoveReceipt[] {
    const [from, to] = idsOf(at.number, bucket);
    const letters = bucket.kind === 2 ? ["d"] : ["i", "g", "t", "f", "l", "k", "y", "u", "p"];
    for (const letter of letters) this.#tables.get(letter)?.remove.run(from, to);
    const again: MoveReceipt[] = [];
    for (const [letter, ...values] of rows) {
      const table = letters.includes(letter) ? this.#tables.get(letter) : undefined;
      const id = values[0] ?? values[1];
      const absolute = Number(id) + at.number * ROOT_STRIDE;
      if (table === undefined || id == null || absolute < from || absolute > to) throw foreignRow();
      const bound = table.values(at, values);
      if (letter === "i") again.push(...this.#clearName(at, numberOrNull(bound[1]), String(bound[2])));
      table.insert.run(...bound);
    }
    return again;
  }

  /** A row that holds the name of a later one is outdated: its bucket comes again. */
  #clearName({ number, about }: ChangingArrival, parentId: number | null, name: string): MoveReceipt[] {
    if (parentId === null) return [];
    const other = this.#inTheWay.get(parentId, name) as { id: InodeId } | undefined;
    if (other === undefined) return [];
    this.#removeInode.run(other.id);
    const a = (other.id - number * ROOT_STRIDE) >> MOVE_BUCKET_BITS[0];
    about({ kind: 0, a, b: 0 });
    this.#forget.run(number, 0, a, 0);
    return [{ kind: 0, a, b: 0, changes: 0, checksum: "", rows: 0 }];
  }

  /** Undefined when a chunk's former file is about to be removed, so that the bucket must come again. */
  #putPositions(at: Arrival, bucket: MoveBucket, rows: readonly MoveRow[]): MoveReceipt[] | undefined {
    const contentId = at.number * ROOT_STRIDE + bucket.a;
    const from = bucket.b * 2 ** MOVE_BUCKET_BITS[1];
    const to = from + 2 ** MOVE_BUCKET_BITS[1] - 1;
    const stored = this.#positions.all(contentId, from, to) as { position: number; name: string }[];
    const left = new Map(stored.map(({ position, name }) => [position, name]));
    const news: MoveRow[] = [];
    for (const row of rows) {
      const [letter, content, position, name] = row;
      if (letter !== "c" || content !== bucket.a || Number(position) < from || Number(position) > to) {
        throw foreignRow();
      }
      if (left.get(Number(position)) === name) left.delete(Number(position));
      else news.push(row);
    }
    for (const position of left.keys()) this.#content.releasePosition(contentId, position);
    for (const [, , position, name, length, crc32, blockCrcs] of news) {
      const isAdopted = this.#content.adoptChunk(contentId, {
        position: Number(position),
        name: String(name),
        length: Number(length),
        crc32: Number(crc32),
        blockCrcs: new Uint8Array(Buffer.from(String(blockCrcs), "base64")),
      });
      if (!isAdopted) return undefined;
    }
    for (const [, , , name, , , , foundAtMs, problem] of rows) {
      if (problem != null) this.#damaged.run(Number(foundAtMs), String(problem), String(name));
    }
    return [];
  }
}

function numberOrNull(value: MoveValue | Uint8Array | undefined): number | null {
  return typeof value === "number" ? value : null;
}

/** Tables of a dropped import, with the column that has the id. */
export const DROPPED = [
  ["inline_content", "inode_id"],
  ["share_grant", "inode_id"],
  ["trash_grant", "inode_id"],
  ["trash", "inode_id"],
  ["lock", "inode_id"],
  ["link", "inode_id"],
  ["property", "inode_id"],
  ["upload", "content_id"],
  ["purging", "inode_id"],
  ["purging", "content_id"],
  ["inode", "id"],
] as const;

/** Columns of each table, the one with the id first; those after the line's own come from the move. */
const COLUMNS: Readonly<Record<string, readonly [table: string, ...columns: string[]]>> = {
  i: [
    "inode",
    ..."id parent_id name kind size crc32 version mtime_ms ctime_ms flags content_id".split(" "),
    ..."created_by child_count tree_inodes tree_files height".split(" "),
  ],
  g: ["share_grant", ..."inode_id username granted_by granted_at_ms path excluded owner".split(" ")],
  t: ["trash", ..."inode_id id original_path trashed_at_ms trashed_by root_number".split(" ")],
  f: ["trash_grant", ..."inode_id trash_id username path excluded root_number".split(" ")],
  l: [
    "lock",
    ..."inode_id token username credential is_exclusive is_deep note expires_at_ms root_number".split(" "),
  ],
  k: [
    "link",
    ..."inode_id id token_hash kind password pass_key created_ms ends_ms max_downloads max_bytes".split(" "),
    ..."max_files downloads bytes files recent root_number".split(" "),
  ],
  y: ["property", ..."inode_id namespace name xml".split(" ")],
  u: [
    "upload",
    ..."content_id upload_id username path size replaces if_match mtime_ms staged_bytes crc32".split(" "),
    ..."touched_at_ms root_number".split(" "),
  ],
  p: ["purging", "inode_id", "content_id"],
  d: ["inline_content", "inode_id", "data"],
};

/** Columns whose values are ids within the root. */
const IDS: ReadonlySet<string> = new Set(["id", "parent_id", "inode_id", "content_id"]);

function tablesOf(db: DatabaseSync): ReadonlyMap<string, Arriving> {
  return new Map(
    Object.entries(COLUMNS).map(([letter, [table, ...columns]]) => {
      const either = letter === "p" ? ["inode_id", "content_id"] : columns.slice(0, 1);
      const within = either.map((column) => `${column} BETWEEN ?1 AND ?2`).join(" OR ");
      const marks = columns.map(() => "?").join(", ");
      return [
        letter,
        {
          remove: db.prepare(`DELETE FROM ${table} WHERE ${within}`),
          insert: db.prepare(`INSERT INTO ${table} (${columns.join(", ")}) VALUES (${marks})`),
          values: (at, values) => columns.map((column, index) => valueOf(at, column, values[index], letter)),
        },
      ];
    }),
  );
}

function valueOf(
  { number, moveId }: Arrival,
  column: string,
  value: MoveValue | undefined,
  letter: string,
): MoveValue | Uint8Array {
  if (column === "owner") return ARRIVING + moveId;
  if (column === "root_number") return number;
  if (value == null) return null;
  if (column === "data") return new Uint8Array(Buffer.from(String(value), "base64"));
  // An item of the trash has an id of its own.
  const isId = IDS.has(column) && !("tk".includes(letter) && column === "id");
  if (!isId) return value;
  // An id beyond the root would open another root's file to this one's owner.
  if (!isWithin(Number(value), ROOT_STRIDE)) throw foreignRow();
  return Number(value) + number * ROOT_STRIDE;
}

/** Throws BAD_ARGUMENT for a bucket that lies outside of the root: it would replace rows of others. */
export function requireBucket({ kind, a, b, changes, lines }: MoveBucket): void {
  if (!(kind in MOVE_BUCKET_BITS)) throw foreignRow();
  const [within, positions] =
    kind === 1 ? [ROOT_STRIDE, POSITION_BUCKETS] : [ROOT_STRIDE / 2 ** MOVE_BUCKET_BITS[kind], 1];
  const isGood = isWithin(a, within) && isWithin(b, positions) && isWithin(changes, Number.MAX_SAFE_INTEGER);
  if (!isGood || !Array.isArray(lines) || !lines.every((line) => typeof line === "string"))
    throw foreignRow();
}

function isWithin(value: number, end: number): boolean {
  return Number.isSafeInteger(value) && value >= 0 && value < end;
}

function foreignRow(): GroveError {
  return new GroveError("BAD_ARGUMENT", "a bucket of a moving root has a row that does not belong there");
}
