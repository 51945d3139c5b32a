// The leases' tables in memory, each statement at one moment of simulated time, as PostgreSQL's functions have it.

interface Instance {
  beat: number;
  isEnded: boolean;
  readonly leaseMs: number;
}

/** Who may change a root, and its value: a number that rises with every change. */
export interface Holding {
  instance: string;
  epoch: number;
  value: number;
}

type Answer = { readonly rows: readonly object[]; readonly rowCount: number };
type Values = readonly unknown[];

/** The statements of lease-rows.ts by how they begin, for the product's own code to run on. */
export class LeaseTables {
  readonly instances = new Map<string, Instance>();
  readonly holdings = new Map<number, Holding>();

  /** Runs a statement. Throws Error for one that it does not know. */
  query(text: string, values: Values = []): Promise<Answer> {
    const found = this.#statements.find(([begins]) => text.trim().replace(/\s+/g, " ").startsWith(begins));
    if (found === undefined) throw new Error(`unknown: ${text}`);
    const rows = found[1](values);
    return Promise.resolve({ rows, rowCount: rows.length });
  }

  readonly #statements: readonly (readonly [string, (values: Values) => object[]])[] = [
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
      'SELECT root_number AS "number", epoch, last_batch AS batch FROM holding',
      ([id]) => this.#rootsOf(String(id)),
    ],
    ["SELECT id FROM instance WHERE is_ended", () => this.#endedHolders()],
    [
      "SELECT number, owner",
      ([numbers]) =>
        (numbers as number[]).map((number) => ({ number, owner: `${number}`, rootId: `${number}` })),
    ],
  ];

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

  #endedHolders(): object[] {
    const ended = [...this.instances].filter(([id, { isEnded }]) => isEnded && this.#rootsOf(id).length > 0);
    return ended.map(([id]) => ({ id }));
  }
}
