// Roots that leave the shared engine, in PostgreSQL: what changes them, under the epoch of their holder.
import { GroveError } from "#base/errors.ts";
import { ROOT_STRIDE } from "#storage/contract/inode.ts";
import type { LocalMove, MoveBucketKey, MovedRootHead, MoveTotals } from "#storage/contract/root-move.ts";
import type { ChunkRecord } from "#storage/metadata/content-records.ts";
import { MOVE_SUM, totalsOf } from "#storage/metadata/move-sums.ts";
import { chunkIdOf, DepartureReads, DISK_NAME } from "./departure-fetch.ts";
import { FENCED } from "./fenced.ts";
import type { TakenRoot } from "./lease-rows.ts";
import type { SharedLine } from "./shared-line.ts";
import type { JsonRow } from "./table-rows.ts";

/** Ids that one statement marks, so that commits wait little. */
const MARKED_AT_ONCE = 16_384;
/** Rows that one statement removes. */
const DROPPED_AT_ONCE = 4_096;

/** A root on its way, with the epoch under which this process holds it. */
export interface LeavingRoot {
  readonly moveId: string;
  readonly number: number;
  readonly epoch: number;
}

/** A chunk of a leaving root. */
export interface LeavingChunk extends ChunkRecord {
  readonly isDamaged: boolean;
}

const COLUMNS = `move_id AS "moveId", owner, state, number, address, '' AS head`;
const LIVING = "state IN ('copying', 'frozen', 'departed', 'removing')";

const HEAD = `
  SELECT r.owner, root_id AS "rootId", access_version AS "accessVersion", live_bytes AS "liveBytes",
    trash_bytes AS "trashBytes", staging_bytes AS "stagingBytes", file_count AS "fileCount", live_inodes AS "liveInodes",
    trash_inodes AS "trashInodes", next_id AS "nextId", grant_count AS "grantCount", lock_version AS "lockVersion",
    lock_count AS "lockCount", property_bytes AS "propertyBytes"
  FROM root r JOIN departure d ON d.number = r.number WHERE move_id = $1`;

const CHUNK = `
  SELECT c.id, c.name, c.length, c.crc32, c.block_crcs AS "blockCrcs",
    EXISTS (SELECT 1 FROM damaged_chunk WHERE chunk_id = c.id) AS "isDamaged"
  FROM chunk c WHERE c.id = $1 AND ${DISK_NAME} = $2
    AND EXISTS (SELECT 1 FROM file_chunk WHERE chunk_id = c.id AND content_id BETWEEN $3 AND $4)`;

/** Each statement stands for itself. Throws FENCED for a root that another process holds. */
export class DepartureCommits {
  readonly #line: SharedLine;

  constructor(line: SharedLine) {
    this.#line = line;
  }

