// The commands of roots that come or go, run with the SQL of the local engine over the rows that they touch.
import { DatabaseSync } from "node:sqlite";
import type {
  MoveBucket,
  MoveBucketKey,
  MovedRootHead,
  MoveReceipt,
  MoveTotals,
} from "#storage/contract/root-move.ts";
import { ContentRows } from "#storage/metadata/content-rows.ts";
import { MoveReceipts } from "#storage/metadata/move-receipts.ts";
import { linesChecksum, MoveRows } from "#storage/metadata/move-rows.ts";
import { MOVE_SUM, MoveSums, totalsOf } from "#storage/metadata/move-sums.ts";
import { ARRIVING } from "#storage/metadata/moved-roots.ts";
import { migrate } from "#storage/metadata/schema.ts";
import { Ledger } from "#storage/metadata/unit-of-work.ts";
import { MoveArrivals } from "#storage/writer/move-arrivals.ts";
import { MOVE_BUCKET } from "./arrival-schema.ts";
import { ChangedKeys } from "./changed-keys.ts";
import { SHARED_TABLES } from "./shared-tables.ts";
import {
  insertJson,
  type JsonRow,
  type TableEffects,
  type TableStatements,
  tableStatements,
} from "./table-rows.ts";

/** What a command has answered and changed. */
export interface MovingRun<Reply> {
  readonly reply: Reply;
  readonly effects: readonly TableEffects[];
  readonly totals: MoveTotals;
}

/** A root on its way, under the number that it has here. */
export interface MovingRoot {
  readonly moveId: string;
  readonly number: number;
}

/**
 * A database in memory that is empty between two commands: each begins with all rows that it can touch, and
 * what it has changed goes to PostgreSQL.
 */
export class MovingRows {
  readonly #db: DatabaseSync;
  readonly #ledger: Ledger;
  readonly #arrivals: MoveArrivals;
  readonly #receipts: MoveReceipts;
  readonly #rows: MoveRows;
  readonly #sum: ReturnType<DatabaseSync["prepare"]>;
  readonly #purged: ReturnType<DatabaseSync["prepare"]>;
  readonly #setPurged: ReturnType<DatabaseSync["prepare"]>;
  readonly #tables: ReadonlyMap<string, TableStatements>;
  readonly #changes: ChangedKeys;

  /** `firstId` begins a range of numbers that no other process gives out. */
  constructor(firstId: number) {
    const db = new DatabaseSync(":memory:", { enableForeignKeyConstraints: false });
    this.#db = db;
    migrate(db, "");
    db.exec(`
      PRAGMA foreign_keys = OFF;
      INSERT INTO chunk (id, name, length, crc32, block_crcs, refs) VALUES (${firstId}, '', 0, 0, x'', 0);
      INSERT INTO garbage (sequence, chunk_id) VALUES (${firstId}, ${firstId});
      INSERT INTO purging (id, inode_id) VALUES (${firstId}, 1);
    `);
    this.#ledger = new Ledger(db);
    const [ledger, content, sums] = [this.#ledger, new ContentRows(db, this.#ledger), new MoveSums(db)];
    this.#arrivals = new MoveArrivals(db, { ledger, content, sums });
    this.#receipts = new MoveReceipts(db, sums);
    db.exec("DELETE FROM garbage; DELETE FROM purging; DELETE FROM chunk");
    const prepare = (sql: string): ReturnType<DatabaseSync["prepare"]> => {
      const statement = db.prepare(sql);
      statement.setReturnArrays(true);
      return statement;
    };
    this.#rows = new MoveRows(prepare);
    this.#sum = prepare(MOVE_SUM);
    const tables = [...SHARED_TABLES, MOVE_BUCKET];
    this.#tables = new Map(
      tables.map((table) => [table.name, tableStatements(table, (sql) => db.prepare(sql))]),
    );
    this.#changes = new ChangedKeys(db, tables);
    this.#purged = db.prepare("SELECT seq FROM sqlite_sequence WHERE name = 'purging'");
    this.#setPurged = db.prepare("UPDATE sqlite_sequence SET seq = ? WHERE name = 'purging'");
  }

  /** Replaces the rows of buckets over what is there of them. */
  put(
    root: MovingRoot,
    buckets: readonly MoveBucket[],
    there: readonly JsonRow[],
  ): MovingRun<readonly MoveReceipt[]> {
    return this.#run(root, there, () => this.#arrivals.put(root, buckets));
  }

  /** Makes the root's own row over its grants. */
  finish(root: MovingRoot, head: MovedRootHead, there: readonly JsonRow[]): MovingRun<void> {
    return this.#run(root, there, () => this.#arrivals.finish(root.number, ARRIVING + root.moveId, head));
  }

  /** Checksums of buckets as they lie in PostgreSQL, in the order of the buckets. */
  checksums(root: MovingRoot, buckets: readonly MoveBucketKey[], there: readonly JsonRow[]): string[] {
    return this.lines(root, buckets, there).map(linesChecksum);
  }

  /** Lines of buckets over their rows, in the order of the buckets. */
  lines(root: MovingRoot, keys: readonly MoveBucketKey[], there: readonly JsonRow[]): string[][] {
    return this.#run(root, there, () => keys.map((key) => this.#rows.lines(root.number, key))).reply;
  }

  /** Notes what the other side has, over the buckets' rows. */
  receive(root: MovingRoot, receipts: readonly MoveReceipt[], there: readonly JsonRow[]): MovingRun<void> {
    return this.#run(root, there, () => this.#receipts.take(root.number, receipts));
  }

  close(): void {
    this.#db.close();
  }

  #run<Reply>({ number }: MovingRoot, there: readonly JsonRow[], command: () => Reply): MovingRun<Reply> {
    this.#db.exec("BEGIN IMMEDIATE");
    try {
      for (const { table, row } of there) insertJson(this.#statements(table), row);
      const reply = this.#changes.during(command);
      // All rows with the ids of the buckets were here before.
      const effects = this.#changes.effects(
        (table) => this.#statements(table),
        (_, isMade) => isMade,
      );
      return { reply, effects, totals: totalsOf(this.#sum.get(number)) };
    } finally {
      const { seq } = this.#purged.get() as { seq: number };
      this.#db.exec("ROLLBACK");
      // A number is given out once, though what it was given to is no more here.
      this.#setPurged.run(seq);
      this.#ledger.discard();
    }
  }

  #statements(table: string): TableStatements {
    const statements = this.#tables.get(table);
    if (statements === undefined) throw new Error(`a moving root has no table ${table}`);
    return statements;
  }
}
