// Ends every kind of change at each of its system calls, on entry and on exit, and then every kind of
// recovery (F2).
//
// A process opens a store, is traced, and makes one kind of change. The tracer counts the calls of all its
// threads on files of the store, and its writes to standard output, in their order. A kill leaves what the
// kernel holds of the files at that moment and nothing else, so one run gives the states of all its points.
// Before and after each of these calls the tracer stops every thread, copies the files, and notes the
// acknowledgements given by then. No process is killed for that.
//
// To confirm this, one point in eight is made a second time by a real SIGKILL of another process, right
// before or after the call, and examined alike. In the short form and against planted bugs that is each drawn
// point. The run reports how often the killed process's files had the names and sizes of the copy.
//
// The files must pass the deep check as they are. Opened, the store must hold an acknowledged change as a
// whole, and another one as a whole or not at all. After its background work no leftover may lie about. A
// state that kills at several points leave, byte for byte, is examined once. Each state is recovered, too. Of
// an operation's recoveries with the same kinds of calls the longest is ended at all its points like a
// change, unless one with the same order was.
//
// It cannot see a missing flush, since the kernel keeps what a dead process wrote (the rigs of power cuts and
// crash states do). Nor can it see calls on other threads in another order than this run's. At copied points
// it cannot see a call of another thread that a kill would cut off in its middle.
import { rm } from "node:fs/promises";
import { join } from "node:path";
import { OPERATIONS, type Operation } from "#prove/calls/operations.ts";
import { Scene } from "#prove/calls/scene.ts";
import { lacksTracing } from "#prove/calls/traced-process.ts";
import type { Campaign } from "#prove/campaign.ts";
import { narrowedTo, type Rig } from "#prove/rig.ts";
import {
  type FrozenState,
  problemsOfState,
  recoveriesOf,
  statesOfOperation,
  statesOfRecovery,
} from "./frozen.ts";
import { type Kill, killOperation, killRecovery, killsOf, type Outcome, wordsOf } from "./points.ts";

/** Two cores; a third while one waits. */
const LANES = 3;
const SHORT_LANES = 2;
/**
 * From this goal on all points are made, of which there are more: how many depends on how threads share their
 * writes.
 */
const ALL_POINTS = 2_500;
/** One point in so many is made by a real kill, too. */
const REAL_KILL_EVERY = 8;
/** States that one process recovers. */
const RECOVERIES = 25;
/** Calls of a recovery of which one is drawn in the short form. */
const RECOVERY_CALLS = 16;
const POINTS_PER_OPERATION = 6;
/** How a point is made; a run against a planted bug can be narrowed to one of them. */
const WAYS = ["copied", "killed"] as const;
const COMPILE_CACHE = "NODE_COMPILE_CACHE";

/** See above. */
export const syscalls: Rig = {
  name: "syscalls",
  figure: "F2",
  unit: "points",
  goal: ALL_POINTS,
  shortGoal: 8,
  plantedGoal: 16,
  proves:
    "a kill at any system call of any change, or of the recovery after it, leaves the old state or the new one",
  lacks: lacksTracing,
  run: async (campaign) => {
    const attack = new Attack(campaign, await campaign.folder("memory"));
    await (campaign.goal >= ALL_POINTS ? attack.all() : attack.some());
  },
};

/** A scene and the states of its run. */
interface Stage {
  readonly scene: Scene;
  readonly states: readonly FrozenState[];
  readonly folder: string;
}

class Attack {
  readonly #campaign: Campaign;
  readonly #folder: string;
  readonly #compileCache: string;
  readonly #ways = narrowedTo(WAYS, (way) => way);
  readonly #isNarrowed = narrowedOperations().length < OPERATIONS.length;
  /** Recoveries by the order in which they make their kinds of calls. */
  readonly #recoveries = new Set<string>();
  /** States that points drawn before have left, too. */
  readonly #looked = new WeakSet<FrozenState>();
  #number = 0;

  constructor(campaign: Campaign, folder: string) {
    this.#campaign = campaign;
    this.#folder = folder;
    this.#compileCache = join(folder, "compiled");
    keepCompiled(campaign, this.#compileCache);
  }

  /** Every point. */
  async all(): Promise<void> {
    const operations = narrowedOperations();
    let left = operations.length;
    await this.#inLanes(operations, async ({ name }) => {
      if (await this.#allOf(name)) left--;
    });
    if (left > 0) this.#campaign.leaveOut("operations not finished", left);
  }

