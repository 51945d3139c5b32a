// Kills every kind of change at each of its system calls, on entry and on exit, and then every kind of recovery the same way (F2).
//
// How it works: a process opens a store, is followed by a tracer, and makes one kind of change. The tracer counts the calls of all its
// threads on files of the store, and what it tells the world, in the order in which they happen. One undisturbed run gives their number;
// then there is a run for each call that is killed before the call, and one that is killed right after it. What is left must pass the
// deep check as it is; opened, it must hold the change as a whole if that was told, and as a whole or not at all if it was not; and when
// it has come to rest no leftover may lie about. Of all states in which kills leave a store, those whose recoveries make different calls
// are recovered once for each call of theirs, and killed there.
// What it cannot see: a missing flush, since the kernel keeps what a dead process wrote (the rigs of power cuts and crash states do); calls
// on other threads that happen to come in another order than in this run.
import { join } from "node:path";
import { OPERATIONS, type Operation } from "#prove/calls/operations.ts";
import { Scene } from "#prove/calls/scene.ts";
import { runSubject } from "#prove/calls/subject.ts";
import { lacksTracing } from "#prove/calls/traced-process.ts";
import { copyDirectory } from "#prove/calls/verify-store.ts";
import type { Campaign } from "#prove/campaign.ts";
import { narrowedTo, type Rig } from "#prove/rig.ts";
import type { SeededRandom } from "#prove/seeded-random.ts";
import { type CrashState, type Kill, killOperation, killRecovery, type Outcome, wordsOf } from "./points.ts";

const LANES = 2;
/** All points, a few less where threads happen to share a write. */
const ALL_POINTS = 2_500;
/** Calls of a recovery of which one is drawn in the short form. */
const RECOVERY_CALLS = 16;
const POINTS_PER_OPERATION = 6;

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

class Attack {
  readonly #campaign: Campaign;
  readonly #folder: string;
  readonly #compileCache: string;
  /** States that kills left, by operation and the last call. */
  readonly #states = new Map<string, CrashState>();
  readonly #isNarrowed = narrowedOperations().length < OPERATIONS.length;
  #number = 0;

  constructor(campaign: Campaign, folder: string) {
    this.#campaign = campaign;
    this.#folder = folder;
    this.#compileCache = join(folder, "compiled");
  }

  /** Every point. */
  async all(): Promise<void> {
    const scenes: Scene[] = [];
    await this.#inLanes(OPERATIONS, async ({ name }) => scenes.push(await this.#scene(name)));
    const points = scenes.flatMap((scene) =>
      killsOf(scene.reference.calls.length).map((kill) => ({ scene, kill })),
    );
    this.#campaign.figure("operations", scenes.length);
    this.#campaign.figure("points of operations", points.length);
    await this.#inLanes(points, ({ scene, kill }) => this.#killOperation(scene, kill));
    await this.#recoveries();
  }

  /** Random points of random operations and of recoveries after them; ends with what it finds first. */
  async some(): Promise<void> {
    const { random } = this.#campaign;
    const operations = shuffled(random, narrowedOperations());
    let next = 0;
    let isFound = false;
    const lane = async (): Promise<void> => {
      while (this.#campaign.shouldGoOn() && !isFound) {
        const scene = await this.#scene(operations[next++ % operations.length]?.name ?? "");
        const kills = shuffled(random, killsOf(scene.reference.calls.length));
        for (const kill of kills.slice(0, this.#isNarrowed ? kills.length : POINTS_PER_OPERATION)) {
          if (!this.#campaign.shouldGoOn() || isFound) break;
          isFound ||= await this.#killOperation(scene, kill);
        }
        const state = [...this.#states.values()].at(-1);
        if (state === undefined || isFound) continue;
        isFound ||= await this.#killRecovery(state, random.pick(killsOf(RECOVERY_CALLS)));
      }
    };
    await Promise.all(Array.from({ length: LANES }, lane));
  }

  async #scene(name: string): Promise<Scene> {
    const operation = OPERATIONS.filter((each) => each.name === name);
    const folder = join(this.#folder, `${name}-${this.#number++}`);
    return Scene.make(folder, operation, { compileCache: this.#compileCache, withReads: false });
  }

  /** Answers whether something was found. */
  async #killOperation(scene: Scene, kill: Kill): Promise<boolean> {
    const name = scene.operations.map((operation) => operation.name).join();
    return this.#count(
      await killOperation(scene, kill, this.#compileCache, async (state, killedIn) => {
        const key = `${name}: ${kill.when} ${wordsOf(killedIn)}`;
        if (this.#states.has(key)) return;
        const directory = join(this.#folder, `state-${this.#number++}`);
        this.#states.set(key, { ...state, directory });
        await copyDirectory(state.directory, directory);
      }),
    );
  }

  async #killRecovery(state: CrashState, kill: Kill): Promise<boolean> {
    return this.#count(await killRecovery(state, kill, this.#compileCache), "kills of a recovery");
  }

  #count({ killedIn, problems }: Outcome, also?: string): boolean {
    for (const problem of problems) this.#campaign.violation(problem);
    if (killedIn !== undefined) {
      this.#campaign.step();
      if (also !== undefined) this.#campaign.count(also);
    }
    return problems.length > 0;
  }

  /** Recovers each state once, and kills those recoveries that make other calls than the ones before. */
  async #recoveries(): Promise<void> {
    const seen = new Set<string>();
    const points: { state: CrashState; kill: Kill }[] = [];
    await this.#inLanes([...this.#states.values()], async (state) => {
      const directory = `${state.directory}-reference`;
      await copyDirectory(state.directory, directory);
      const settings = { mode: "open", operations: [], compileCache: this.#compileCache } as const;
      const { calls } = await runSubject({ ...settings, plan: { directory } });
      const signature = calls.map(wordsOf).join("\n");
      if (seen.has(signature)) return;
      seen.add(signature);
      points.push(...killsOf(calls.length).map((kill) => ({ state, kill })));
    });
    this.#campaign.figure("different recoveries", seen.size);
    this.#campaign.figure("points of recoveries", points.length);
    await this.#inLanes(points, ({ state, kill }) => this.#killRecovery(state, kill));
  }

  async #inLanes<Item>(items: readonly Item[], work: (item: Item) => Promise<unknown>): Promise<void> {
    let next = 0;
    const lane = async (): Promise<void> => {
      for (let item = items[next++]; item !== undefined && !this.#campaign.isOver(); item = items[next++])
        await work(item);
    };
    await Promise.all(Array.from({ length: LANES }, lane));
  }
}

const narrowedOperations = (): readonly Operation[] => narrowedTo(OPERATIONS, ({ name }) => name);

function shuffled<Item>(random: SeededRandom, items: readonly Item[]): Item[] {
  const drawn = items.map((item) => ({ item, at: random.next() }));
  return drawn.sort((a, b) => a.at - b.at).map(({ item }) => item);
}

function killsOf(calls: number): Kill[] {
  return Array.from({ length: calls }, (_, index) => index + 1).flatMap((at) => [
    { at, when: "entry" } as const,
    { at, when: "exit" } as const,
  ]);
}
