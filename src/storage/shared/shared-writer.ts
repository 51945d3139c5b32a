// Runs the storage's commands on cached rows, and commits what they change to PostgreSQL before it answers.
import type { StatementSync } from "node:sqlite";
import { GroveError, isGroveError } from "#base/errors.ts";
import { type Counted, StaleAccessError } from "#storage/contract/inode.ts";
import { isBrokenDatabase, isDatabaseFull } from "#storage/metadata/sqlite-errors.ts";
import { Ledger } from "#storage/metadata/unit-of-work.ts";
import { CommandTable } from "#storage/writer/command-table.ts";
import type { PurgeCursor } from "#storage/writer/purge-cursor.ts";
import type { Command } from "#storage/writer/write-commands.ts";
import type { ReplyOf } from "#storage/writer/write-queue.ts";
import { type CommitClient, FencedError, type HeldRoot } from "./commit-client.ts";
import { isOfRenamed } from "./fenced.ts";
import { requireOwnRoots } from "./own-roots.ts";
import type { RowCache } from "./row-cache.ts";
import { type Fact, RowsMissing } from "./row-facts.ts";
import { type Fetched, weightOf, weightOfMade } from "./row-fetch.ts";
import { closed, failureOf, heldElsewhere, internal, noRoot, unavailable } from "./writer-refusals.ts";
import { type Settled, takeGroup, type Work } from "./writer-works.ts";

/** Rows of the shared engine's database that a process keeps at hand: at most some 2 GB. */
const CACHED_ROWS_MAX = 1_000_000;
/** Fetches of rows for one command: each asks for more than the one before, down a path or along a list. */
const FETCHES_MAX = 256;

/** Of what changes no root. */
const nothing = (): undefined => undefined;

/** Dependencies of a writer. */
export interface SharedWriterDeps {
  readonly cache: RowCache;
  readonly commits: Pick<CommitClient, "commit">;
  readonly fetch: (facts: readonly Fact[]) => Promise<Fetched>;
  /** This process, as the holder of its roots. */
  readonly instance: string;
  /** Fetched rows above which all are forgotten, at the latest at twice as many; CACHED_ROWS_MAX by default. */
  readonly rowsMax?: number;
  /** After a commit, before any of its answers; and when fetched rows are here. */
  readonly changed?: () => void;
  /** Grants of these roots, or their paths, may have changed. */
  readonly sharesChanged?: (owners: readonly string[]) => void;
  /** All rows were forgotten. */
  readonly forgot?: () => void;
  /** Rows of these roots are fetched again from now on: what was marked as renamed is no longer known here. */
  readonly freshened?: (numbers: readonly number[]) => Promise<void>;
  /** Other processes have taken these roots. */
  readonly lost?: (numbers: readonly number[]) => void;
  /** What was committed could not be kept here, or not be told: all rows are fetched again. */
  readonly cacheFailed?: (error: unknown) => void;
}

/** One writer for the roots that this process holds. A group waits for the commit of the one before. */
export class SharedWriter {
  readonly #deps: SharedWriterDeps;
  readonly #ledger: Ledger;
  readonly #commands: CommandTable;
  readonly #keepMove: StatementSync;
  readonly #forgetMove: StatementSync;
  readonly #held = new Map<number, HeldRoot>();
  readonly #queue: Work[] = [];
  #isWorking = false;
  #worked: Promise<void> = Promise.resolve();
  #isClosed = false;
  #mustForget = false;
  /** Roots that are served elsewhere: the epoch under which they were held is forgotten with their rows. */
  readonly #released = new Set<number>();
  /** Set when people in the rows may have other names in the database. */
  #isRenamed = false;
  #cached = 0;

