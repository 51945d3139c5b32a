// What the shared engine's database does for roots that leave, told anew: each function at one moment.
import { ROOT_STRIDE } from "#storage/contract/inode.ts";
import { journalRemovals, journalTriggers, MARK_BUCKETS } from "#storage/metadata/move-journal.ts";
import { DEPARTED } from "#storage/metadata/moved-roots.ts";
import { FENCED } from "#storage/shared/fenced.ts";
import type { JsonRow } from "#storage/shared/table-rows.ts";
import type { EngineRows, Row, Statement, Values } from "./engine-rows.ts";

/** A row of `departure`. */
export interface DepartureRow {
  readonly moveId: string;
  readonly number: number;
  readonly owner: string;
  state: "copying" | "frozen" | "departed" | "removing" | "ended";
  address: string;
  readonly ids: number;
  marked: number;
}

/** What departures ask of who holds roots. */
export interface Holders {
  /** The epoch under which a root is held; undefined for an unknown one. */
  readonly epochOf: (number: number) => number | undefined;
  /** Takes a root from its holder, for no process where `by` is empty. */
  readonly give: (number: number, by: string) => void;
  readonly forget: (number: number) => void;
  readonly mayTake: (by: string) => boolean;
  readonly isArriving: (number: number) => boolean;
}

const DISK_NAME = "substr(name, 1, 16) || printf('%016x', id)";

/** See departure-schema.ts and the statements of departure-commits.ts and departure-fetch.ts. */
export class LeavingRoots {
  readonly departures = new Map<string, DepartureRow>();
  readonly #rows: EngineRows;
  readonly #holders: Holders;

  constructor(rows: EngineRows, holders: Holders) {
    this.#rows = rows;
    this.#holders = holders;
  }

  /** What is left of departures, in words. */
  left(): string[] {
    return [...this.departures.values()].map(
      ({ owner, state }) => `the departure of ${owner} is left, ${state}`,
    );
  }

