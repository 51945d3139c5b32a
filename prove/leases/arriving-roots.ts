// What the shared engine's database does for roots that arrive, told anew: each function at one moment.
import { CLUSTER_ROOT_NUMBERS_FROM, ROOT_NUMBER_MAX } from "#base/limits.ts";
import { ROOT_STRIDE } from "#storage/contract/inode.ts";
import { MOVE_BUCKET_BITS } from "#storage/metadata/move-rows.ts";
import { ARRIVAL_TABLES } from "#storage/shared/arrival-schema.ts";
import { FENCED } from "#storage/shared/fenced.ts";
import type { JsonRow } from "#storage/shared/table-rows.ts";
import type { EngineRows, Statement, Values } from "./engine-rows.ts";
import { type UnpackedRows, unpackRows } from "./unpacked-rows.ts";

/** A row of `arrival`. */
export interface ArrivalRow {
  readonly moveId: string;
  readonly number: number;
  readonly owner: string;
  state: "arriving" | "arrived";
  head: string;
  instance: string;
  epoch: number;
  batch: number;
}

/** Who may change a root. */
export interface Holding {
  instance: string;
  epoch: number;
}

/** See arrival-schema.ts and the statements of arrival-commits.ts and arrival-fetch.ts. */
export class ArrivingRoots {
  readonly arrivals = new Map<string, ArrivalRow>();
  /** By root, the chunks that have come by the source's names. */
  readonly #arrived = new Map<number, Map<string, number>>();
  readonly #rows: EngineRows;
  readonly #hold: (number: number, holding: Holding) => void;
  #epochs = 1;

  constructor(rows: EngineRows, hold: (number: number, holding: Holding) => void) {
    this.#rows = rows;
    this.#hold = hold;
  }

  /** What is left of arrivals, in words. */
  left(): string[] {
    const chunks = this.#arrived.values().reduce((sum, { size }) => sum + size, 0);
    return [
      ...[...this.arrivals.values()].map(({ owner, state }) => `the arrival of ${owner} is left, ${state}`),
      ...(chunks === 0 ? [] : [`${chunks} names of arrived chunks are left`]),
    ];
  }

  withNumber(number: unknown): ArrivalRow | undefined {
    return this.arrivals.values().find((one) => one.number === number);
  }