  /** Those of roots, by number; a departed root is in the hands of no process. */
  async ofRoots(numbers: readonly number[]): Promise<LocalMove[]> {
    return (await this.#ask(`SELECT ${COLUMNS} FROM departure WHERE number = ANY ($1) AND ${LIVING}`, [
      numbers,
    ])) as unknown as LocalMove[];
  }

  /** A move as it is there now; one whose rows are going counts as departed. */
  async find(moveId: string): Promise<LocalMove | undefined> {
    const [row] = await this.#ask(`SELECT ${COLUMNS} FROM departure WHERE move_id = $1 AND ${LIVING}`, [
      moveId,
    ]);
    if (row === undefined) return undefined;
    const state = row["state"] === "removing" ? "departed" : row["state"];
    return { ...row, state } as unknown as LocalMove;
  }

  /** Begins it unless it has begun; false when the root is under another move. */
  async begin({ moveId, number, epoch }: LeavingRoot): Promise<boolean> {
    for (;;) {
      const [row] = await this.#ask("SELECT begin_departure($1, $2, $3, $4) AS begun", [
        moveId,
        number,
        epoch,
        DROPPED_AT_ONCE,
      ]);
      // NULL: rows of a move that is over are left.
      if (row === undefined || row["begun"] !== null) return row?.["begun"] === true;
    }
  }

  /** Marks a part of what was there at the beginning. */
  async mark({ moveId, epoch }: LeavingRoot): Promise<void> {
    await this.#ask("SELECT mark_departure($1, $2, $3)", [moveId, epoch, MARKED_AT_ONCE]);
  }

  /** Rows of buckets that receipts are about, and of the sum. */
  async buckets(number: number, keys: readonly MoveBucketKey[]): Promise<JsonRow[]> {
    return (await this.#ask(
      `SELECT 'move_bucket' AS "table", row_to_json(m) AS row FROM unnest($2::bigint[], $3::bigint[], $4::bigint[]) AS q (kind, a, b)
         JOIN move_bucket m ON m.number = $1 AND m.kind = q.kind AND m.a = q.a AND m.b = q.b
       UNION ALL SELECT 'move_bucket', row_to_json(m) FROM move_bucket m WHERE m.number = $1 AND m.kind = 3`,
      [number, keys.map(({ kind }) => kind), keys.map(({ a }) => a), keys.map(({ b }) => b)],
    )) as unknown as JsonRow[];
  }

  /** Keeps what has arrived of them. */
  async receive({ moveId, epoch }: LeavingRoot, rows: readonly object[]): Promise<void> {
    await this.#ask("SELECT receive_departure($1, $2, $3)", [moveId, epoch, JSON.stringify(rows)]);
  }

  /** Reads one version of all rows. */
  read<T>(number: number, run: (reads: DepartureReads) => Promise<T>): Promise<T> {
    return this.#line.run(async (client) => {
      await client.query("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY");
      const result = await run(new DepartureReads(client, number));
      await client.query("COMMIT");
      return result;
    });
  }

  /** The sum of what has arrived; undefined while anything is left. */
  async totals(moveId: string): Promise<MoveTotals | undefined> {
    const [row] = await this.#ask(
      `SELECT d.number FROM departure d WHERE move_id = $1 AND marked >= ids
         AND NOT EXISTS (SELECT 1 FROM move_bucket m WHERE m.number = d.number AND m.changes > m.sent)`,
      [moveId],
    );
    if (row === undefined) return undefined;
    const [sum] = await this.#ask(MOVE_SUM.replace("?", "$1"), [row["number"]]);
    return totalsOf(sum && [String(sum["checksum"]), Number(sum["row_count"])]);
  }

  /** Keeps that the root changes no more, or that it does again. */
  async set({ moveId, epoch }: LeavingRoot, state: "copying" | "frozen"): Promise<void> {
    await this.#ask("SELECT set_departure($1, $2, $3)", [moveId, epoch, state]);
  }

  /** The counters of the root. */
  async head(moveId: string): Promise<MovedRootHead | undefined> {
    const [row] = await this.#ask(HEAD, [moveId]);
    return row as unknown as MovedRootHead | undefined;
  }

  /** Ends the lease of a root whose home is elsewhere by now. */
  async depart(moveId: string, address: string): Promise<void> {
    await this.#ask("SELECT depart_root($1, $2)", [moveId, address]);
  }

  /** Gives a frozen root to a process that runs, and ends its move; undefined when it is not frozen. */
  async handOver(moveId: string, instance: string): Promise<TakenRoot | undefined> {
    const [row] = await this.#ask(
      'SELECT root_number AS "number", epoch, last_batch AS batch FROM hand_over($1, $2)',
      [moveId, instance],
    );
    return row as unknown as TakenRoot | undefined;
  }

  /** True while the database has a root under this epoch. */
  async isHeld({ number, epoch }: { readonly number: number; readonly epoch: number }): Promise<boolean> {
    const rows = await this.#ask("SELECT 1 FROM holding WHERE root_number = $1 AND epoch = $2", [
      number,
      epoch,
    ]);
    return rows.length > 0;
  }

  /** Removes a part; true while more is left. */
  async dropSlice(moveId: string): Promise<boolean> {
    const [row] = await this.#ask("SELECT drop_departure($1, $2) AS more", [moveId, DROPPED_AT_ONCE]);
    return row?.["more"] === true;
  }

  /** A chunk of the root by its name on disks; the name of another root's finds nothing. */
  async chunk(number: number, diskName: string): Promise<LeavingChunk | undefined> {
    const [base, id] = [number * ROOT_STRIDE, chunkIdOf(diskName)];
    if (id > BigInt(Number.MAX_SAFE_INTEGER)) return undefined;
    const [row] = await this.#ask(CHUNK, [Number(id), diskName, base, base + ROOT_STRIDE - 1]);
    return row as unknown as LeavingChunk | undefined;
  }

  #ask(text: string, values: readonly unknown[]): Promise<Record<string, unknown>[]> {
    return this.#line
      .run(async (client) => (await client.query(text, [...values])).rows as Record<string, unknown>[])
      .catch((error: unknown) => {
        if ((error as { code?: unknown }).code !== FENCED) throw error;
        throw new GroveError("FENCED", "another node of the shared engine serves this root now");
      });
  }
}
