// Arriving roots in PostgreSQL: who has them, and commits of what has come under that epoch.
import type pg from "pg";
import type { LocalMove } from "#storage/contract/root-move.ts";
import { MOVE_SUM } from "#storage/metadata/move-sums.ts";
import type { ArrivalThere } from "./arrival-fetch.ts";
import { ARRIVAL_TABLES } from "./arrival-schema.ts";
import { requireOwnRoots } from "./own-roots.ts";
import { packRows } from "./packed-rows.ts";
import type { SharedLine } from "./shared-line.ts";
import type { TableEffects } from "./table-rows.ts";

/** Rows that one statement of a dropped arrival removes. */
const DROPPED_AT_ONCE = 4_096;

/** An arriving root that this process has. */
export interface HeldArrival extends LocalMove {
  readonly epoch: number;
}

const COLUMNS = `move_id AS "moveId", owner, state, number, '' AS address, head, epoch`;

/** Who serves a root that is whole, and the epoch with which its leases begin. */
export interface ArrivalHolder {
  readonly instance: string;
  readonly epoch: number;
}

/** Each statement stands for itself, and says under which epoch it changes anything. */
export class ArrivalCommits {
  readonly #line: SharedLine;
  readonly #instance: string;

  constructor(line: SharedLine, instance: string) {
    this.#line = line;
    this.#instance = instance;
  }

  /** Takes a move from whoever had it, under an epoch of its own; none where nothing of it has come. */
  async take(moveId: string): Promise<HeldArrival[]> {
    const rows = await this.#ask(
      `UPDATE arrival SET instance = $1, epoch = nextval('arrival_epoch'), taken_at = clock_timestamp()
       WHERE move_id = $2 RETURNING ${COLUMNS}`,
      [this.#instance, moveId],
    );
    return rows as unknown as HeldArrival[];
  }

  /** A move as it is there now, while this process has it. */
  async find(moveId: string): Promise<HeldArrival | undefined> {
    const [row] = await this.#ask(`SELECT ${COLUMNS} FROM arrival WHERE move_id = $1 AND instance = $2`, [
      moveId,
      this.#instance,
    ]);
    return row as unknown as HeldArrival | undefined;
  }

  /** True when the engine has a root of this owner. */
  async hasRoot(owner: string): Promise<boolean> {
    return (await this.#ask("SELECT 1 FROM root WHERE owner = $1", [owner])).length > 0;
  }

  /** Makes room under the first number that is free; false without one. */
  async begin(moveId: string, owner: string, numbers: readonly number[]): Promise<boolean> {
    const [row] = await this.#ask("SELECT begin_arrival($1, $2, $3, $4) AS begun", [
      moveId,
      owner,
      this.#instance,
      numbers,
    ]);
    return row?.["begun"] === true;
  }

  /** The sum of what has come, and how many rows it has. */
  async sum(number: number): Promise<readonly [checksum: string, rows: number] | undefined> {
    const [row] = await this.#ask(MOVE_SUM.replace("?", "$1"), [number]);
    return row && [String(row["checksum"]), Number(row["row_count"])];
  }

  /** Those of the source's names that have a chunk here. */
  async known(number: number, names: readonly string[]): Promise<ReadonlySet<string>> {
    const rows = await this.#ask("SELECT name FROM arrived_chunk WHERE number = $1 AND name = ANY ($2)", [
      number,
      names,
    ]);
    return new Set(rows.map(({ name }) => String(name)));
  }

  /** Commits what a command has changed; with a holder the root is served from then on. */
  async commit(
    { moveId, epoch, number }: HeldArrival,
    { batch }: ArrivalThere,
    effects: readonly TableEffects[],
    holder?: ArrivalHolder,
  ): Promise<void> {
    requireOwnRoots(effects, [{ number, epoch, batch }]);
    const { steps, counts, numbers, texts, bytes } = packRows(effects, ARRIVAL_TABLES);
    await this.#ask("SELECT commit_arrived_rows($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)", [
      moveId,
      epoch,
      batch + 1,
      steps,
      counts,
      numbers,
      texts,
      bytes,
      holder?.instance ?? null,
      holder?.epoch ?? null,
    ]);
  }

  /** False when another process has the move by now. */
  async keepHead({ moveId, epoch }: HeldArrival, head: string): Promise<boolean> {
    const rows = await this.#ask(
      "UPDATE arrival SET head = $3 WHERE move_id = $1 AND epoch = $2 AND state = 'arriving' RETURNING move_id",
      [moveId, epoch, head],
    );
    return rows.length === 1;
  }

  /** Removes a part, and tells whether more is left, or another process had the move before that. */
  async dropSlice({ moveId, epoch }: HeldArrival): Promise<"done" | "fenced" | "more"> {
    // The lock comes first, so that the epoch is still that when the function looks.
    const [row] = await this.#ask(
      `SELECT drop_arrival(held.move_id, held.epoch, $3) AS more
       FROM (SELECT move_id, epoch FROM arrival WHERE move_id = $1 AND epoch = $2 FOR UPDATE) held`,
      [moveId, epoch, DROPPED_AT_ONCE],
    );
    if (row === undefined) return "fenced";
    return row["more"] === true ? "more" : "done";
  }

  /** Reads rows. */
  fetch(read: (client: pg.ClientBase) => Promise<ArrivalThere>): Promise<ArrivalThere> {
    return this.#line.run(read);
  }

  #ask(text: string, values: readonly unknown[]): Promise<Record<string, unknown>[]> {
    return this.#line.run(
      async (client) => (await client.query(text, [...values])).rows as Record<string, unknown>[],
    );
  }
}