  readonly statements: readonly Statement[] = [
    ["UPDATE arrival SET instance", ([by, moveId]) => this.#take(String(by), String(moveId))],
    [
      `SELECT move_id AS "moveId", owner, state, number, '' AS address, head`,
      ([moveId, by]) => this.#listed(String(moveId)).filter(({ instance }) => instance === by),
    ],
    ["SELECT begin_arrival", (values) => [{ begun: this.#begin(values) }]],
    ["SELECT checksum, row_count FROM move_bucket", ([number]) => this.#rows.sum(Number(number))],
    [
      "SELECT name FROM arrived_chunk",
      ([number, names]) => {
        const known = this.#arrived.get(Number(number));
        return (names as string[]).flatMap((name) => (known?.has(name) === true ? [{ name }] : []));
      },
    ],
    ["SELECT commit_arrived_rows", (values) => this.#commit(values)],
    ["UPDATE arrival SET head", (values) => this.#keepHead(values)],
    [
      "SELECT drop_arrival",
      ([moveId, epoch]) => {
        const held = this.arrivals.get(String(moveId));
        return held === undefined || held.epoch !== epoch ? [] : [{ more: this.#drop(held) }];
      },
    ],
    [
      "WITH ids AS (SELECT * FROM unnest($2::bigint[], $3::bigint[]) AS q (low, high)), small AS (SELECT * FROM unnest($4::bigint[], $5::bigint[]) AS q (low, high)), lists AS (SELECT * FROM unnest($6::bigint[], $7::bigint[], $8::bigint[]) AS q (content, low, high)), named",
      (values) => byTable(this.#fetch(values)),
    ],
    [`SELECT 'batch' AS "table"`, ([number]) => this.#batch(number)],
  ];

  #listed(moveId: string): (ArrivalRow & { address: string })[] {
    const known = this.arrivals.get(moveId);
    return known === undefined ? [] : [{ ...known, address: "" }];
  }

  #take(by: string, moveId: string): object[] {
    const known = this.arrivals.get(moveId);
    if (known === undefined) return [];
    known.instance = by;
    known.epoch = ++this.#epochs;
    return this.#listed(moveId);
  }

  #begin([moveId, owner, by, numbers]: Values): boolean {
    const isTaken = (number: number): boolean => {
      const range = [number * ROOT_STRIDE, number * ROOT_STRIDE + ROOT_STRIDE - 1] as const;
      return (
        this.withNumber(number) !== undefined ||
        this.#rows.all("SELECT 1 FROM root WHERE number = ?", number).length > 0 ||
        this.#rows.all("SELECT 1 FROM inode WHERE id BETWEEN ? AND ? LIMIT 1", ...range).length > 0 ||
        this.#rows.all("SELECT 1 FROM file_chunk WHERE content_id BETWEEN ? AND ? LIMIT 1", ...range).length >
          0
      );
    };
    const number = (numbers as number[]).find(
      (one) => one >= CLUSTER_ROOT_NUMBERS_FROM && one <= ROOT_NUMBER_MAX && !isTaken(one),
    );
    if (number === undefined) return false;
    const row: ArrivalRow = {
      moveId: String(moveId),
      number,
      owner: String(owner),
      state: "arriving",
      head: "",
      instance: String(by),
      epoch: 1,
      batch: 0,
    };
    this.arrivals.set(row.moveId, row);
    return true;
  }

  #commit([moveId, epoch, batch, ...packed]: Values): object[] {
    const held = this.arrivals.get(String(moveId));
    if (held === undefined || held.epoch !== epoch || held.state !== "arriving") {
      throw Object.assign(new Error("another process has the arriving root"), { code: FENCED });
    }
    if (held.batch !== Number(batch) - 1) {
      throw Object.assign(new Error("another batch came between"), { code: "40001" });
    }
    const unpacked = unpackRows(ARRIVAL_TABLES, packed);
    this.#rows.stored.change(() => {
      for (const rows of unpacked) if (rows.table !== "arrived_chunk") this.#rows.write(rows);
    });
    this.#rows.stored.forget();
    for (const rows of unpacked) if (rows.table === "arrived_chunk") this.#keepNames(held.number, rows);
    held.batch++;
    const [holder, firstEpoch] = packed.slice(-2);
    if (holder !== null) {
      held.state = "arrived";
      this.#hold(held.number, { instance: String(holder), epoch: Number(firstEpoch) });
    }
    return [];
  }

  #keepNames(number: number, { gone, rows }: UnpackedRows): void {
    const known = this.#arrived.get(number) ?? new Map<string, number>();
    this.#arrived.set(number, known);
    for (const { name } of gone) known.delete(String(name));
    for (const { name, chunk_id: id } of rows) known.set(String(name), Number(id));
  }

  #keepHead([moveId, epoch, head]: Values): object[] {
    const held = this.arrivals.get(String(moveId));
    if (held === undefined || held.epoch !== epoch || held.state !== "arriving") return [];
    held.head = String(head);
    return [{}];
  }

  /** In two parts, so that a process may end between them. */
  #drop({ moveId, number, state }: ArrivalRow): boolean {
    const chunks = this.#arrived.get(number);
    if (chunks !== undefined) {
      this.#arrived.delete(number);
      if (state === "arrived") return true;
      const base = number * ROOT_STRIDE;
      this.#rows.stored.change(() => {
        this.#rows.all(
          "DELETE FROM file_chunk WHERE content_id BETWEEN ? AND ?",
          base,
          base + ROOT_STRIDE - 1,
        );
        const dropped = [...chunks.values()].filter(
          (id) =>
            this.#rows.all("UPDATE chunk SET refs = 0 WHERE id = ? AND refs > 0 RETURNING id", id).length > 0,
        );
        this.#rows.garbage(dropped);
      });
      return true;
    }
    this.#rows.stored.change(() => {
      if (state === "arriving") this.#rows.drop(number);
      this.#rows.all("DELETE FROM move_bucket WHERE number = ?", number);
    });
    this.#rows.stored.forget();
    this.arrivals.delete(moveId);
    return false;
  }

  #batch(number: unknown): JsonRow[] {
    const held = this.withNumber(number);
    return held === undefined ? [] : [{ table: "batch", row: { batch: held.batch } }];
  }

  #fetch(values: Values): JsonRow[] {
    const [number, idsFrom, idsTo, smallFrom, smallTo, contents, from, to, parents, names, chunkNames] =
      values;
    const rows = this.#rows;
    const inodes = [
      ...rows.between("inode", "id", [idsFrom, idsTo]),
      ...(parents as number[]).flatMap((parent, at) =>
        rows
          .all("SELECT * FROM inode WHERE parent_id = ? AND name = ?", parent, (names as string[])[at] ?? "")
          .map((row) => rows.json("inode", row)),
      ),
    ];
    const purging = [
      ...rows.between("purging", "inode_id", [idsFrom, idsTo]),
      ...rows.between("purging", "content_id", [idsFrom, idsTo]),
    ];
    const positions = rows.positions([contents, from, to]);
    const wanted = new Set(chunkNames as string[]);
    const listed = new Set(positions.map(({ row }) => Number(row["chunk_id"])));
    const arrived = [...(this.#arrived.get(Number(number)) ?? [])];
    const chunks = arrived.flatMap(([name, id]) => {
      if (!wanted.has(name) && !listed.has(id)) return [];
      return rows.all("SELECT * FROM chunk WHERE id = ?", id).map((row) => {
        const own = row["name"];
        const { table, row: json } = rows.json("chunk", row);
        return { table, row: { ...json, name, own } };
      });
    });
    const base = Number(number) * ROOT_STRIDE;
    const [idBits, positionBits, inlineBits] = MOVE_BUCKET_BITS;
    const keys = [
      ...(idsFrom as number[]).map((low) => [0, Math.floor((low - base) / 2 ** idBits), 0] as const),
      ...inodes.map(({ row }) => [0, Math.floor((Number(row["id"]) - base) / 2 ** idBits), 0] as const),
      ...(smallFrom as number[]).map((low) => [2, Math.floor((low - base) / 2 ** inlineBits), 0] as const),
      ...(contents as number[]).map(
        (content, at) => [1, content - base, ((from as number[])[at] ?? 0) >> positionBits] as const,
      ),
      [3, 0, 0] as const,
    ];
    const buckets = keys.flatMap(([kind, a, b]) =>
      rows
        .all(
          "SELECT * FROM move_bucket WHERE number = ? AND kind = ? AND a = ? AND b = ?",
          Number(number),
          kind,
          a,
          b,
        )
        .map((row) => rows.json("move_bucket", row)),
    );
    return [
      ...this.#batch(number),
      ...inodes,
      ...purging.map(({ table, row: { id } }) => ({ table, row: { id } })),
      ...rows.between("inline_content", "inode_id", [smallFrom, smallTo]),
      ...positions,
      ...chunks,
      ...buckets,
    ];
  }
}

function byTable(found: readonly JsonRow[]): object[] {
  return [...Map.groupBy(found, ({ table }) => table)].map(([table, all]) => ({
    table,
    rows: all.map(({ row }) => row),
  }));
}
