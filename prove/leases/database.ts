// The shared engine's database in memory, each statement at one moment of simulated time, as PostgreSQL has it.
import { ARRIVING } from "#storage/metadata/moved-roots.ts";
import type { ChunkBlock } from "#storage/object-store/chunk-blocks.ts";
import { ArrivingRoots, type Holding } from "./arriving-roots.ts";
import { EngineRows, type Statement, type Values } from "./engine-rows.ts";
import { LeavingRoots } from "./leaving-roots.ts";

interface Instance {
  beat: number;
  isEnded: boolean;
  readonly leaseMs: number;
}

type Answer = { readonly rows: readonly object[]; readonly rowCount: number };

/** A connection, as statements use it. */
export interface Connection {
  query(text: string, values?: Values): Promise<Answer>;
}

/** The product's statements about leases and moves by how they begin, for its own code to run on. */
export class EngineDatabase {
  readonly instances = new Map<string, Instance>();
  readonly holdings = new Map<number, Holding>();
  readonly blocks = new Map<string, ChunkBlock>();
  readonly rows: EngineRows;
  readonly arriving: ArrivingRoots;
  readonly leaving: LeavingRoots;
  readonly #statements: readonly Statement[];
  readonly #known = new Map<string, Statement[1]>();
  /** Who reads one version of all rows; all others wait for those few statements. */
  #reader: object | undefined;
  #readerGone: Promise<void> = Promise.resolve();
  #endReader: () => void = () => undefined;

  constructor(newName: () => string) {
    this.rows = new EngineRows(newName);
    this.arriving = new ArrivingRoots(this.rows, (number, holding) => {
      this.holdings.set(number, holding);
    });
    this.leaving = new LeavingRoots(this.rows, {
      epochOf: (number) => this.holdings.get(number)?.epoch,
      give: (number, by) => {
        const holding = this.holdings.get(number);
        if (holding !== undefined) this.holdings.set(number, { instance: by, epoch: holding.epoch + 1 });
      },
      forget: (number) => void this.holdings.delete(number),
      mayTake: (by) => this.instances.get(by)?.isEnded === false,
      isArriving: (number) => this.arriving.withNumber(number) !== undefined,
    });
    this.#statements = [...this.#leases(), ...this.arriving.statements, ...this.leaving.statements];
  }

  /** Runs statements on a connection of their own. Rejects with Error for one that it does not know. */
  async run<T>(work: (connection: Connection) => Promise<T>): Promise<T> {
    const connection: Connection = { query: (text, values = []) => this.#query(connection, text, values) };
    try {
      return await work(connection);
    } finally {
      this.#release(connection);
    }
  }

  /** Changes a root as a commit of its holder does; false under another epoch. Throws the command's refusal. */
  commit(number: number, epoch: number, change: () => void): boolean {
    if (this.holdings.get(number)?.epoch !== epoch) return false;
    change();
    return true;
  }

  /** Makes a block of names durable. Throws Error for an epoch that is over. */
  addBlock(block: ChunkBlock): void {
    if (!this.#isOpen(block)) throw new Error("another node serves this root now");
    this.blocks.set(block.id, block);
  }

  /** Removes objects without a row from blocks whose epoch is over, as two sweeps do. */
  sweep(): void {
    const { stored } = this.rows;
    for (const block of this.blocks.values()) {
      if (this.#isOpen(block)) continue;
      this.blocks.delete(block.id);
      for (const name of stored.chunks.keys()) {
        const isKept = this.rows.all("SELECT 1 FROM chunk WHERE name = ?", name).length > 0;
        if (name.startsWith(block.id) && !isKept) stored.chunks.delete(name);
      }
    }
  }

  /** What is left of moves and objects once all has ended, in words. */
  left(): string[] {
    this.rows.stored.purge();
    this.sweep();
    const { chunks } = this.rows.stored;
    const listed = new Set(this.rows.all("SELECT name FROM chunk").map(({ name }) => String(name)));
    const strangers = [...chunks.keys()].filter((name) => !listed.has(name));
    const missing = this.rows
      .all("SELECT name FROM chunk WHERE refs > 0")
      .filter(({ name }) => !chunks.has(String(name)));
    return [
      ...this.arriving.left(),
      ...this.leaving.left(),
      ...this.rows.stored.orphans().map((text) => `in the engine ${text}`),
      ...this.rows.stored.drift(),
      ...(strangers.length === 0 ? [] : [`${strangers.length} objects have no row and no sweep`]),
      ...(missing.length === 0 ? [] : [`${missing.length} chunks have no object`]),
    ];
  }

  #isOpen({ rootId, epoch }: ChunkBlock): boolean {
    const arrival = this.arriving.arrivals.get(rootId.slice(ARRIVING.length));
    return arrival?.epoch === epoch && arrival.state === "arriving";
  }

  async #query(connection: object, text: string, values: Values): Promise<Answer> {
    while (this.#reader !== undefined && this.#reader !== connection) await this.#readerGone;
    if (text.startsWith("BEGIN")) {
      this.#reader = connection;
      this.#readerGone = new Promise((resolve) => {
        this.#endReader = resolve;
      });
      return { rows: [], rowCount: 0 };
    }
    if (text === "COMMIT") {
      this.#release(connection);
      return { rows: [], rowCount: 0 };
    }
    // As the real one, which answers with copies.
    const rows = this.#statement(text)(values).map((row) => ({ ...row }));
    return { rows, rowCount: rows.length };
  }

