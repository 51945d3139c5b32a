// A process of the shared engine with the product's own leases and moves: it writes under its epochs, and reads
// from what it knows.
import { silentLogger } from "#base/log.ts";
import { HeldRoots, type HeldRootsDeps, type OwnRoot } from "#storage/engine/held-roots.ts";
import { type OpenedMoves, type OpenMovesDeps, openMoves } from "#storage/engine/open-moves.ts";
import { ask, type Served } from "./calls.ts";
import type { EngineDatabase } from "./database.ts";
import { objectsOf } from "./objects.ts";
import { type ProcessDeps, ProcessMoves } from "./process.ts";
import type { RigProcess, Said } from "./rig-process.ts";
import type { ProcessClock } from "./world.ts";

const ANSWER_MS = 5_000;
const RENEW_ANSWER_MS = 2_500;
const RESOLVE_PAUSE_MS = 200;

type Line = HeldRootsDeps["line"];

/** One process; it ends with its lease. */
export class EngineNode implements RigProcess {
  readonly name: string;
  readonly clock: ProcessClock;
  readonly roots: HeldRoots;
  readonly #deps: ProcessDeps;
  readonly #database: EngineDatabase;
  readonly #engine: OpenedMoves;
  readonly #moves: ProcessMoves;
  /** By root, the values that it has read or written, and since when; none while they are not known. */
  readonly #known = new Map<number, { readonly epoch: number; readonly values: number[] }>();
  /** Changes under way, by root: one at a time. */
  readonly #writing = new Map<number, Promise<unknown>>();
  readonly #frozen = new Set<number>();

