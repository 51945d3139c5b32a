// Moves roots in the background for drains and rebalancings that operators have begun, also over restarts (D27).
import { join } from "node:path";
import { z } from "zod";
import type { Clock } from "#base/clock.ts";
import { isGroveError } from "#base/errors.ts";
import { errorText, type Logger } from "#base/log.ts";
import { JsonStateFile } from "#console/alerts/json-state-file.ts";
import type { NodeStore } from "#metaserver/directory/directory.ts";
import { REBALANCE_MOVES_MAX } from "#metaserver/directory/move-plan.ts";
import { drainFacts, moveTurns, rootsByNode } from "#metaserver/directory/moving-roots.ts";
import { type MoveOrder } from "#metaserver/directory/root-move.ts";

/** How often it looks while something is to be moved. */
const TURN_INTERVAL_MS = 2_000;
/** How often a drain is planned anew while roots have no target. */
const PLAN_INTERVAL_MS = 30_000;
const DRAINS_MAX = 1_000;
const FILE = "moves.json";

/** Opens the store for a piece of work, and closes it. */
export type WithNodeStore = <T>(work: (store: NodeStore) => Promise<T>) => Promise<T>;

/** Dependencies of the runner. */
export interface MoveRunnerDeps {
  readonly dataFolder: string;
  readonly withStore: WithNodeStore;
  readonly clock: Clock;
  readonly log: Logger;
}

const shape = z.object({
  drains: z.array(z.string()).max(DRAINS_MAX),
  /** Those of them whose roots go to the shared engine. */
  to_engine: z.array(z.string()).max(DRAINS_MAX).default([]),
  rebalance: z.array(z.object({ owner: z.string(), target: z.string() })).max(REBALANCE_MOVES_MAX),
});

interface Driven {
  readonly targets: Map<string, string>;
  readonly toEngine: boolean;
  plannedAtMs: number;
  problem: string | undefined;
}

/** The runner. One instance for each console. */
export class MoveRunner {
  readonly #deps: MoveRunnerDeps;
  readonly #file: JsonStateFile<z.infer<typeof shape>>;
  readonly #drains: Map<string, Driven>;
  #waiting: MoveOrder[];
  #rebalanceProblem: string | undefined;
  #turn: Promise<void> | undefined;
  #isClosing = false;
  readonly #stop: () => void;

  private constructor(
    deps: MoveRunnerDeps,
    file: JsonStateFile<z.infer<typeof shape>>,
    content: z.infer<typeof shape>,
  ) {
    this.#deps = deps;
    this.#file = file;
    this.#drains = new Map(content.drains.map((id) => [id, newDrive(content.to_engine.includes(id))]));
    this.#waiting = [...content.rebalance];
    this.#stop = deps.clock.every(TURN_INTERVAL_MS, () => void this.#look());
  }

  /** Opens it, and goes on with what an earlier console had begun. */
  static async open(deps: MoveRunnerDeps): Promise<MoveRunner> {
    const { dataFolder, clock, log } = deps;
    const path = join(dataFolder, FILE);
    const { file, content } = await JsonStateFile.open({ path, shape, clock, log });
    return new MoveRunner(deps, file, content ?? { drains: [], to_engine: [], rebalance: [] });
  }

  /** Moves all roots of a node away, until there are none or `leave` is called. */
  async drain(id: string, orders: readonly MoveOrder[], toEngine = false): Promise<void> {
    const driven = newDrive(toEngine);
    for (const { owner, target } of orders) driven.targets.set(owner, target);
    driven.plannedAtMs = this.#deps.clock.steadyMs();
    this.#drains.set(id, driven);
    await this.#save();
    void this.#look();
  }

