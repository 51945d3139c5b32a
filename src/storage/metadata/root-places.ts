// Where moves have brought roots last: a root that has left this folder is never made here anew (D27).
import type { DatabaseSync, StatementSync } from "node:sqlite";
import { GroveError } from "#base/errors.ts";
import type { DepartedRoot } from "#storage/contract/root-move.ts";
import type { SnapshotTables } from "./snapshot-reader.ts";

/** Roots of which a data folder remembers that they have left; beyond them those that left first are forgotten. */
export const DEPARTED_ROOTS_MAX = 20_000;

/** A root that a move has brought somewhere. */
interface MovedRoot {
  readonly rootId: string;
  readonly owner: string;
  readonly moveId: string;
}

/** The rows, in the transaction of a command. */
export class RootPlaces {
  readonly #put: StatementSync;
  readonly #forgetOldest: StatementSync;
  readonly #departed: StatementSync;

  constructor(db: DatabaseSync) {
    this.#put = db.prepare(
      `INSERT INTO root_place (root_id, owner, move_id, is_here, target, address) VALUES (?, ?, ?, ?, ?, ?)
       ON CONFLICT (root_id) DO UPDATE SET owner = excluded.owner, move_id = excluded.move_id,
         is_here = excluded.is_here, target = excluded.target, address = excluded.address`,
    );
    this.#forgetOldest = db.prepare(
      `DELETE FROM root_place WHERE is_here = 0 AND move_id <= (SELECT move_id FROM root_place WHERE is_here = 0
         ORDER BY move_id DESC LIMIT 1 OFFSET ${DEPARTED_ROOTS_MAX})`,
    );
    this.#departed = db.prepare("SELECT target, address FROM root_place WHERE root_id = ? AND is_here = 0");
  }

  /** Notes that a root has left. */
  left({ rootId, owner, moveId }: MovedRoot, { target, address }: Omit<DepartedRoot, keyof MovedRoot>): void {
    this.#put.run(rootId, owner, moveId, 0, target, address);
    this.#forgetOldest.run();
  }

  /** Notes that a root has come here. */
  came({ rootId, owner, moveId }: MovedRoot): void {
    this.#put.run(rootId, owner, moveId, 1, "", "");
  }

  /** Throws WRONG_NODE, with the address of its node, for a root that has left. */
  requireNotDeparted(rootId: string): void {
    const place = this.#departed.get(rootId) as Pick<DepartedRoot, "target" | "address"> | undefined;
    if (place === undefined) return;
    throw new GroveError(
      "WRONG_NODE",
      `this root has moved from here to ${place.target || "another node"}, and no empty one is made in its place`,
      { metadata: place.address === "" ? {} : { address: place.address } },
    );
  }
}

/** Reads the rows. */
export class RootPlaceReader {
  readonly #tables: SnapshotTables;
  readonly #arrived: ReturnType<SnapshotTables["prepare"]>;
  readonly #departed: ReturnType<SnapshotTables["prepare"]>;

  constructor(tables: SnapshotTables) {
    this.#tables = tables;
    this.#arrived = tables.prepare("SELECT root_id, move_id FROM root_place WHERE is_here = 1");
    this.#departed = tables.prepare(
      `SELECT root_id, owner, move_id, target, address FROM root_place
       WHERE is_here = 0 AND (?1 IS NULL OR owner = ?1) ORDER BY move_id`,
    );
  }

  /** The moves that have brought roots here, by root id. */
  arrivals(): ReadonlyMap<string, string> {
    return new Map(this.#tables.read(() => this.#arrived.all()) as unknown as [string, string][]);
  }

  /** Roots that have left, of one owner or of all. */
  departed(owner?: string): readonly DepartedRoot[] {
    const rows = this.#tables.read(() => this.#departed.all(owner ?? null)) as unknown as [
      string,
      string,
      string,
      string,
      string,
    ][];
    return rows.map(([rootId, of, moveId, target, address]) => ({
      rootId,
      owner: of,
      moveId,
      target,
      address,
    }));
  }
}