  constructor(deps: ProcessDeps & { readonly before: string }, database: EngineDatabase) {
    const { name, clock, random } = deps;
    this.name = name;
    this.clock = clock;
    this.#deps = deps;
    this.#database = database;
    this.roots = new HeldRoots({
      instance: name,
      before: deps.before,
      address: deps.folder.address,
      line: this.#line(ANSWER_MS),
      leaseLine: this.#line(RENEW_ANSWER_MS),
      clock,
      fraction: () => random.next(),
      logger: silentLogger,
      taking: async (roots) => {
        await this.#fetch(roots);
        await this.#engine.departures.taken(roots);
      },
      left: async (roots) => {
        this.#engine.departures.lost(roots);
        for (const { number } of roots) this.#known.delete(number);
      },
      changed: ({ lost }) => {
        this.#engine.departures.lost(lost);
        this.#moves.link.beatSoon("registration");
      },
      ended: () => this.kill(),
    });
    this.#engine = openMoves(this.#openMovesDeps());
    this.#moves = new ProcessMoves(deps, {
      moves: this.#engine.storage,
      roots: () => [...this.roots.all()].map(({ epoch, ...root }) => ({ ...root, leaseEpoch: epoch })),
      onFenced: () => this.kill(),
    });
  }

  start(): void {
    this.roots.start().then(
      () => void this.#moves.start(),
      () => this.kill(),
    );
  }

  get isOver(): boolean {
    return this.clock.isDead;
  }

  get served(): Served {
    return { clock: this.clock, handlers: this.#moves.handlers };
  }

  kill(): void {
    this.clock.isDead = true;
  }

  async stop(): Promise<void> {
    await this.roots.stop();
    this.kill();
  }

  has(owner: string): boolean {
    const root = this.roots.of(owner);
    return root !== undefined && this.#mayAnswer(owner) && !this.#writing.has(root.number);
  }

  read(owner: string): Said {
    const root = this.roots.of(owner);
    if (root === undefined || !this.#mayAnswer(owner) || !this.roots.mayRead) return "refused";
    return this.#known.get(root.number)?.values ?? "nothing";
  }

  async write(owner: string, file: number, value: number): Promise<boolean> {
    const root = this.roots.of(owner);
    if (root === undefined || !this.has(owner) || this.#frozen.has(root.number)) return false;
    const writing = this.#write(root, file, value);
    this.#writing.set(root.number, writing);
    const isDone = await writing;
    this.#writing.delete(root.number);
    return isDone;
  }

  tidy(): void {
    // Passes of the engine run at the end of all.
  }

  async #write(root: OwnRoot, file: number, value: number): Promise<boolean> {
    const { number, owner } = root;
    const { rows } = this.#database;
    const known = this.#known.get(number);
    if (known === undefined) return false;
    const isDone = await this.#ask(ANSWER_MS, () =>
      this.#database.commit(number, known.epoch, () => rows.stored.write(owner, file, value)),
    ).catch(() => undefined);
    if (isDone === true) known.values[file] = Math.max(value, known.values[file] ?? 0);
    if (isDone === false) this.#lose(number);
    if (isDone === undefined) await this.#resolve(root);
    return isDone === true;
  }

  /** As SharedWriter and what it tells HeldRoots: nothing that was known is true any more. */
  #lose(number: number): void {
    this.#known.delete(number);
    this.roots.lose([number]);
  }

  /** A change without an answer: the root says nothing until the database has told what became of it. */
  async #resolve(root: OwnRoot): Promise<void> {
    const { number, epoch } = root;
    this.roots.drop([number]);
    this.#known.delete(number);
    const isHeld = (): Promise<boolean | undefined> =>
      this.#ask(ANSWER_MS, () => this.#database.holdings.get(number)?.epoch === epoch).catch(() => undefined);
    while (!this.isOver) {
      const isOurs = await isHeld();
      if (isOurs === false) return;
      // The request without an answer has ended by now: the real one waits for its lock.
      const isFetched =
        isOurs === true &&
        (await this.#fetch([root]).then(
          () => true,
          () => false,
        ));
      if (isFetched) {
        // What waits for the end of changes waits no more for this one.
        this.#writing.delete(number);
        await this.#engine.departures.taken([root]);
        // It may have left meanwhile, as in HeldRoots.
        if ((await isHeld()) === true) {
          this.roots.add(root);
          return;
        }
      }
      await this.clock.wait(RESOLVE_PAUSE_MS);
    }
  }

  /** Knows roots, as SharedWriter does: from what is there already, and never of one that others hold. */
  async #fetch(roots: readonly Pick<OwnRoot, "number" | "owner">[]): Promise<void> {
    const { rows, holdings } = this.#database;
    const missing = roots.filter(({ number }) => !this.#known.has(number));
    if (missing.length === 0) return;
    const found = await this.#ask(ANSWER_MS, () =>
      missing.map(({ number, owner }) => ({
        number,
        holding: { ...holdings.get(number) },
        values: rows.stored.values(owner),
      })),
    );
    for (const { number, holding, values } of found) {
      const { instance, epoch } = holding;
      if (instance !== this.name || epoch === undefined || values === undefined)
        throw new Error("another node serves this root now");
      this.#known.set(number, { epoch, values: [...values] });
    }
  }

  #mayAnswer(owner: string): boolean {
    return !this.isOver && !this.clock.machine.isAway && !this.#moves.source.isFrozen(owner);
  }

  #openMovesDeps(): OpenMovesDeps {
    const { clock, random, name } = this.#deps;
    const store = objectsOf({
      database: this.#database,
      clock,
      random: random.fork("names"),
      ask: (run) => this.#ask(ANSWER_MS, run),
    });
    const writer = {
      // A frozen root changes no more once this has resolved.
      setMove: async (number: number, state: "copying" | "frozen" | undefined) => {
        if (state === "frozen") this.#frozen.add(number);
        else this.#frozen.delete(number);
        await this.#writing.get(number);
      },
      release: async (number: number) => {
        this.#frozen.delete(number);
        this.#known.delete(number);
      },
      know: async (owner: string) => {
        const number = this.#database.rows.stored.owners().find((root) => root.owner === owner)?.number ?? 0;
        await this.#fetch([{ owner, number }]);
      },
    };
    return {
      lineOf: (answerMs: number) => this.#line(answerMs),
      rows: { idRange: () => this.#ask(ANSWER_MS, () => this.#database.rows.idRange()) },
      store,
      instance: name,
      writer,
      roots: this.roots,
      events: {},
    } as unknown as OpenMovesDeps;
  }

  #line(answerMs: number): Line {
    const run = <T>(work: (client: never) => Promise<T>): Promise<T> =>
      this.#ask(answerMs, () => this.#database.run((connection) => work(connection as never)));
    return { run } as unknown as Line;
  }

  #ask<T>(answerMs: number, run: () => T | Promise<T>): Promise<T> {
    const { clock, ways, random } = this.#deps;
    return ask({ clock, way: ways.database, random, answerMs }, run);
  }
}
