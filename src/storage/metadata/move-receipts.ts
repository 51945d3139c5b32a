// Notes what has arrived of a moving root, at the side from which it moves.
import type { DatabaseSync, StatementSync } from "node:sqlite";
import type { MoveReceipt } from "#storage/contract/root-move.ts";
import type { MoveSums } from "./move-sums.ts";

/** Receipts of buckets, in the transaction of a command. */
export class MoveReceipts {
  readonly #sums: MoveSums;
  readonly #receive: StatementSync;
  readonly #again: StatementSync;

  constructor(db: DatabaseSync, sums: MoveSums) {
    this.#sums = sums;
    this.#receive = db.prepare(
      `UPDATE move_bucket SET sent = ?1, checksum = ?2, row_count = ?3
       WHERE number = ?4 AND kind = ?5 AND a = ?6 AND b = ?7 AND sent < ?1 AND changes >= ?1`,
    );
    this.#again = db.prepare(
      "UPDATE move_bucket SET changes = changes + 1 WHERE number = ? AND kind = ? AND a = ? AND b = ?",
    );
  }

  /** Takes receipts of the root with this number; what is asked for again has changed. */
  take(number: number, receipts: readonly MoveReceipt[]): void {
    this.#sums.changing(number, (about) => {
      for (const { kind, a, b, changes, checksum, rows } of receipts) {
        about({ kind, a, b });
        if (checksum === "") this.#again.run(number, kind, a, b);
        else this.#receive.run(changes, checksum, rows, number, kind, a, b);
      }
    });
  }
}
