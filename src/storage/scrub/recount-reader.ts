// Counts everything anew, one bounded step at a time; runs in the recount's thread beside the writer (D16,
//
import type { DatabaseSync, StatementSync } from "node:sqlite";
import { ROOT_STRIDE, rootNumberOf } from "#storage/contract/inode.ts";
import type { RecountFinding, RecountPass } from "#storage/contract/recount-types.ts";
import { isOff, RECOUNT_SLICE_ROWS, TreeCount } from "#storage/metadata/tree-count.ts";
import type { PassStep } from "./pass-thread.ts";
import { RecountTally } from "./recount-tally.ts";

/** A step of a pass; found holds every finding of the step. */
export type RecountStep = PassStep<RecountPass, readonly RecountFinding[]>;

type Counting<T> = Generator<RecountStep, T>;

/** Cost in rows of the look-up of a root. */
const LOOK_ROWS = 4;

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
  readonly #tally: RecountTally;
  #cost = 0;

  constructor(db: DatabaseSync, from: RecountPass, sliceRows: number = RECOUNT_SLICE_ROWS) {
    this.#db = db;
    this.#sliceRows = sliceRows;
    this.#count = new TreeCount(db, sliceRows);
    this.#tally = new RecountTally(from);
    this.#nextRoot = db.prepare(
      `SELECT number, (SELECT max(id) FROM inode WHERE id BETWEEN number * ${ROOT_STRIDE} AND number * ${ROOT_STRIDE} + ${ROOT_STRIDE - 1}) AS lastId
       FROM root WHERE number > ? ORDER BY number LIMIT 1`,
    );
    this.#owner = db.prepare("SELECT owner FROM root WHERE number = ?");
  }

  /** The rest of the pass. Throws SQLite's errors. */
  *steps(): Generator<RecountStep> {
    while (this.#tally.pass.lastId > 0 || this.#beginRoot()) {
      while (this.#tally.pass.position < this.#tally.pass.lastId)
        yield* this.#inSnapshot(this.#directories());
      yield* this.#inSnapshot(this.#root());
    }
    yield* this.#inSnapshot(this.#node());
  }

  #beginRoot(): boolean {
    const next = this.#nextRoot.get(this.#tally.pass.root) as
      | { number: number; lastId: number | null }
      | undefined;
    if (next === undefined) return false;
    this.#tally.beginRoot(next.number, next.lastId ?? undefined);
    return true;
  }

  /** Counts the directories of a slice of inodes until enough rows were read. */
  *#directories(): Counting<void> {
    const { position, lastId } = this.#tally.pass;
    const slice = this.#count.slice(position, lastId);
    this.#cost += slice?.rows ?? 0;
    let end = slice?.end ?? lastId;
    for (const { id, said } of this.#count.directories(position, end)) {
      const count = { id, said, is: yield* this.#within(this.#count.entriesOf(id)) };
      if (isOff(count)) {
        const owner = this.#ownerOf(rootNumberOf(id));
        this.#tally.directory(count, this.#count.whereabouts(id), owner);
      }
      if (this.#cost < 2 * this.#sliceRows) continue;
      end = id;
      break;
    }
    this.#tally.pass = { ...this.#tally.pass, position: end };
  }

  *#root(): Counting<void> {
    const { root: number } = this.#tally.pass;
    this.#cost += LOOK_ROWS;
    const root = yield* this.#within(this.#count.root(number));
    this.#tally.root(root, yield* this.#within(this.#count.uploads(number)));
  }

  *#node(): Counting<void> {
    const { inodesOff: inodes, trashOff: trashBytes } = this.#tally.pass;
    this.#tally.node(yield* this.#within(this.#count.node({ inodes, trashBytes })));
  }

  /**
   * Runs a part in one snapshot. Until it ends the pass stays at its start: an interrupted part is counted
   * again.
   */
  *#inSnapshot(part: Counting<void>): Generator<RecountStep> {
    const before = this.#tally.pass;
    this.#db.exec("BEGIN");
    let isDone = false;
    try {
      for (const step of part) yield { ...step, pass: before };
      isDone = true;
    } finally {
      this.#db.exec("COMMIT");
      if (!isDone) this.#tally.pass = before;
    }
    const pass = { ...this.#tally.pass, rows: before.rows + this.#cost };
    this.#tally.pass = pass;
    yield { pass, cost: this.#cost, found: this.#tally.take() };
    this.#cost = 0;
  }

  /** A count whose rows are charged once the snapshot has ended. */
  *#within<T>(counting: Generator<number, T>): Counting<T> {
    for (let step = counting.next(); ; step = counting.next()) {
      if (step.done === true) return step.value;
      this.#cost += step.value;
      // A small directory does not interrupt the snapshot.
      if (step.value >= this.#sliceRows)
        yield { pass: this.#tally.pass, cost: 0, found: undefined, isHeld: true };
    }
  }

  #ownerOf(number: number): string | undefined {
    return (this.#owner.get(number) as { owner: string } | undefined)?.owner;
  }
}