  readonly statements: readonly Statement[] = [
    [
      `SELECT move_id AS "moveId", owner, state, number, address, '' AS head FROM departure WHERE number`,
      ([numbers]) => this.#living((one) => (numbers as number[]).includes(one.number)),
    ],
    [
      `SELECT move_id AS "moveId", owner, state, number, address, '' AS head FROM departure WHERE move_id`,
      ([moveId]) => this.#living((one) => one.moveId === moveId),
    ],
    ["SELECT begin_departure", (values) => [{ begun: this.#begin(values) }]],
    [
      "SELECT mark_departure",
      ([moveId, epoch, limit]) => this.#mark(this.#locked(moveId, epoch), Number(limit)),
    ],
    [`SELECT 'move_bucket' AS "table"`, (values) => this.#buckets(values)],
    ["SELECT receive_departure", ([moveId, epoch, rows]) => this.#receive(this.#locked(moveId, epoch), rows)],
    ["SELECT set_departure", ([moveId, epoch, state]) => this.#set(this.#locked(moveId, epoch), state)],
    ["SELECT d.number FROM departure d", ([moveId]) => this.#whole(String(moveId))],
    ["SELECT r.owner, root_id", ([moveId]) => this.#head(String(moveId))],
    ["SELECT depart_root", ([moveId, address]) => this.#depart(String(moveId), String(address))],
    [
      'SELECT root_number AS "number", epoch, last_batch AS batch FROM hand_over',
      ([moveId, by]) => this.#handOver(String(moveId), String(by)),
    ],
    [
      "SELECT 1 FROM holding WHERE root_number",
      ([number, epoch]) => (this.#holders.epochOf(Number(number)) === epoch ? [{}] : []),
    ],
    ["SELECT drop_departure", ([moveId]) => [{ more: this.#drop(String(moveId)) }]],
    ["SELECT c.id, c.name, c.length", (values) => this.#chunk(values)],
    [
      "SELECT kind, a, b, changes FROM move_bucket",
      (values) =>
        this.#rows.all(
          `SELECT kind, a, b, changes FROM move_bucket WHERE number = ? AND changes > sent
             AND (kind, a, b) > (?, ?, ?) ORDER BY kind, a, b`,
          ...(values as number[]),
        ),
    ],
    ["SELECT (SELECT count(*)", ([number]) => this.#left(Number(number))],
    ["WITH ids AS", (values) => this.#read(values)],
  ];

  #living(is: (row: DepartureRow) => boolean): object[] {
    return [...this.departures.values()]
      .filter((one) => is(one) && one.state !== "ended")
      .map((row) => ({ ...row, head: "" }));
  }

  #locked(moveId: unknown, epoch: unknown): DepartureRow {
    const row = this.departures.get(String(moveId));
    if (row === undefined || this.#holders.epochOf(row.number) !== epoch) throw fenced();
    return row;
  }

  #begin([moveId, numbered, epoch]: Values): boolean {
    const number = Number(numbered);
    if (this.#holders.epochOf(number) !== epoch) throw fenced();
    const known = this.departures.values().find((one) => one.number === number);
    if (known !== undefined && known.state !== "ended") return known.moveId === moveId;
    if (known !== undefined) {
      this.#forget(number);
      this.departures.delete(known.moveId);
    }
    if (this.#holders.isArriving(number)) return false;
    const [root] = this.#rows.all("SELECT owner, next_id AS ids FROM root WHERE number = ?", number);
    for (const statement of journalTriggers(number)) this.#rows.stored.db.exec(statement);
    this.departures.set(String(moveId), {
      moveId: String(moveId),
      number,
      owner: String(root?.["owner"]),
      state: "copying",
      address: "",
      ids: Number(root?.["ids"]),
      marked: 0,
    });
    return true;
  }

  #mark(row: DepartureRow, limit: number): object[] {
    const last = Math.min(row.ids, row.marked + limit) - 1;
    if (last < row.marked) return [];
    const { number } = row;
    for (const sql of MARK_BUCKETS)
      this.#rows.stored.db.prepare(sql).run(number, number * ROOT_STRIDE, row.marked, last);
    row.marked = last + 1;
    return [];
  }

  #buckets([number, kinds, as, bs]: Values): JsonRow[] {
    const keys = (kinds as number[]).map((kind, at) => [
      kind,
      (as as number[])[at] ?? 0,
      (bs as number[])[at] ?? 0,
    ]);
    return [...keys, [3, 0, 0]].flatMap((key) =>
      this.#rows
        .all(
          "SELECT * FROM move_bucket WHERE number = ? AND kind = ? AND a = ? AND b = ?",
          Number(number),
          ...key,
        )
        .map((row) => this.#rows.json("move_bucket", row)),
    );
  }

  #receive(_row: DepartureRow, text: unknown): object[] {
    for (const row of JSON.parse(String(text)) as Row[]) {
      const values = "number,kind,a,b,changes,sent,checksum,row_count"
        .split(",")
        .map((name) => row[name] as number);
      this.#rows.all(
        `INSERT INTO move_bucket (number, kind, a, b, changes, sent, checksum, row_count) VALUES (?, ?, ?, ?, ?, ?, ?, ?)
         ON CONFLICT (number, kind, a, b) DO UPDATE SET sent = excluded.sent, checksum = excluded.checksum,
           row_count = excluded.row_count, changes = max(changes, excluded.changes)`,
        ...values,
      );
    }
    return [];
  }

  #set(row: DepartureRow, state: unknown): object[] {
    if (row.state === "copying" || row.state === "frozen") row.state = state as DepartureRow["state"];
    return [];
  }

  #whole(moveId: string): object[] {
    const row = this.departures.get(moveId);
    if (row === undefined || row.marked < row.ids) return [];
    const open = this.#rows.all(
      "SELECT 1 FROM move_bucket WHERE number = ? AND changes > sent LIMIT 1",
      row.number,
    );
    return open.length > 0 ? [] : [{ number: row.number }];
  }

  #head(moveId: string): object[] {
    const row = this.departures.get(moveId);
    if (row === undefined) return [];
    return this.#rows.all(
      `SELECT owner, root_id AS rootId, access_version AS accessVersion, live_bytes AS liveBytes,
         trash_bytes AS trashBytes, staging_bytes AS stagingBytes, file_count AS fileCount, live_inodes AS liveInodes,
         trash_inodes AS trashInodes, next_id AS nextId, grant_count AS grantCount, lock_version AS lockVersion,
         lock_count AS lockCount, property_bytes AS propertyBytes FROM root WHERE number = ?`,
      row.number,
    );
  }

  #depart(moveId: string, address: string): object[] {
    const row = this.departures.get(moveId);
    if (row?.state !== "frozen") return [];
    row.state = "departed";
    row.address = address;
    for (const statement of journalRemovals(row.number)) this.#rows.stored.db.exec(statement);
    this.#rows.all("UPDATE root SET owner = ? WHERE number = ?", DEPARTED + moveId, row.number);
    this.#rows.stored.forget();
    this.#holders.give(row.number, "");
    return [];
  }

  #handOver(moveId: string, by: string): object[] {
    const row = this.departures.get(moveId);
    if (!this.#holders.mayTake(by) || row?.state !== "frozen") return [];
    const { number } = row;
    this.departures.delete(moveId);
    this.#forget(number);
    this.#holders.give(number, by);
    return [{ number, epoch: this.#holders.epochOf(number), batch: 0 }];
  }

  #forget(number: number): void {
    for (const statement of journalRemovals(number)) this.#rows.stored.db.exec(statement);
    this.#rows.all("DELETE FROM move_bucket WHERE number = ?", number);
  }

  /** In two parts, so that a process may end between them. */
  #drop(moveId: string): boolean {
    const row = this.departures.get(moveId);
    if (row === undefined) return false;
    const { number } = row;
    const isGoing = row.state === "departed" || row.state === "removing";
    row.state = isGoing ? "removing" : "ended";
    const within = [number * ROOT_STRIDE, number * ROOT_STRIDE + ROOT_STRIDE - 1] as const;
    if (isGoing) {
      const listed = this.#rows.stored.change(() => this.#dropLists(within));
      if (listed > 0) return true;
      this.#rows.stored.change(() => {
        this.#rows.drop(number);
        this.#rows.all("DELETE FROM root WHERE number = ?", number);
      });
      this.#rows.stored.forget();
      this.#holders.forget(number);
    }
    this.#forget(number);
    this.departures.delete(moveId);
    return false;
  }

  #dropLists(within: readonly [number, number]): number {
    const rows = this.#rows;
    const listed = rows.all(
      "DELETE FROM file_chunk WHERE content_id BETWEEN ? AND ? RETURNING chunk_id AS id",
      ...within,
    );
    const dropped = listed.flatMap(({ id }) =>
      rows.all("UPDATE chunk SET refs = refs - 1 WHERE id = ? RETURNING id, refs", Number(id)),
    );
    rows.garbage(dropped.flatMap(({ id, refs }) => (refs === 0 ? [Number(id)] : [])));
    return listed.length;
  }

  #chunk([id, name, low, high]: Values): object[] {
    return this.#rows.all(
      `SELECT id, name, length, crc32, block_crcs AS blockCrcs, 0 AS isDamaged FROM chunk c
       WHERE id = ? AND ${DISK_NAME} = ?
         AND EXISTS (SELECT 1 FROM file_chunk WHERE chunk_id = c.id AND content_id BETWEEN ? AND ?)`,
      Number(id),
      String(name),
      Number(low),
      Number(high),
    );
  }

  #left(number: number): object[] {
    const row = this.departures.values().find((one) => one.number === number);
    const [count] = this.#rows.all(
      "SELECT count(*) AS changed FROM move_bucket WHERE number = ? AND changes > sent",
      number,
    );
    return [{ changed: count?.["changed"], unmarked: row === undefined ? null : row.ids - row.marked }];
  }

  #read([, idsFrom, idsTo, smallFrom, smallTo, contents, from, to]: Values): JsonRow[] {
    const rows = this.#rows;
    const positions = rows.positions([contents, from, to]);
    const chunks = [...new Set(positions.map(({ row }) => Number(row["chunk_id"])))].flatMap((id) =>
      rows
        .all(`SELECT id, ${DISK_NAME} AS name, length, crc32, block_crcs, refs FROM chunk WHERE id = ?`, id)
        .map((row) => rows.json("chunk", row)),
    );
    return [
      ...rows.between("inode", "id", [idsFrom, idsTo]),
      ...rows.between("purging", "inode_id", [idsFrom, idsTo]),
      ...rows.between("purging", "content_id", [idsFrom, idsTo]),
      ...rows.between("inline_content", "inode_id", [smallFrom, smallTo]),
      ...positions,
      ...chunks,
    ];
  }
}

function fenced(): Error {
  return Object.assign(new Error("another process holds the root"), { code: FENCED });
}
