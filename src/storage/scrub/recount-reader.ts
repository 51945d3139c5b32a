// Counts everything anew, one bounded step at a time; runs in the recount's thread beside the writer (D16,
//
import type { DatabaseSync, StatementSync } from "node:sqlite";
import { ROOT_STRIDE } from "#storage/contract/inode.ts";
import type { Drift, RecountFinding, RecountPass } from "#storage/contract/recount-types.ts";
import {
  type DirectoryCount,
  type FactKind,
  isOff,
  RECOUNT_SLICE_ROWS,
  TreeCount,
} from "#storage/metadata/tree-count.ts";
import type { PassStep } from "./pass-thread.ts";

/** A step of a pass; found holds every finding of the step. */
export type RecountStep = PassStep<RecountPass, readonly RecountFinding[]>;

type Counting<T> = Generator<RecountStep, T>;

/** Cost in rows of the look-up of a root. */
const LOOK_ROWS = 4;

const BYTES_OF = {
  directory: "directoryBytes",
  live: "liveBytes",
  trash: "trashBytes",
  staging: "stagingBytes",
} as const satisfies Record<string, keyof Drift>;

/**
 * One pass over all counters, from its saved progress. A directory's difference from its entries is the same
 * in every committed state, and so is that of a root's counters. Each is counted within one snapshot,
 * different ones in different snapshots. So no change in between looks like drift.
 */
export class RecountReader {
  readonly #db: DatabaseSync;
  readonly #sliceRows: number;
  readonly #count: TreeCount;
  readonly #nextRoot: StatementSync;
  readonly #owner: StatementSync;
  #pass: RecountPass;
  #cost = 0;
  #found: RecountFinding[] = [];

