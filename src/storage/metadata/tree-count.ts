// Counts the tree of inodes, the trash and staged bytes anew, beside their counters; shared by the check and
// the recount (D16, A-17).
import type { DatabaseSync, StatementSync } from "node:sqlite";
import type { InodeId } from "#storage/contract/inode.ts";
import { ROOT_STRIDE } from "#storage/contract/inode.ts";
import { PROPERTY_BYTES } from "./property-rows.ts";
import { KIND_DIRECTORY, KIND_FILE } from "./schema.ts";
import { CHAIN_MAX } from "./unit-of-work.ts";

/**
 * Rows that the recount adds up in one statement; then it ends its snapshot unless one directory has more.
 */
export const RECOUNT_SLICE_ROWS = 4_096;

/** Sums of a directory's entries. */
export interface TreeSums {
  readonly bytes: number;
  readonly entries: number;
  readonly inodes: number;
  readonly files: number;
  /** Levels below the directory: one more than its highest entry, 0 without entries. */
  readonly height: number;
}

/** A directory, the sums in its row, and the sums of its entries. */
export interface DirectoryCount {
  readonly id: InodeId;
  readonly said: TreeSums;
  readonly is: TreeSums;
}

/** Owner of a counter. */
export type FactKind = "live" | "trash" | "staging" | "other";

/** One counter, and its right value. */
export interface Fact {
  /** Name of the counter for a report. */
  readonly what: string;
  readonly kind: FactKind;
  readonly isBytes: boolean;
  /** Column of the root's row, or counter of the data directory. */
  readonly column: string;
  readonly said: number;
  readonly is: number;
}

/** A root's counters. */
export interface RootCount {
  readonly number: number;
  readonly owner: string;
  /** Undefined when the root's own directory is missing: then there is nothing to count. */
  readonly facts: readonly Fact[] | undefined;
}

/** Differences between roots' counters and what is in sight or in the trash; known after the whole count. */
export interface Offsets {
  /** Inodes that directories in sight record, less those of their entries. */
  readonly inodes: number;
  /** Bytes that roots record for their trash, less those in it. */
  readonly trashBytes: number;
}

/**
 * Place of a directory: on its way in or out it is not the sum of its entries, and no counter includes it.
 */
export type Whereabouts = "live" | "trash" | "passing" | "nowhere";

/** A count in slices: yields the rows of each, and returns the result. It must run in one transaction. */
type Counting<T> = Generator<number, T>;

type SumRow = [
  entries: number,
  bytes: number,
  inodes: number,
  files: number,
  height: number,
  last: string | null,
];
type DirectoryRow = [
  id: InodeId,
  size: number,
  entries: number,
  inodes: number,
  files: number,
  height: number,
];
type TrashRow = [rows: number, bytes: number, inodes: number, last: string | null];
type AddedRow = [rows: number, sum: number, last: string | number | null];

/** Owns the statements that count. Sums of directories hold at every commit, so any snapshot is valid. */
export class TreeCount {
  readonly #sliceRows: number;
  readonly #lastOf: StatementSync;
  readonly #directories: StatementSync;
  readonly #entries: StatementSync;
  readonly #place: StatementSync;
  readonly #isRoot: StatementSync;
  readonly #isTrashed: StatementSync;
  readonly #root: StatementSync;
  readonly #trash: StatementSync;
  readonly #uploads: StatementSync;
  readonly #staged: StatementSync;
  readonly #chunks: StatementSync;
  readonly #node: StatementSync;