  constructor(deps: SharedWriterDeps) {
    this.#deps = deps;
    const { cache } = deps;
    this.#ledger = new Ledger(cache.db);
    this.#commands = new CommandTable(cache.db, this.#ledger);
    this.#keepMove = cache.preparePlain(
      `INSERT INTO root_move (move_id, number, owner, state, address, ids, marked) VALUES (?, ?, '', ?, '', 0, 0)
       ON CONFLICT (number) DO UPDATE SET state = excluded.state`,
    );
    this.#forgetMove = cache.preparePlain("DELETE FROM root_move WHERE number = ?");
  }

  /** Rows that were fetched or made since all were forgotten; one counts for each 2,048 bytes once more. */
  get cachedRows(): number {
    return this.#cached;
  }

  /**
   * Runs a command on a root; resolves when PostgreSQL has it. Rejects with its refusal, WRONG_NODE when
   * another process holds the root, and INTERNAL when the database refuses the command's own rows.
   */
  submit<Op extends Command["op"]>(
    owner: string,
    command: Extract<Command, { op: Op }>,
  ): Promise<Counted<ReplyOf<Op>>> {
    const run = (): unknown => {
      // What is few of a root is only known to be whole with the root.
      if (this.#ledger.findRoot(owner) === undefined) throw noRoot();
      return this.#commands.apply(command);
    };
    return this.#add(run, () => this.#ledger.findRoot(owner)?.number) as Promise<Counted<ReplyOf<Op>>>;
  }

  /** Removes a bounded part of what is detached in a root, where the cursor looks; false when nothing is there. */
  purgeSlice(owner: string, cursor: PurgeCursor): Promise<boolean> {
    const number = (): number | undefined => this.#ledger.findRoot(owner)?.number;
    const run = (): unknown => {
      const root = number();
      if (root === undefined) throw noRoot();
      return this.#commands.contents.purgeSliceOf(root, cursor);
    };
    return this.#add(run, number) as Promise<boolean>;
  }

  /**
   * Resolves when the root is known here, and the fact: its rows are in the cache. Rejects as `submit` does.
   */
  async know(owner: string, fact?: Fact): Promise<void> {
    const run = (): void => {
      if (this.#ledger.findRoot(owner) === undefined) throw noRoot();
      if (fact !== undefined) this.#deps.cache.facts.require(fact);
    };
    await this.#add(run, nothing);
  }

  /**
   * Keeps how a root's move stands: while it is under way nothing of the root is purged, and a frozen one
   * changes no more once this has resolved. Undefined ends that.
   */
  async setMove(number: number, state: "copying" | "frozen" | undefined): Promise<void> {
    await this.#add(() => this.#keepState(number, state), nothing, true);
  }

  /**
   * Knows nothing more of a root that is served elsewhere once this has resolved, though commands before had
   * its rows fetched.
   */
  async release(number: number): Promise<void> {
    const run = (): void => {
      this.#keepState(number, undefined);
      this.#released.add(number);
    };
    await this.#add(run, nothing, true);
  }

  /** Forgets all rows before the next group of commands; resolves when that is done. */
  async forgetSoon(): Promise<void> {
    this.#mustForget = true;
    await this.#add(nothing, nothing);
  }

  /** The same after people were renamed in the database. */
  async renamed(): Promise<void> {
    this.#isRenamed = true;
    await this.forgetSoon();
  }

  /** Forgets all rows; they are fetched again. Call it between commands. */
  forget(): void {
    // Where a full disk lets nothing go, reads and the next group wait until it does.
    this.#mustForget = true;
    this.#deps.forgot?.();
    this.#deps.cache.forget();
    for (const number of this.#released) this.#held.delete(number);
    this.#released.clear();
    this.#ledger.discard();
    this.#cached = 0;
    this.#deps.changed?.();
    this.#mustForget = false;
  }

  /** Refuses what waits, and resolves once the group under way has ended: the cache may be closed then. */
  close(): Promise<void> {
    this.#isClosed = true;
    return this.#worked;
  }

  #keepState(number: number, state: "copying" | "frozen" | undefined): void {
    if (state === undefined) this.#forgetMove.run(number);
    else this.#keepMove.run(String(number), number, state);
    this.#ledger.frozen.set(number, state === "frozen");
  }

  #add(run: Work["run"], root: Work["root"], isHere = false): Promise<unknown> {
    return new Promise((resolve, reject) => {
      if (this.#isClosed) return reject(closed());
      this.#queue.push({ run, root, isHere, resolve, reject, fetches: 0, isAlone: false });
      if (this.#isWorking) return;
      this.#isWorking = true;
      this.#worked = new Promise((done) => {
        setImmediate(() => done(this.#work()));
      });
    });
  }

  async #work(): Promise<void> {
    while (this.#queue.length > 0) {
      const group = takeGroup(this.#queue);
      try {
        if (this.#isClosed) throw closed();
        if (await this.#forgetBefore(group)) await this.#runGroup(group);
        else this.#queue.unshift(...group);
      } catch (error) {
        this.#giveUp();
        const failure = failureOf(error);
        for (const work of group) work.reject(failure);
      }
    }
    this.#isWorking = false;
  }

  /** Forgets rows that may be old, or are too many. False when the commands are to be taken one by one. */
  async #forgetBefore(group: readonly Work[]): Promise<boolean> {
    const { rowsMax = CACHED_ROWS_MAX } = this.#deps;
    // Commands for which rows have just come would wait for them again.
    const isBetween = group.every(({ fetches }) => fetches === 0);
    // Where some always wait they do; what one command needs by itself is let in, whatever it is.
    const isCrowded = !isBetween && group.length > 1 && this.#cached > 2 * rowsMax;
    const isFull = isBetween && this.#cached > rowsMax;
    if (!this.#mustForget && !this.#isRenamed && !isFull && !isCrowded) return true;
    for (const work of group) {
      if (isCrowded && work.fetches > 0) work.isAlone = true;
      work.fetches = 0;
    }
    if (this.#isRenamed) await this.#freshen();
    else this.forget();
    return !isCrowded;
  }

  async #runGroup(group: readonly Work[]): Promise<void> {
    const settled: Settled[] = [];
    const missing = new Map<Work, Fact>();
    const roots = new Set<number>();
    const effects = this.#deps.cache.change(() => {
      for (const work of group) {
        const settle = this.#runOne(work, missing);
        if (settle === undefined) continue;
        settled.push({ work, settle });
        const root = work.root();
        if (root !== undefined) roots.add(root);
      }
      this.#ledger.flush();
    });
    if (!this.#deps.cache.isChanging) throw new Error("the group of changes was undone here");
    if (effects.length > 0) {
      const held = [...roots].toSorted((a, b) => a - b).flatMap((number) => this.#held.get(number) ?? []);
      requireOwnRoots(effects, held);
      try {
        await this.#deps.commits.commit(held, effects);
      } catch (error) {
        if (error instanceof FencedError) return this.#lose(error, group);
        if (isOfRenamed(error)) {
          this.#giveUp();
          this.#queue.unshift(...group);
          for (const work of group) work.fetches = 0;
          this.#isRenamed = true;
          return;
        }
        if (isGroveError(error) || group.length === 1) throw error;
        // The rows of one are not the others' failure.
        this.#giveUp();
        for (const work of group) work.isAlone = true;
        this.#queue.unshift(...group);
        return;
      }
    }
    this.#cached += weightOfMade(effects);
    const failure = this.#keepHere();
    const isForgotten = this.#released.size > 0;
    if (isForgotten) this.#tried(() => this.forget());
    for (const { work, settle } of settled) {
      if (failure !== undefined && work.isHere) work.reject(failure);
      else settle();
    }
    // What is missing was told beside rows that are forgotten by now.
    if (isForgotten) this.#queue.unshift(...missing.keys());
    else if (missing.size > 0) await this.#fetch(missing);
  }

  /** Takes in what PostgreSQL has, and tells of it. Why that failed is no failure of the changes: they are made. */
  #keepHere(): Error | undefined {
    const owners = this.#commands.shareRows.takeChangedOwners();
    const failure = this.#tried(() => this.#commitHere());
    if (failure !== undefined) this.#giveUp();
    if (owners.length > 0) this.#tried(() => this.#deps.sharesChanged?.(owners));
    return failure;
  }

  #commitHere(): void {
    this.#deps.cache.end("COMMIT");
    this.#ledger.committed();
    this.#deps.changed?.();
  }

  #tried(step: () => void): Error | undefined {
    try {
      step();
      return undefined;
    } catch (error) {
      this.#deps.cacheFailed?.(error);
      return failureOf(error);
    }
  }

  /** The answer, or the refusal, for when the group is durable; undefined when rows are missing. */
  #runOne(work: Work, missing: Map<Work, Fact>): (() => void) | undefined {
    this.#ledger.begin();
    try {
      const reply = this.#deps.cache.attempt(work.run);
      return () => work.resolve(reply);
    } catch (error) {
      // A full or broken disk may have undone what the commands before have changed.
      if (isDatabaseFull(error) || isBrokenDatabase(error) || !this.#deps.cache.isChanging) throw error;
      this.#ledger.rollback();
      if (error instanceof RowsMissing) {
        missing.set(work, error.fact);
        return undefined;
      }
      const isRefusal = error instanceof GroveError || error instanceof StaleAccessError;
      const refusal = isRefusal ? error : internal(error);
      return () => work.reject(refusal);
    }
  }

  /** Fetches what is missing, and queues the commands again before all others. */
  async #fetch(missing: ReadonlyMap<Work, Fact>): Promise<void> {
    const wanted = this.#deps.cache.toFetch([...missing.values()]);
    const fetched = await this.#deps.fetch(wanted).catch((error: unknown) => {
      for (const work of missing.keys()) work.reject(unavailable(error));
    });
    if (fetched === undefined) return;
    const foreign = this.#takeHoldings(fetched);
    const roots = fetched.rows.flatMap(({ table, row }) => (table === "root" ? [row] : []));
    const again: Work[] = [];
    for (const [work, fact] of missing) {
      const of = fact.kind === "root" ? roots.find((row) => row["owner"] === fact.owner) : undefined;
      if (fact.kind === "root" && of === undefined) work.reject(noRoot());
      else if (of !== undefined && foreign.has(Number(of["number"]))) work.reject(heldElsewhere());
      else if (++work.fetches > FETCHES_MAX) work.reject(internal("what a command needs does not come"));
      else again.push(work);
    }
    // A root that is not there, or not here, may change at any time: nothing is remembered of it.
    const isOwn = (fact: Fact): boolean =>
      fact.kind !== "root" || roots.some((row) => row["owner"] === fact.owner);
    if (foreign.size === 0) {
      this.#cached += weightOf(fetched.rows);
      this.#deps.cache.accept({ ...fetched, facts: fetched.facts.filter(isOwn) });
      this.#deps.changed?.();
    }
    // Last, so that none is carried out that a full disk has refused here.
    this.#queue.unshift(...again);
  }

  /** The numbers of those roots that other processes hold. */
  #takeHoldings({ holdings }: Fetched): Set<number> {
    const foreign = new Set<number>();
    for (const { number, instance, epoch, batch } of holdings) {
      const known = this.#held.get(number);
      if (instance !== this.#deps.instance) foreign.add(number);
      else if (known === undefined) this.#held.set(number, { number, epoch, batch });
      // The same process again, after another one: what is here is of the time before.
      else if (known.epoch !== epoch || known.batch !== batch) foreign.add(number);
    }
    const lost = [...foreign];
    if (lost.some((number) => this.#held.has(number))) this.#giveUp();
    for (const number of foreign) this.#held.delete(number);
    if (lost.length > 0) this.#deps.lost?.(lost);
    return foreign;
  }

  #lose({ lost, isAbsent }: FencedError, group: readonly Work[]): void {
    const works = group.map((work) => ({ work, root: work.root() }));
    this.#giveUp();
    for (const number of lost) this.#held.delete(number);
    this.#deps.lost?.(lost);
    const again: Work[] = [];
    for (const { work, root } of works) {
      if (!isAbsent)
        work.reject(unavailable("the root was taken over, and what became of the change is unknown"));
      else if (root !== undefined && lost.includes(root)) work.reject(heldElsewhere());
      else again.push(work);
    }
    this.#queue.unshift(...again);
  }

  /** Nothing is fetched between the two, so that all that is known afterwards is of the time after. */
  async #freshen(): Promise<void> {
    this.forget();
    await this.#deps.freshened?.([...this.#held.keys()]);
    this.#isRenamed = false;
  }

  /** Back to knowing nothing, which is true whatever was committed. Never throws: the next group tries it again. */
  #giveUp(): void {
    this.#tried(() => this.#deps.cache.end("ROLLBACK"));
    this.#tried(() => this.forget());
  }
}