  /**
   * Makes every point of an operation and of its recoveries that no other operation has had; returns whether
   * there was time for it.
   */
  async #allOf(name: string): Promise<boolean> {
    const stage = await this.#stage(name);
    const { states, folder } = stage;
    this.#campaign.count("operations");
    await this.#look(states, "points of operations");
    for (const kill of this.#drawn(states)) await this.#killOperation(stage, kill);
    for (const state of await this.#differentRecoveries(states)) await this.#allOfRecovery(state);
    await rm(folder, { recursive: true, force: true });
    return !this.#campaign.isOver();
  }

  /**
   * Recovers all states; of the recoveries that make the same kinds of calls one of the longest stands for
   * all, if none like it was before.
   */
  async #differentRecoveries(states: readonly FrozenState[]): Promise<FrozenState[]> {
    const longest = new Map<string, { calls: readonly string[]; state: FrozenState }>();
    for (let at = 0; at < states.length && !this.#campaign.isOver(); at += RECOVERIES) {
      const batch = states.slice(at, at + RECOVERIES);
      const settings = { folder: this.#path("recoveries"), compileCache: this.#compileCache };
      for (const [index, calls] of (await recoveriesOf(batch, settings)).entries()) {
        const kinds = [...new Set(calls)].sort().join("\n");
        if (calls.length > (longest.get(kinds)?.calls.length ?? 0))
          longest.set(kinds, { calls, state: batch[index] as FrozenState });
      }
      this.#campaign.count("recoveries", batch.length);
    }
    const found: FrozenState[] = [];
    for (const { calls, state } of longest.values()) {
      const order = calls.filter((call, index) => call !== calls[index - 1]).join("\n");
      if (this.#recoveries.has(order)) continue;
      this.#recoveries.add(order);
      found.push(state);
    }
    return found;
  }

  async #allOfRecovery(state: FrozenState): Promise<void> {
    if (this.#campaign.isOver()) return;
    const folder = this.#path("recovery");
    const states = await statesOfRecovery(state, { folder, compileCache: this.#compileCache });
    this.#campaign.count("different recoveries");
    await this.#look(states, "points of recoveries");
    for (const kill of this.#drawn(states)) await this.#killRecovery(state, kill, states);
    await rm(folder, { recursive: true, force: true });
  }

  /**
   * Makes random points of random operations and of recoveries after them, each in both ways; ends at the
   * first violation.
   */
  async some(): Promise<void> {
    const { random } = this.#campaign;
    const operations = random.shuffled(narrowedOperations());
    let next = 0;
    let isFound = false;
    await this.#inLanes(Array.from({ length: SHORT_LANES }), async () => {
      while (this.#campaign.shouldGoOn() && !isFound) {
        const stage = await this.#stage(operations[next++ % operations.length]?.name ?? "");
        const all = random.shuffled(pointsOf(stage.states));
        // Of a single operation no state is left to chance: those not examined yet come first.
        const points = this.#isNarrowed ? oneOfEachFirst(all) : all.slice(0, POINTS_PER_OPERATION);
        for (const { kill, state } of points) {
          if (!this.#campaign.shouldGoOn() || isFound) break;
          isFound ||= await this.#bothWays(stage, kill, state);
        }
        const state = points[0]?.state;
        if (state !== undefined && !isFound && this.#ways.includes("killed"))
          isFound ||= await this.#killRecovery(state, random.pick(killsOf(RECOVERY_CALLS)), []);
        await rm(stage.folder, { recursive: true, force: true });
      }
    });
  }

  async #bothWays(stage: Stage, kill: Kill, state: FrozenState): Promise<boolean> {
    let isFound = false;
    if (this.#ways.includes("copied") && !this.#looked.has(state)) isFound = await this.#look([state]);
    this.#looked.add(state);
    if (this.#ways.includes("killed")) isFound = (await this.#killOperation(stage, kill)) || isFound;
    this.#campaign.step();
    return isFound;
  }

  async #stage(name: string): Promise<Stage> {
    const folder = this.#path(name);
    const copies = join(folder, "copies");
    const operation = OPERATIONS.filter((each) => each.name === name);
    const settings = { compileCache: this.#compileCache, withReads: false, copies };
    const scene = await Scene.make(join(folder, "scene"), operation, settings);
    return { scene, states: statesOfOperation(scene, copies), folder };
  }

  /**
   * Examines states, and counts their points if they are of the named kind; returns whether there was a
   * violation.
   */
  async #look(states: readonly FrozenState[], kind?: string): Promise<boolean> {
    let isFound = false;
    for (const state of states) {
      if (this.#campaign.isOver()) break;
      const problems = await problemsOfState(state, this.#path("state"));
      this.#report(problems);
      isFound ||= problems.length > 0;
      this.#campaign.count("states opened");
      if (kind === undefined) continue;
      this.#campaign.count(kind, state.points.length);
      this.#campaign.step(state.points.length);
    }
    return isFound;
  }

  async #killOperation({ scene, states }: Stage, kill: Kill): Promise<boolean> {
    const outcome = await killOperation(scene, kill, this.#compileCache);
    return this.#count(outcome, states, kill);
  }

  async #killRecovery(state: FrozenState, kill: Kill, states: readonly FrozenState[]): Promise<boolean> {
    const settings = { directory: this.#path("killed"), compileCache: this.#compileCache };
    const outcome = await killRecovery(state, kill, settings);
    if (outcome.killedIn !== undefined) this.#campaign.count("real kills of a recovery");
    return this.#count(outcome, states, kill);
  }

  /** Counts a real kill, and whether its files equal the copy at the same point of the traced run. */
  async #count(outcome: Outcome, states: readonly FrozenState[], kill: Kill): Promise<boolean> {
    const { killedIn, outline, problems } = outcome;
    this.#report(problems);
    if (killedIn !== undefined) {
      this.#campaign.count("real kills");
      const same = pointsOf(states).find(
        (point) => point.kill.at === kill.at && point.kill.when === kill.when,
      );
      if (
        same !== undefined &&
        wordsOf(same.call) === wordsOf(killedIn) &&
        (await same.state.outline()) === outline
      )
        this.#campaign.count("real kills that left files as copied");
    }
    return problems.length > 0;
  }

  #report(problems: readonly string[]): void {
    for (const problem of problems) this.#campaign.violation(problem);
  }

  /** The points that are made by a real kill, too. */
  #drawn(states: readonly FrozenState[]): Kill[] {
    if (this.#campaign.isOver()) return [];
    const first = this.#campaign.random.below(REAL_KILL_EVERY);
    return pointsOf(states)
      .filter((_, index) => index % REAL_KILL_EVERY === first)
      .map(({ kill }) => kill);
  }

  #path(name: string): string {
    return join(this.#folder, `${name}-${this.#number++}`);
  }

  async #inLanes<Item>(items: readonly Item[], work: (item: Item) => Promise<unknown>): Promise<void> {
    let next = 0;
    const lane = async (): Promise<void> => {
      for (let at = next++; at < items.length && !this.#campaign.isOver(); at = next++)
        await work(items[at] as Item);
    };
    await Promise.all(Array.from({ length: LANES }, lane));
  }
}

const narrowedOperations = (): readonly Operation[] => narrowedTo(OPERATIONS, ({ name }) => name);

/** The first point of every state, then the others. */
function oneOfEachFirst<Point extends { readonly state: FrozenState }>(points: readonly Point[]): Point[] {
  const isFirst = (point: Point, at: number): boolean =>
    points.findIndex(({ state }) => state === point.state) === at;
  return [...points.filter(isFirst), ...points.filter((point, at) => !isFirst(point, at))];
}

const pointsOf = (states: readonly FrozenState[]) =>
  states.flatMap((state) => state.points.map((point) => ({ ...point, state })));

/** Lets threads of this process use the compiled sources of others; a rig runs in a process of its own. */
function keepCompiled(campaign: Campaign, folder: string): void {
  process.env[COMPILE_CACHE] ??= folder;
  campaign.atEnd(() => {
    if (process.env[COMPILE_CACHE] === folder) delete process.env[COMPILE_CACHE];
  });
}
