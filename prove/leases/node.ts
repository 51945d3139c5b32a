// A process of the shared engine with the product's own leases: it writes under its epochs, and reads from
// what it knows.
import { silentLogger } from "#base/log.ts";
import type { SeededRandom } from "#prove/seeded-random.ts";
import { HeldRoots, type HeldRootsDeps, type OwnRoot } from "#storage/engine/held-roots.ts";
import type { LeaseTables } from "./database.ts";
import type { Machine } from "./world.ts";

const ANSWER_MS = 5_000;
const RENEW_ANSWER_MS = 2_500;

/** How the way to the database is at a moment. */
export interface Way {
  isCut: boolean;
  isSlow: boolean;
}

type Line = HeldRootsDeps["line"];

/** One process; it ends with its lease. */
export class LeaseNode {
  readonly name: string;
  readonly machine: Machine;
  readonly roots: HeldRoots;
  isOver = false;
  readonly #tables: LeaseTables;
  readonly #way: Way;
  readonly #random: SeededRandom;
  /** By root, the value that it has read or written; none while that is not known. */
  readonly #known = new Map<number, number>();
  /** Roots with a change under way: one at a time. */
  readonly #writing = new Set<number>();

  constructor(name: string, deps: { machine: Machine; tables: LeaseTables; way: Way; random: SeededRandom }) {
    this.name = name;
    this.machine = deps.machine;
    this.#tables = deps.tables;
    this.#way = deps.way;
    this.#random = deps.random;
    this.roots = new HeldRoots({
      instance: name,
      before: "",
      address: name,
      line: this.#line(ANSWER_MS),
      leaseLine: this.#line(RENEW_ANSWER_MS),
      clock: deps.machine,
      fraction: () => deps.random.next(),
      logger: silentLogger,
      taking: (roots) => this.#fetch(roots),
      changed: ({ lost }) => {
        for (const { number } of lost) this.#known.delete(number);
      },
      ended: () => {
        this.isOver = true;
      },
    });
  }

  /** What a reader is told of a root; "refused" where the process may not say, "nothing" where it must and cannot. */
  read(number: number): number | "refused" | "nothing" {
    if (this.isOver || this.machine.isAway || !this.roots.mayRead) return "refused";
    if (this.roots.withNumber(number) === undefined) return "refused";
    return this.#known.get(number) ?? "nothing";
  }

  /** Changes a root; true once the database has said so. */
  async write(number: number, value: number): Promise<boolean> {
    const root = this.roots.withNumber(number);
    if (this.isOver || root === undefined || this.machine.isAway || this.#writing.has(number)) return false;
    this.#writing.add(number);
    const isDone = await this.#ask(ANSWER_MS, () => {
      const held = this.#tables.holdings.get(number);
      if (held === undefined || held.epoch !== root.epoch) return false;
      held.value = Math.max(held.value, value);
      return true;
    }).catch(() => undefined);
    if (isDone === true) this.#known.set(number, Math.max(value, this.#known.get(number) ?? 0));
    else if (isDone === false) this.roots.drop([number]);
    else await this.#resolve(root);
    this.#writing.delete(number);
    return isDone === true;
  }

  /** A change without an answer: the root says nothing until the database has told what became of it. */
  async #resolve(root: OwnRoot): Promise<void> {
    const { number, epoch } = root;
    this.roots.drop([number]);
    while (!this.isOver) {
      const isHeld = await this.#ask(
        ANSWER_MS,
        () => this.#tables.holdings.get(number)?.epoch === epoch,
      ).catch(() => undefined);
      if (isHeld === false) return;
      // The request without an answer has ended by now: the real one waits for its lock.
      const isFetched =
        isHeld === true &&
        (await this.#fetch([root]).then(
          () => true,
          () => false,
        ));
      if (isFetched) {
        if (!this.isOver) this.roots.add(root);
        return;
      }
      await this.machine.wait(200);
    }
  }

  async #fetch(roots: readonly OwnRoot[]): Promise<void> {
    const values = await this.#ask(ANSWER_MS, () =>
      roots.map(({ number }) => [number, this.#tables.holdings.get(number)?.value ?? 0] as const),
    );
    for (const [number, value] of values) this.#known.set(number, value);
  }

  #line(answerMs: number): Line {
    const run = <T>(ask: (client: never) => Promise<T>): Promise<T> =>
      this.#ask(answerMs, () => ask(this.#tables as never));
    return { run } as unknown as Line;
  }

  /** There and back; either way may be slow or cut, and a late request is still carried out. */
  async #ask<T>(answerMs: number, run: () => T | Promise<T>): Promise<T> {
    const { machine } = this;
    const late = machine.wait(answerMs).then((): never => {
      throw new Error("no answer");
    });
    late.catch(() => undefined);
    const answer = (async () => {
      await machine.wait(this.#delayMs());
      if (this.#way.isCut) return late;
      const result = await run();
      await machine.wait(this.#delayMs());
      if (this.#way.isCut) return late;
      return result;
    })();
    answer.catch(() => undefined);
    return Promise.race([answer, late]);
  }

  #delayMs(): number {
    return this.#way.isSlow ? this.#random.below(3_000) : this.#random.below(20);
  }
}