  constructor(db: DatabaseSync, from: RecountPass, sliceRows: number = RECOUNT_SLICE_ROWS) {
    this.#db = db;
    this.#sliceRows = sliceRows;
    this.#count = new TreeCount(db, sliceRows);
    this.#pass = from;
    this.#nextRoot = db.prepare(
      `SELECT number, (SELECT max(id) FROM inode WHERE id BETWEEN number * ${ROOT_STRIDE} AND number * ${ROOT_STRIDE} + ${ROOT_STRIDE - 1}) AS lastId
       FROM root WHERE number > ? ORDER BY number LIMIT 1`,
    );
    this.#owner = db.prepare("SELECT owner FROM root WHERE number = ?");
  }

  /** The rest of the pass. Throws SQLite's errors. */
  *steps(): Generator<RecountStep> {
    while (this.#pass.lastId > 0 || this.#beginRoot()) {
      while (this.#pass.position < this.#pass.lastId) yield* this.#inSnapshot(this.#directories());
      yield* this.#inSnapshot(this.#root());
    }
    yield* this.#inSnapshot(this.#node());
  }

  #beginRoot(): boolean {
    const next = this.#nextRoot.get(this.#pass.root) as { number: number; lastId: number | null } | undefined;
    if (next === undefined) return false;
    const { number: root, lastId } = next;
    const position = root * ROOT_STRIDE;
    // A root without an inode has no directory; its counters show that.
    this.#pass = {
      ...this.#pass,
      root,
      lastId: lastId ?? position,
      position,
      surplusBytes: 0,
      deficitBytes: 0,
    };
    return true;
  }

  /** Counts the directories of a slice of inodes until enough rows were read. */
  *#directories(): Counting<void> {
    const { position, lastId } = this.#pass;
    const slice = this.#count.slice(position, lastId);
    this.#cost += slice?.rows ?? 0;
    let end = slice?.end ?? lastId;
    for (const { id, said } of this.#count.directories(position, end)) {
      const is = yield* this.#within(this.#count.entriesOf(id));
      this.#compare({ id, said, is });
      if (this.#cost < 2 * this.#sliceRows) continue;
      end = id;
      break;
    }
    this.#pass = { ...this.#pass, position: end };
  }

  #compare(count: DirectoryCount): void {
    if (!isOff(count)) return;
    const { id, said, is } = count;
    const where = this.#count.whereabouts(id);
    if (where === "passing") return;
    const owner = this.#ownerOf(Math.floor(id / ROOT_STRIDE));
    const told = { owner, id };
    if (said.bytes !== is.bytes)
      this.#found.push({ ...told, counter: "bytes of a directory", said: said.bytes, is: is.bytes });
    if (said.entries !== is.entries)
      this.#found.push({ ...told, counter: "entries of a directory", said: said.entries, is: is.entries });
    if (said.inodes !== is.inodes)
      this.#found.push({ ...told, counter: "inodes of a directory", said: said.inodes, is: is.inodes });
    if (said.files !== is.files)
      this.#found.push({ ...told, counter: "files of a directory", said: said.files, is: is.files });
    if (said.height !== is.height)
      this.#found.push({ ...told, counter: "levels of a directory", said: said.height, is: is.height });
    this.#off("directory", said.bytes - is.bytes);
    if (where === "live")
      this.#pass = { ...this.#pass, inodesOff: this.#pass.inodesOff + said.inodes - is.inodes };
  }

  *#root(): Counting<void> {
    const { root: number } = this.#pass;
    this.#cost += LOOK_ROWS;
    const root = yield* this.#within(this.#count.root(number));
    const owner = root?.owner;
    for (const fact of root?.facts ?? []) {
      const { said, is, what: counter, kind, isBytes } = fact;
      if (said === is) continue;
      this.#found.push({ owner, counter, id: undefined, said, is });
      this.#off(kind, isBytes ? said - is : 0);
      if (kind === "trash") this.#pass = { ...this.#pass, trashOff: this.#pass.trashOff + said - is };
    }
    for (const { contentId: id, said, is } of yield* this.#within(this.#count.uploads(number))) {
      if (said === is) continue;
      this.#found.push({ owner, counter: "staged bytes of an upload", id, said, is });
      this.#off("staging", said - is);
    }
    this.#pass = { ...this.#settled(), lastId: 0, roots: this.#pass.roots + 1 };
  }

  *#node(): Counting<void> {
    const { inodesOff: inodes, trashOff: trashBytes } = this.#pass;
    const facts = yield* this.#within(this.#count.node({ inodes, trashBytes }));
    for (const { said, is, what: counter, kind, isBytes } of facts) {
      if (said === is) continue;
      this.#found.push({ owner: undefined, counter, id: undefined, said, is });
      this.#off(kind, isBytes ? said - is : 0);
    }
    this.#pass = this.#settled();
  }

  /** Adds a wrong counter, by so many bytes. */
  #off(kind: FactKind | "directory", bytes: number): void {
    const { drift } = this.#pass;
    const field = kind === "other" ? undefined : BYTES_OF[kind];
    this.#pass = {
      ...this.#pass,
      surplusBytes: sum(this.#pass.surplusBytes, Math.max(0, bytes)),
      deficitBytes: sum(this.#pass.deficitBytes, Math.max(0, -bytes)),
      drift: {
        ...drift,
        counters: drift.counters + 1,
        ...(field === undefined ? {} : { [field]: sum(drift[field], Math.abs(bytes)) }),
      },
    };
  }

  /** The pass after surplus and deficit of a root, or of the data directory, were added up. */
  #settled(): RecountPass {
    const { drift, surplusBytes, deficitBytes } = this.#pass;
    const bytes = sum(drift.bytes, Math.max(surplusBytes, deficitBytes));
    return { ...this.#pass, surplusBytes: 0, deficitBytes: 0, drift: { ...drift, bytes } };
  }

  /**
   * Runs a part in one snapshot. Until it ends the pass stays at its start: an interrupted part is counted
   * again.
   */
  *#inSnapshot(part: Counting<void>): Generator<RecountStep> {
    const before = this.#pass;
    this.#db.exec("BEGIN");
    let isDone = false;
    try {
      for (const step of part) yield { ...step, pass: before };
      isDone = true;
    } finally {
      this.#db.exec("COMMIT");
      if (!isDone) this.#pass = before;
    }
    this.#pass = { ...this.#pass, rows: before.rows + this.#cost };
    const found = this.#found.length === 0 ? undefined : this.#found;
    yield { pass: this.#pass, cost: this.#cost, found };
    this.#cost = 0;
    this.#found = [];
  }

  /** A count whose rows are charged once the snapshot has ended. */
  *#within<T>(counting: Generator<number, T>): Counting<T> {
    for (let step = counting.next(); ; step = counting.next()) {
      if (step.done === true) return step.value;
      this.#cost += step.value;
      // A small directory does not interrupt the snapshot.
      if (step.value >= this.#sliceRows) yield { pass: this.#pass, cost: 0, found: undefined, isHeld: true };
    }
  }

  #ownerOf(number: number): string | undefined {
    return (this.#owner.get(number) as { owner: string } | undefined)?.owner;
  }
}

/** Wrong numbers may be of any size; the recorded sums must stay exact. */
function sum(a: number, b: number): number {
  return Math.min(a + b, Number.MAX_SAFE_INTEGER);
}
