// The roots that this process holds: under one lease, taken from processes that ended, lost to those that
// took over.
import type { Clock } from "#base/clock.ts";
import { GroveError } from "#base/errors.ts";
import { errorText, type Logger } from "#base/log.ts";
import { pause } from "#base/waiting.ts";
import { LeaseHolder, SHARED_LEASE_MS } from "#storage/shared/lease-holder.ts";
import {
  endedHolders,
  endInstance,
  heldBy,
  joinInstances,
  ownersOf,
  renewInstance,
  rootsOf,
  runningInstances,
  stillHeld,
  takeRoots,
} from "#storage/shared/lease-rows.ts";
import { LeaseWatch, SHARED_WATCH_MS } from "#storage/shared/lease-watch.ts";
import type { SharedLine } from "#storage/shared/shared-line.ts";

/** Roots that one take-over brings; other processes may take the rest meanwhile. */
const ROOTS_AT_ONCE = 64;
/** Looks for roots that a take-over without an answer has brought: its call may begin late in the database. */
const LOOKS_FOR_OWN = 10;

/** How long a process that ends tries to say so: until then its users wait for the lease's end. */
const STOP_TRIES_MS = 5_000;
const STOP_PAUSE_MS = 200;

type Taken = Pick<OwnRoot, "number" | "epoch">;

/** A root that this process holds. */
export interface OwnRoot {
  readonly owner: string;
  readonly number: number;
  readonly rootId: string;
  readonly epoch: number;
}

/** Dependencies of the held roots. */
export interface HeldRootsDeps {
  /** This process's name: used once. */
  readonly instance: string;
  /** The process that held the data folder before, which has ended; empty for none. */
  readonly before: string;
  /** host:port that clients are sent to. */
  readonly address: string;
  readonly line: SharedLine;
  /** Renewals must not wait behind anything. */
  readonly leaseLine: SharedLine;
  readonly clock: Clock;
  readonly fraction: () => number;
  readonly logger: Logger;
  /** Brings in what serving needs. Until it resolves the roots are not served here. */
  readonly taking: (roots: readonly OwnRoot[]) => Promise<void>;
  /** Forgets what was brought in for roots that have left meanwhile. */
  readonly left: (roots: readonly OwnRoot[]) => Promise<void>;
  /** Called after each change of what is held. */
  readonly changed: (change: {
    readonly gained: readonly OwnRoot[];
    readonly lost: readonly OwnRoot[];
  }) => void;
  /** False while it is not certain that other processes' roots may be taken; always true by default. */
  readonly mayTake?: () => boolean;
  /** Called once: the process may neither read nor write any more. */
  readonly ended: (reason: string) => void;
  readonly leaseMs?: number | undefined;
}

/** Holds and takes roots until its lease ends, which ends it for good. */
export class HeldRoots {
  readonly #deps: HeldRootsDeps;
  readonly #lease: LeaseHolder;
  readonly #watch: LeaseWatch;
  readonly #byOwner = new Map<string, OwnRoot>();
  readonly #byNumber = new Map<number, OwnRoot>();
  readonly #byId = new Map<string, OwnRoot>();
  #stopWatch: () => void = () => undefined;
  #taking: Promise<void> | undefined;
  #turns: Promise<void> = Promise.resolve();
  /** Taken, but what serving needs has not come yet. */
  #unserved: Taken[] = [];
  #looksForOwn = 0;
  #isStopped = false;
  #takenOver = 0;