  #release(connection: object): void {
    if (this.#reader !== connection) return;
    this.#reader = undefined;
    this.#endReader();
  }

  #statement(text: string): Statement[1] {
    const known = this.#known.get(text);
    if (known !== undefined) return known;
    const plain = text.trim().replace(/\s+/g, " ");
    const found = this.#statements.find(([begins]) => plain.startsWith(begins));
    if (found === undefined) throw new Error(`unknown: ${plain}`);
    this.#known.set(text, found[1]);
    return found[1];
  }

  #leases(): readonly Statement[] {
    return [
      ["INSERT INTO instance", ([id, , leaseMs]) => this.#join(String(id), Number(leaseMs))],
      ["UPDATE instance SET beat", ([id]) => this.#renew(String(id))],
      ["UPDATE instance SET is_ended", ([id]) => this.#end(String(id))],
      ["SELECT id, beat", () => this.#running()],
      [
        "SELECT root_number AS number FROM holding",
        ([id, limit]) => this.#rootsOf(String(id)).slice(0, Number(limit)),
      ],
      [
        'SELECT root_number AS "number", epoch, last_batch AS batch FROM take_roots',
        (values) => this.#take(values),
      ],
      ["SELECT 1 FROM instance", () => []],
      [
        'SELECT root_number AS "number", epoch FROM holding',
        ([id, numbers]) =>
          [...this.holdings].flatMap(([number, { instance, epoch }]) =>
            instance === id && (numbers as number[]).includes(number) ? [{ number, epoch }] : [],
          ),
      ],
      [
        'SELECT root_number AS "number", epoch, last_batch AS batch FROM holding',
        ([id]) => this.#rootsOf(String(id)),
      ],
      ["SELECT id FROM instance WHERE is_ended", ([afterId]) => this.#endedHolders(String(afterId))],
      [
        "SELECT number, owner",
        ([numbers]) =>
          (numbers as number[]).flatMap((number) =>
            this.rows.all("SELECT number, owner, root_id AS rootId FROM root WHERE number = ?", number),
          ),
      ],
      [
        "SELECT 1 FROM root WHERE owner",
        ([owner]) => this.rows.all("SELECT 1 FROM root WHERE owner = ?", String(owner)),
      ],
    ];
  }

  #join(id: string, leaseMs: number): object[] {
    this.instances.set(id, { beat: 1, isEnded: false, leaseMs });
    return [];
  }

  #renew(id: string): object[] {
    const instance = this.instances.get(id);
    if (instance === undefined || instance.isEnded) return [];
    instance.beat++;
    return [{}];
  }

  #end(id: string): object[] {
    const instance = this.instances.get(id);
    if (instance !== undefined) instance.isEnded = true;
    return [];
  }

  #running(): object[] {
    return [...this.instances].flatMap(([id, { beat, isEnded, leaseMs }]) =>
      isEnded ? [] : [{ id, beat, leaseMs }],
    );
  }

  #rootsOf(id: string): { number: number; epoch: number; batch: number }[] {
    return [...this.holdings].flatMap(([number, { instance, epoch }]) =>
      instance === id ? [{ number, epoch, batch: 0 }] : [],
    );
  }

  #take([by, from, beat, roots]: Values): object[] {
    const taker = this.instances.get(String(by));
    const source = this.instances.get(String(from));
    if (taker === undefined || taker.isEnded || source === undefined) return [];
    if (!source.isEnded && source.beat !== beat) return [];
    source.isEnded = true;
    const taken: object[] = [];
    for (const number of roots as number[]) {
      const holding = this.holdings.get(number);
      if (holding === undefined || holding.instance !== from) continue;
      holding.instance = String(by);
      holding.epoch++;
      taken.push({ number, epoch: holding.epoch, batch: 0 });
    }
    return taken;
  }

  #endedHolders(afterId: string): object[] {
    const isMeant = (id: string, isEnded: boolean): boolean =>
      isEnded && id > afterId && this.#rootsOf(id).length > 0;
    const ended = [...this.instances].filter(([id, { isEnded }]) => isMeant(id, isEnded)).map(([id]) => id);
    return ended.toSorted().map((id) => ({ id }));
  }
}
