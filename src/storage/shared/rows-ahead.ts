// What to fetch beside the content that reads wait for: that of the files behind them in a listed directory.
import type { StatementSync } from "node:sqlite";
import { CHUNK_BYTES } from "#base/limits.ts";
import { rootNumberOf } from "#storage/contract/inode.ts";
import { KIND_FILE } from "#storage/metadata/schema.ts";
import type { Fact, RowFacts } from "./row-facts.ts";

/** Rows that one fetch brings ahead of reads, in equal shares for the roots that wait for content. */
export const AHEAD_ROWS_MAX = 1_024;
/** The same in bytes of small files. */
export const AHEAD_BYTES_MAX = 2_000_000;
/** Files of one directory that one fetch brings ahead. */
const AHEAD_FILES_MAX = 256;
/** Files that come for each whose content is waited for, or is known already right before. */
const FILES_FOR_A_READ = 8;
/** The same in bytes of small files, so that a single read brings about as much as one of them may have. */
const BYTES_FOR_A_READ = 65_536;
/** Files before the first one waited for at which it is seen how many were read. */
const SEEN_BEFORE = 64;

/** An entry of a directory, as far as its content counts. */
interface FileRow {
  readonly id: number;
  readonly name: string;
  readonly parentId: number | null;
  readonly size: number;
  readonly contentId: number | null;
}

/** Reads that wait for content of one directory. */
interface Waiting {
  readonly first: string;
  last: string;
  reads: number;
}

/** What is left for a root. */
interface Share {
  rows: number;
  bytes: number;
}

/** Foresees the reads of who fetches a whole directory. Where none waits for content, it foresees nothing. */
export class RowsAhead {
  readonly #facts: Pick<RowFacts, "knows">;
  readonly #ofInode: StatementSync;
  readonly #ofList: StatementSync;
  readonly #before: StatementSync;
  readonly #behind: StatementSync;

  constructor(facts: Pick<RowFacts, "knows">, prepare: (sql: string) => StatementSync) {
    const row = "SELECT id, name, parent_id AS parentId, size, content_id AS contentId FROM inode";
    const file = `${row} WHERE parent_id = ? AND kind = ${KIND_FILE}`;
    this.#facts = facts;
    this.#ofInode = prepare(`${row} WHERE id = ?`);
    this.#ofList = prepare(`${row} WHERE content_id = ?`);
    this.#before = prepare(`${file} AND name < ? ORDER BY name DESC LIMIT ${SEEN_BEFORE}`);
    this.#behind = prepare(`${file} AND name > ? ORDER BY name LIMIT ?`);
  }

  /** Facts to fetch with those that are waited for; only of directories whose entries are all known. */
  of(wanted: readonly Fact[]): Fact[] {
    const waiting = this.#waiting(wanted);
    const roots = new Set([...waiting.keys()].map(rootNumberOf));
    const shares = new Map(
      [...roots].map((root): [number, Share] => [
        root,
        { rows: AHEAD_ROWS_MAX / roots.size, bytes: AHEAD_BYTES_MAX / roots.size },
      ]),
    );
    return [...waiting].flatMap(([directory, reads]) => {
      const share = shares.get(rootNumberOf(directory));
      return share === undefined ? [] : this.#behindOf(directory, reads, share);
    });
  }

  #waiting(wanted: readonly Fact[]): ReadonlyMap<number, Waiting> {
    const waiting = new Map<number, Waiting>();
    for (const fact of wanted) {
      const row = this.#fileOf(fact);
      if (row === undefined || row.parentId === null) continue;
      const reads = waiting.get(row.parentId);
      if (reads !== undefined) {
        reads.last = row.name;
        reads.reads++;
      } else if (this.#facts.knows({ kind: "children", id: row.parentId })) {
        waiting.set(row.parentId, { first: row.name, last: row.name, reads: 1 });
      }
    }
    return waiting;
  }

  #fileOf(fact: Fact): FileRow | undefined {
    if (fact.kind === "inline") return this.#ofInode.get(fact.id) as FileRow | undefined;
    const isList = fact.kind === "list" || (fact.kind === "start" && fact.from === 0);
    return isList ? (this.#ofList.get(fact.id) as FileRow | undefined) : undefined;
  }

  /** Takes what it fetches from the root's share. */
  #behindOf(directory: number, { first, last, reads }: Waiting, share: Share): Fact[] {
    const before = this.#before.all(directory, first) as unknown as FileRow[];
    const known = before.filter((row) => this.#isKnown(row)).length;
    const files = Math.min(AHEAD_FILES_MAX, FILES_FOR_A_READ * (reads + known));
    let bytesLeft = Math.min(share.bytes, BYTES_FOR_A_READ * (reads + known));
    const ahead: Fact[] = [];
    for (const row of this.#behind.all(directory, last, files) as unknown as FileRow[]) {
      if (this.#isKnown(row)) continue;
      const [rows, bytes] =
        row.contentId === null ? [1, row.size] : [2 * Math.ceil(row.size / CHUNK_BYTES), 0];
      if (rows > share.rows || bytes > bytesLeft) continue;
      share.rows -= rows;
      share.bytes -= bytes;
      bytesLeft -= bytes;
      ahead.push(contentOf(row));
    }
    return ahead;
  }

  /** Nothing is fetched for an empty file. */
  #isKnown(row: FileRow): boolean {
    return row.size === 0 || this.#facts.knows(contentOf(row));
  }
}

function contentOf({ id, contentId }: FileRow): Fact {
  return contentId === null ? { kind: "inline", id } : { kind: "list", id: contentId };
}