  constructor(db: DatabaseSync, sliceRows: number = RECOUNT_SLICE_ROWS) {
    this.#sliceRows = sliceRows;
    const prepare = (sql: string): StatementSync => {
      const statement = db.prepare(sql);
      statement.setReturnArrays(true);
      return statement;
    };
    this.#lastOf = prepare(
      `SELECT count(*), max(id) FROM (SELECT id FROM inode WHERE id > ? AND id <= ? ORDER BY id LIMIT ${sliceRows})`,
    );
    this.#directories = prepare(
      `SELECT id, size, child_count, tree_inodes, tree_files, height FROM inode
       WHERE id > ? AND id <= ? AND kind = ${KIND_DIRECTORY}
         AND NOT EXISTS (SELECT 1 FROM purging WHERE inode_id = inode.id) ORDER BY id`,
    );
    this.#entries = prepare(
      `SELECT count(*), coalesce(sum(size), 0), coalesce(sum(1 + tree_inodes), 0),
         coalesce(sum(CASE kind WHEN ${KIND_FILE} THEN 1 ELSE tree_files END), 0), coalesce(1 + max(height), 0), max(name)
       FROM (SELECT name, kind, size, tree_inodes, tree_files, height FROM inode WHERE parent_id = ? AND name > ? ORDER BY name LIMIT ${sliceRows})`,
    );
    this.#place = prepare("SELECT parent_id FROM inode WHERE id = ?");
    this.#isRoot = prepare("SELECT 1 FROM root WHERE directory_id = ?");
    this.#isTrashed = prepare("SELECT 1 FROM trash WHERE inode_id = ?");
    this.#root = prepare(
      `SELECT owner, live_bytes, trash_bytes, staging_bytes, file_count, grant_count, next_id, live_inodes, trash_inodes,
         inode.size, inode.tree_files, inode.tree_inodes,
         (SELECT count(*) FROM share_grant WHERE inode_id BETWEEN ?1 * ${ROOT_STRIDE} AND ?1 * ${ROOT_STRIDE} + ${ROOT_STRIDE - 1}),
         (SELECT max(id) FROM inode WHERE id BETWEEN ?1 * ${ROOT_STRIDE} AND ?1 * ${ROOT_STRIDE} + ${ROOT_STRIDE - 1}),
         lock_count, (SELECT count(*) FROM lock WHERE root_number = ?1), property_bytes,
         (SELECT coalesce(sum(${PROPERTY_BYTES}), 0) FROM property
          WHERE inode_id BETWEEN ?1 * ${ROOT_STRIDE} AND ?1 * ${ROOT_STRIDE} + ${ROOT_STRIDE - 1})
       FROM root LEFT JOIN inode ON inode.id = directory_id WHERE number = ?1`,
    );
    this.#trash = prepare(
      `SELECT count(*), coalesce(sum(size), 0), coalesce(sum(1 + tree_inodes), 0), max(id) FROM
         (SELECT trash.id, size, tree_inodes FROM trash JOIN inode ON inode.id = inode_id WHERE root_number = ? AND trash.id > ?
          ORDER BY trash.id LIMIT ${sliceRows})`,
    );
    this.#uploads = prepare("SELECT content_id, staged_bytes FROM upload WHERE root_number = ?");
    this.#staged = prepare(
      `SELECT count(*), coalesce(sum(length), 0), max(position) FROM
         (SELECT position, length FROM file_chunk JOIN chunk ON chunk.id = chunk_id WHERE content_id = ? AND position > ?
          ORDER BY position LIMIT ${sliceRows})`,
    );
    this.#chunks = prepare(
      `SELECT count(*), coalesce(sum(refs > 0), 0), max(id) FROM (SELECT id, refs FROM chunk WHERE id > ? ORDER BY id LIMIT ${sliceRows})`,
    );
    this.#node = prepare(
      `SELECT (SELECT coalesce(sum(1 + tree_inodes), 0) FROM root JOIN inode ON inode.id = directory_id),
         (SELECT coalesce(sum(trash_bytes), 0) FROM root),
         (SELECT value FROM counter WHERE name = 'inodes'), (SELECT value FROM counter WHERE name = 'trash_bytes'),
         (SELECT value FROM counter WHERE name = 'chunks')`,
    );
    // The trashes of all roots together may pass the exact range of a number.
    this.#node.setReadBigInts(true);
  }

  /**
   * The last id of a slice of inodes, and their number; undefined when there are none from `after` to `last`.
   */
  slice(after: InodeId, last: InodeId): { readonly end: InodeId; readonly rows: number } | undefined {
    const [rows, end] = this.#lastOf.get(after, last) as unknown as [number, InodeId | null];
    return end === null ? undefined : { end, rows };
  }

  /** Directories in a range of ids, except those under removal, whose entries go first. */
  directories(after: InodeId, end: InodeId): { readonly id: InodeId; readonly said: TreeSums }[] {
    const rows = this.#directories.all(after, end) as unknown as DirectoryRow[];
    return rows.map(([id, bytes, entries, inodes, files, height]) => ({
      id,
      said: { bytes, entries, inodes, files, height },
    }));
  }

  /** Sums of a directory's entries. */
  *entriesOf(id: InodeId): Counting<TreeSums> {
    const sums = { bytes: 0, entries: 0, inodes: 0, files: 0, height: 0 };
    for (let after = ""; ; ) {
      const row = this.#entries.get(id, after) as unknown as SumRow;
      const [entries, bytes, inodes, files, height, last] = row;
      sums.entries += entries;
      sums.bytes += bytes;
      sums.inodes += inodes;
      sums.files += files;
      sums.height = Math.max(sums.height, height);
      yield entries;
      if (entries < this.#sliceRows || last === null) return sums;
      after = last;
    }
  }

  /** Place of a directory. */
  whereabouts(id: InodeId): Whereabouts {
    let at = id;
    for (let level = 0; level < CHAIN_MAX; level++) {
      const row = this.#place.get(at) as unknown as [InodeId | null] | undefined;
      if (row === undefined) return "nowhere";
      if (row[0] === null) {
        if (this.#isRoot.get(at) !== undefined) return "live";
        return this.#isTrashed.get(at) === undefined ? "passing" : "trash";
      }
      at = row[0];
    }
    return "nowhere";
  }

  /** A root's counters; undefined when the root is missing. */
  *root(number: number): Counting<RootCount | undefined> {
    const row = this.#root.get(number) as unknown as [string, ...number[]] | undefined;
    if (row === undefined) return undefined;
    const [owner, live = 0, trash = 0, staging = 0, fileCount = 0, grantCount = 0, nextId = 0] = row;
    const [liveInodes = 0, trashInodes = 0] = row.slice(7) as number[];
    const [size, files, inodes, grants = 0, lastId] = row.slice(9) as (number | null)[];
    const [saidLocks = 0, locks = 0, saidProperties = 0, properties = 0] = row.slice(14) as number[];
    if (size == null || files == null || inodes == null) return { number, owner, facts: undefined };
    const trashed = yield* this.#trashOf(number);
    let staged = 0;
    for (const [, bytes] of this.#uploads.all(number) as unknown as [number, number][]) staged += bytes;
    const facts = factsOf({
      live,
      trash,
      staging,
      fileCount,
      liveInodes,
      trashInodes,
      grantCount,
      nextId,
      saidLocks,
      saidProperties,
      size,
      files,
      inodes,
      trashedBytes: trashed.bytes,
      trashedInodes: trashed.inodes,
      staged,
      grants: Number(grants),
      locks,
      properties,
      lastId: lastId ?? 0,
    });
    return { number, owner, facts };
  }

  *#trashOf(number: number): Counting<{ readonly bytes: number; readonly inodes: number }> {
    const total = { bytes: 0, inodes: 0 };
    for (let after = ""; ; ) {
      const [rows, bytes, inodes, last] = this.#trash.get(number, after) as unknown as TrashRow;
      total.bytes += bytes;
      total.inodes += inodes;
      yield rows;
      if (rows < this.#sliceRows || last === null) return total;
      after = last;
    }
  }

  /** Staged bytes that a root's unfinished uploads record, and the bytes of their chunks. */
  *uploads(
    number: number,
  ): Counting<{ readonly contentId: number; readonly said: number; readonly is: number }[]> {
    const counts = [];
    for (const [contentId, said] of this.#uploads.all(number) as unknown as [number, number][]) {
      counts.push({ contentId, said, is: yield* this.#sum(this.#staged, contentId, -1) });
    }
    return counts;
  }

  /** Counters of the whole data directory. */
  *node(offsets: Offsets): Counting<readonly Fact[]> {
    const [inodes = 0, trashBytes = 0, saidInodes, saidTrash, saidChunks] = (
      this.#node.get() as unknown as (bigint | null)[]
    ).map((value) => (value === null ? undefined : Number(value)));
    let chunks = 0;
    for (let after: string | number = -1; ; ) {
      const [rows, used, last] = this.#chunks.get(after) as unknown as AddedRow;
      chunks += used;
      yield rows;
      if (rows < this.#sliceRows || last === null) break;
      after = last;
    }
    const counter = (name: string, said: number | undefined, is: number): Fact => {
      const isBytes = name === "trash_bytes";
      return { what: name, kind: isBytes ? "trash" : "other", isBytes, column: name, said: said ?? 0, is };
    };
    return [
      counter("inodes", saidInodes, inodes - offsets.inodes),
      counter("chunks", saidChunks, chunks),
      counter("trash_bytes", saidTrash, trashBytes - offsets.trashBytes),
    ];
  }

  *#sum(statement: StatementSync, of: number, from: string | number): Counting<number> {
    let total = 0;
    for (let after = from; ; ) {
      const [rows, sum, last] = statement.get(of, after) as unknown as AddedRow;
      total += sum;
      yield rows;
      if (rows < this.#sliceRows || last === null) return total;
      after = last;
    }
  }
}

/** A root's counters as its row has them, and what is there. */
export interface RootNumbers {
  readonly live: number;
  readonly trash: number;
  readonly staging: number;
  readonly fileCount: number;
  readonly liveInodes: number;
  readonly trashInodes: number;
  readonly grantCount: number;
  readonly nextId: number;
  readonly saidLocks: number;
  readonly saidProperties: number;
  /** Bytes, files and inodes of the root's own directory. */
  readonly size: number;
  readonly files: number;
  readonly inodes: number;
  readonly trashedBytes: number;
  readonly trashedInodes: number;
  /** Bytes that uploads record. */
  readonly staged: number;
  readonly grants: number;
  readonly locks: number;
  readonly properties: number;
  /** The highest number of an inode. */
  readonly lastId: number;
}

/** The counters of a root, each beside its right value. */
export function factsOf(root: RootNumbers): Fact[] {
  const fact = (what: string, column: string, said: number, is: number, kind: FactKind = "other"): Fact => {
    return { what, kind, isBytes: kind !== "other", column, said, is };
  };
  const used = (root.lastId % ROOT_STRIDE) + 1;
  return [
    fact("live bytes", "live_bytes", root.live, root.size, "live"),
    fact("bytes in the trash", "trash_bytes", root.trash, root.trashedBytes, "trash"),
    fact("bytes in staging", "staging_bytes", root.staging, root.staged, "staging"),
    fact("files", "file_count", root.fileCount, root.files),
    fact("inodes", "live_inodes", root.liveInodes, root.inodes),
    fact("inodes in the trash", "trash_inodes", root.trashInodes, root.trashedInodes),
    fact("grants", "grant_count", root.grantCount, root.grants),
    fact("locks", "lock_count", root.saidLocks, root.locks),
    fact("bytes of properties", "property_bytes", root.saidProperties, root.properties),
    fact("next id", "next_id", root.nextId, Math.max(root.nextId, used)),
  ];
}

/** True when a directory's row differs from its entries. */
export function isOff({ said, is }: DirectoryCount): boolean {
  return (
    said.bytes !== is.bytes ||
    said.entries !== is.entries ||
    said.inodes !== is.inodes ||
    said.files !== is.files ||
    said.height !== is.height
  );
}

/** Runs a count to its end without a pause. */
export function counted<T>(counting: Counting<T>): T {
  for (let step = counting.next(); ; step = counting.next()) if (step.done === true) return step.value;
}