  constructor(deps: HeldRootsDeps) {
    const leaseMs = deps.leaseMs ?? SHARED_LEASE_MS;
    this.#deps = deps;
    this.#lease = new LeaseHolder({
      clock: deps.clock,
      renew: () => deps.leaseLine.run((client) => renewInstance(client, deps.instance)),
      ended: () => this.#ended(),
      leaseMs,
    });
    this.#watch = new LeaseWatch(deps.clock, leaseMs);
  }

  /** Begins the lease, and takes what the process before had. Rejects when the database does not answer. */
  async start(): Promise<void> {
    const { instance, before, address, leaseLine, line, clock, leaseMs = SHARED_LEASE_MS } = this.#deps;
    const takenAt = this.#lease.now();
    await leaseLine.run((client) => joinInstances(client, instance, address, leaseMs));
    this.#lease.start(takenAt);
    // Whoever has the lock of the data folder knows that the process before is gone.
    if (before !== "") await line.run((client) => endInstance(client, before));
    await this.#takeFrom({ id: before, beat: 0 });
    this.#stopWatch = clock.every(SHARED_WATCH_MS * (leaseMs / SHARED_LEASE_MS), () => this.lookAround());
  }

  /** True while the process may answer from what it knows. */
  get mayRead(): boolean {
    return this.#lease.mayRead;
  }

  /** Time since the last renewal of the lease was asked for. */
  get leaseAgeMs(): number {
    return this.#lease.ageMs;
  }

  /** Roots taken over from processes that had ended. */
  get takenOverTotal(): number {
    return this.#takenOver;
  }

  get count(): number {
    return this.#byOwner.size;
  }

  of(owner: string): OwnRoot | undefined {
    return this.#byOwner.get(owner);
  }

  withNumber(number: number): OwnRoot | undefined {
    return this.#byNumber.get(number);
  }

  withId(rootId: string): OwnRoot | undefined {
    return this.#byId.get(rootId);
  }

  all(): IterableIterator<OwnRoot> {
    return this.#byOwner.values();
  }

  /** Serves a root that this process has just made. */
  add(root: OwnRoot): void {
    if (this.#byOwner.has(root.owner)) return;
    this.#put(root);
    this.#deps.changed({ gained: [root], lost: [] });
  }

  /** Looks for roots that this process may hold without knowing it, as after an answer that was lost. */
  lookForOwn(): void {
    this.#looksForOwn = LOOKS_FOR_OWN;
  }

  /** Serves a root that its holder has handed over. */
  async adopt(taken: Taken): Promise<void> {
    this.#unserved.push(taken);
    await this.#serve();
  }

  /** Takes the owners' names as they are in the database by now. */
  async renamed(): Promise<void> {
    await this.#taking;
    return this.#inTurn(() => this.#rename());
  }

  async #rename(): Promise<void> {
    const { line, taking, changed, left } = this.#deps;
    const names = await line.run((client) => ownersOf(client, [...this.#byNumber.keys()]));
    const renamed: { readonly from: OwnRoot; readonly to: OwnRoot }[] = [];
    for (const { number, owner } of names) {
      const from = this.#byNumber.get(number);
      if (from !== undefined && from.owner !== owner) renamed.push({ from, to: { ...from, owner } });
    }
    if (renamed.length === 0) return;
    // Before anything is renamed here, so that a failed try is made again.
    await taking(renamed.map(({ to }) => to));
    const [still, gone]: [typeof renamed, typeof renamed] = [[], []];
    for (const one of renamed) (this.#byNumber.get(one.from.number) === one.from ? still : gone).push(one);
    for (const { from } of still) this.#byOwner.delete(from.owner);
    for (const { to } of still) this.#put(to);
    if (still.length > 0) changed({ gained: still.map(({ to }) => to), lost: still.map(({ from }) => from) });
    if (gone.length > 0) await left(gone.map(({ to }) => to));
  }

  /** Serves roots no longer that others have taken. */
  drop(numbers: readonly number[]): void {
    const lost = numbers.flatMap((number) => this.#byNumber.get(number) ?? []);
    for (const { owner, number, rootId } of lost) {
      this.#byOwner.delete(owner);
      this.#byId.delete(rootId);
      this.#byNumber.delete(number);
    }
    if (lost.length > 0) this.#deps.changed({ gained: [], lost });
  }

  /** The same for roots that others have taken meanwhile. One that came back is looked for and known anew. */
  lose(numbers: readonly number[]): void {
    if (!numbers.some((number) => this.#byNumber.has(number))) return;
    this.drop(numbers);
    this.lookForOwn();
  }

  /** Looks for processes that have ended, and takes their roots. Never throws. */
  lookAround(): void {
    if (this.#taking !== undefined || this.#isStopped || this.#deps.mayTake?.() === false) return;
    this.#taking = this.#look()
      .catch((error: unknown) => {
        this.#deps.logger.warn("engine.take_over_failed", { error: errorText(error) });
      })
      .finally(() => {
        this.#taking = undefined;
      });
  }

  /** Ends the lease: others may take the roots at once. */
  async stop(): Promise<void> {
    this.#isStopped = true;
    this.#stopWatch();
    await this.#taking;
    const { line, instance, clock, logger } = this.#deps;
    this.#lease.end();
    const beganMs = clock.steadyMs();
    for (;;) {
      try {
        return await line.run((client) => endInstance(client, instance));
      } catch (error) {
        if (clock.steadyMs() - beganMs < STOP_TRIES_MS) {
          await pause(clock, STOP_PAUSE_MS);
          continue;
        }
        // Others take the roots once they have watched the lease for its time.
        return logger.warn("engine.end_untold", { error: errorText(error) });
      }
    }
  }

  async #look(): Promise<void> {
    const { line, instance } = this.#deps;
    // What fails keeps nothing else from its turn: another process's roots have nobody meanwhile.
    const failures: unknown[] = [];
    const attempt = async (step: () => Promise<void>): Promise<void> => {
      await step().catch((error: unknown) => failures.push(error));
    };
    if (this.#looksForOwn > 0) await attempt(() => this.#findOwn());
    if (this.#unserved.length > 0) await attempt(() => this.#serve());
    const silent = await this.#watch.look(() => line.run(runningInstances));
    for (const from of silent) if (from.id !== instance) await attempt(() => this.#takeFrom(from));
    let afterId: string | undefined = "";
    while (afterId !== undefined) {
      const behind: string = afterId;
      const ended = await line.run((client) => endedHolders(client, behind));
      for (const id of ended) await attempt(() => this.#takeFrom({ id, beat: 0 }));
      afterId = ended.at(-1);
    }
    if (failures.length > 0) throw failures[0];
  }

  async #takeFrom(from: { readonly id: string; readonly beat: number }): Promise<void> {
    const { line, instance, before, clock, fraction, logger } = this.#deps;
    for (let isFirst = true; ; isFirst = false) {
      if (from.id === "" || this.#isStopped) return;
      const roots = await line.run((client) => rootsOf(client, from.id, ROOTS_AT_ONCE));
      // One without roots is ended too: a change of an address waits for all others.
      if (roots.length === 0 && !isFirst) return;
      const taken = await line
        .run((client) => takeRoots(client, { by: instance, from, roots }))
        .catch((error: unknown) => {
          this.lookForOwn();
          throw error;
        });
      if (roots.length === 0) return;
      if (taken.length > 0) {
        this.#unserved.push(...taken);
        if (from.id !== before) this.#takenOver += taken.length;
        await this.#serve();
        logger.warn("engine.took_over", { from: from.id, roots: taken.length });
      } else if (!this.#lease.isHeld) return;
      // Others look at the same time: each gets a share of what is left.
      await pause(clock, 1 + 50 * fraction());
      if (taken.length === 0) return;
    }
  }

  /** Finds roots that this process holds without knowing it, which nobody else would ever take. */
  async #findOwn(): Promise<void> {
    const { line, instance } = this.#deps;
    const held = await line.run((client) => heldBy(client, instance));
    this.#looksForOwn--;
    const waiting = new Set(this.#unserved.map(({ number }) => number));
    const found = held.filter(({ number }) => !waiting.has(number) && !this.#byNumber.has(number));
    this.#unserved.push(...found);
    this.#takenOver += found.length;
  }

  #serve(): Promise<void> {
    return this.#inTurn(() => this.#serveTaken());
  }

  /** One after the other: none brings in what another one serves already, or under a name of before. */
  #inTurn(run: () => Promise<void>): Promise<void> {
    const mine = this.#turns.then(run);
    this.#turns = mine.catch(() => undefined);
    return mine;
  }

  async #serveTaken(): Promise<void> {
    const { line, left } = this.#deps;
    const taken = await this.#held([...this.#unserved]);
    if (taken.length === 0) return;
    // Of one that was here before, what is known is of the time before.
    const before = taken.flatMap(({ number }) => this.#byNumber.get(number) ?? []);
    this.drop(before.map(({ number }) => number));
    if (before.length > 0) await left(before);
    const epochs = new Map(taken.map(({ number, epoch }) => [number, epoch]));
    const names = await line.run((client) => ownersOf(client, [...epochs.keys()]));
    const roots = names.map((root) => ({ ...root, epoch: epochs.get(root.number) ?? 0 }));
    const failures: unknown[] = [];
    await this.#bringIn(roots).catch((error: unknown) => failures.push(error));
    if (failures.length > 0 && roots.length > 1) {
      // One that cannot be brought in keeps no other from being served.
      failures.length = 0;
      for (const root of roots) await this.#bringIn([root]).catch((error: unknown) => failures.push(error));
    }
    if (failures.length > 0) throw failures[0];
  }

  async #bringIn(roots: readonly OwnRoot[]): Promise<void> {
    const { line, instance, taking, changed, left } = this.#deps;
    await taking(roots);
    // A frozen one may have left for another node while it was brought in.
    const gained = await line.run((client) => stillHeld(client, instance, roots));
    const isBrought = ({ number, epoch }: Taken): boolean =>
      roots.some((root) => root.number === number && root.epoch === epoch);
    this.#unserved = this.#unserved.filter((root) => !isBrought(root));
    for (const root of gained) this.#put(root);
    changed({ gained, lost: [] });
    const gone = roots.filter((root) => !gained.includes(root));
    if (gone.length > 0) await left(gone);
  }

  /** Those of taken roots that are to be served: one that has left would be refused with all others. */
  async #held(taken: readonly Taken[]): Promise<Taken[]> {
    if (taken.length === 0) return [];
    const held = await this.#deps.line.run((client) => stillHeld(client, this.#deps.instance, taken));
    const wanted = held.filter(({ number, epoch }) => this.#byNumber.get(number)?.epoch !== epoch);
    this.#unserved = this.#unserved.filter((root) => !taken.includes(root) || wanted.includes(root));
    return wanted;
  }

  #put(root: OwnRoot): void {
    this.#byOwner.set(root.owner, root);
    this.#byNumber.set(root.number, root);
    this.#byId.set(root.rootId, root);
  }

  #ended(): void {
    if (this.#isStopped) return;
    this.#isStopped = true;
    this.#stopWatch();
    this.#deps.ended("the lease on the shared engine has ended: this process was cut off, or stood still");
  }
}

/** The lowest number of a held root above another number; undefined without one. */
export function nextRoot(roots: Pick<HeldRoots, "all">, above: number): number | undefined {
  let next: number | undefined;
  for (const { number } of roots.all()) {
    if (number > above && number < (next ?? Number.POSITIVE_INFINITY)) next = number;
  }
  return next;
}

/** The refusal of reads without a lease. */
export function withoutLease(): GroveError {
  return new GroveError("STORE_UNAVAILABLE", "the shared database does not answer; try again");
}