  /** Begins no further move from a node. */
  async leave(id: string): Promise<void> {
    if (this.#drains.delete(id)) await this.#save();
  }

  /** Whether it moves roots of a node, and what holds it up. */
  drainOf(id: string): { readonly problem: string | undefined; readonly toEngine: boolean } | undefined {
    return this.#drains.get(id);
  }

  /** Moves these roots, after those of an earlier rebalancing. */
  async rebalance(orders: readonly MoveOrder[]): Promise<void> {
    const known = new Set(this.#waiting.map(({ owner }) => owner));
    this.#waiting = [...this.#waiting, ...orders.filter(({ owner }) => !known.has(owner))].slice(
      0,
      REBALANCE_MOVES_MAX,
    );
    this.#rebalanceProblem = undefined;
    await this.#save();
    void this.#look();
  }

  /** Begins no further move of a rebalancing; those under way arrive. */
  async stopRebalance(): Promise<void> {
    this.#waiting = [];
    this.#rebalanceProblem = undefined;
    await this.#save();
  }

  /** Moves that have not begun, and why one did not; undefined when there is nothing to say. */
  rebalancing(): { readonly waiting: number; readonly problem: string | undefined } | undefined {
    const waiting = this.#waiting.length;
    if (waiting === 0 && this.#rebalanceProblem === undefined) return undefined;
    return { waiting, problem: this.#rebalanceProblem };
  }

  /** Ends after the current turn. Moves under way go on without the console. */
  async close(): Promise<void> {
    this.#isClosing = true;
    this.#stop();
    await this.#turn;
  }

  /** Never rejects. */
  #look(): Promise<void> {
    if (this.#isClosing || (this.#drains.size === 0 && this.#waiting.length === 0)) return Promise.resolve();
    this.#turn ??= this.#deps
      .withStore((store) => this.#work(store))
      .catch((error: unknown) => {
        this.#deps.log.warn("moves_wait", { error: errorText(error) });
        for (const driven of this.#drains.values()) driven.problem = errorText(error);
      })
      .finally(() => {
        this.#turn = undefined;
      });
    return this.#turn;
  }

  async #work(store: NodeStore): Promise<void> {
    // One that is begun from here on may not be in what is read now.
    const driving = [...this.#drains];
    const drained = new Set(await store.drainedNodes());
    const byNode = await rootsByNode(store);
    for (const [id, driven] of driving) {
      if (this.#drains.get(id) !== driven) continue;
      const owners = byNode.get(id) ?? [];
      if (owners.length === 0 || !drained.has(id)) {
        await this.leave(id);
        this.#deps.log.info("drain_ended", { node: id, roots: owners.length });
      } else {
        await this.#driveOn(store, id, driven, owners);
      }
    }
    await this.#rebalanceOn(store);
  }

  async #driveOn(store: NodeStore, id: string, driven: Driven, owners: readonly string[]): Promise<void> {
    const moves = (await store.rootMoves()).filter(({ source }) => source === id);
    const moving = new Set(moves.map(({ owner }) => owner));
    const standing = owners.filter((owner) => !moving.has(owner));
    await this.#planAnew(store, id, driven, standing);
    const { free, held } = moveTurns(moves);
    let begun = 0;
    for (const owner of standing) {
      if (begun >= free || this.#isClosing || !this.#drains.has(id)) return;
      const target = driven.targets.get(owner);
      if (target === undefined || held.has(target)) continue;
      const problem = await begin(store, { owner, target });
      driven.problem = problem;
      if (problem === undefined) begun++;
      // A target counts once: when it has stopped, or its move is undone, the next plan says where else.
      driven.targets.delete(owner);
    }
  }

  async #planAnew(store: NodeStore, id: string, driven: Driven, standing: readonly string[]): Promise<void> {
    const { clock } = this.#deps;
    if (standing.every((owner) => driven.targets.has(owner))) return;
    if (clock.steadyMs() - driven.plannedAtMs < PLAN_INTERVAL_MS) return;
    driven.plannedAtMs = clock.steadyMs();
    const { plan } = await drainFacts(id, store, clock, driven.toEngine);
    for (const { owner, target } of plan.moves) driven.targets.set(owner, target);
    const [first] = plan.withoutRoom;
    if (first !== undefined) driven.problem = `no node has room for ${first.owner}`;
  }

  async #rebalanceOn(store: NodeStore): Promise<void> {
    if (this.#waiting.length === 0) return;
    const { free, held } = moveTurns(await store.rootMoves());
    for (let begun = 0; begun < free && !this.#isClosing; ) {
      const next = this.#waiting.find(({ target }) => !held.has(target));
      if (next === undefined) break;
      // What cannot be asked now stays for the next turn.
      const problem = await begin(store, next);
      // It may have been stopped meanwhile.
      this.#waiting = this.#waiting.filter((order) => order !== next);
      if (problem === undefined) begun++;
      else this.#rebalanceProblem = `${next.owner}: ${problem}`;
    }
    await this.#save();
  }

  #save(): Promise<void> {
    const drains = [...this.#drains.keys()];
    const toEngine = drains.filter((id) => this.#drains.get(id)?.toEngine === true);
    return this.#file.save({ drains, to_engine: toEngine, rebalance: this.#waiting });
  }
}

function newDrive(toEngine: boolean): Driven {
  return { targets: new Map(), toEngine, plannedAtMs: Number.NEGATIVE_INFINITY, problem: undefined };
}

/** Why the move cannot begin now; undefined when it has begun. */
async function begin(store: NodeStore, order: MoveOrder): Promise<string | undefined> {
  try {
    await store.beginMove(order);
    return undefined;
  } catch (error) {
    if (!isGroveError(error, "BAD_ARGUMENT") && !isGroveError(error, "OVERLOADED")) throw error;
    return errorText(error);
  }
}
