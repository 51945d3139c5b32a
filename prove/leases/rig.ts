// Leases of the shared engine on simulated time: three machines, one database, four roots (F21).
//
// The product's own code holds, renews, watches and takes over (HeldRoots, LeaseHolder, LeaseWatch). Clocks and
// the ways to the database are simulated, and the leases' statements run on tables in memory. Ways are cut or
// slow, requests arrive late, answers are lost, machines stand still or sleep, the database is away for all,
// processes end and others follow on the same machine. Meanwhile each root is written by who holds it, under
// its epoch, and read at every process.
//
// These must hold at every moment. No process says less than what was acknowledged before, wherever that was.
// None serves a root of which it has fetched nothing. The database has all that was acknowledged. Half a minute
// after all faults have ended, each root is served by one process.
//
// It cannot see SQL: what the database's functions do is told anew in memory; F27 has the real ones.
import type { Campaign } from "#prove/campaign.ts";
import type { Rig } from "#prove/rig.ts";
import { SeededRandom } from "#prove/seeded-random.ts";
import { LeaseTables } from "./database.ts";
import { LeaseNode, type Way } from "./node.ts";
import { Machine } from "./world.ts";

const MACHINES = 3;
const ROOTS = 4;
const FAULTS = 25;
const STEP_MS = 50;
const FAULT_MS = [200, 14_000] as const;
const CALM_MS = [500, 16_000] as const;
const HEALED_WITHIN_MS = 35_000;
const WRITE_CHANCE = 0.1;
const SEEDS = 2 ** 31;

const settle = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

class Simulation {
  readonly #seed: number;
  readonly #campaign: Campaign;
  readonly #random: SeededRandom;
  readonly #tables = new LeaseTables();
  readonly #machines = Array.from({ length: MACHINES }, () => new Machine());
  readonly #ways: readonly Way[] = this.#machines.map(() => ({ isCut: false, isSlow: false }));
  readonly #nodes: (LeaseNode | undefined)[] = [];
  /** By root, the highest value that was acknowledged. */
  readonly #acknowledged = new Map<number, number>();
  #processes = 0;
  #value = 0;
  isBroken = false;

  constructor(seed: number, campaign: Campaign) {
    this.#seed = seed;
    this.#campaign = campaign;
    this.#random = new SeededRandom(seed);
  }

  async run(): Promise<void> {
    for (let at = 0; at < MACHINES; at++) this.#begin(at);
    for (let number = 1; number <= ROOTS; number++) {
      const instance = this.#nodes[number % MACHINES]?.name ?? "";
      this.#tables.holdings.set(number, { instance, epoch: 1, value: 0 });
    }
    // Roots are known by who holds them once they are taken: the first holders end, as after an upgrade.
    await this.#pass(2_000);
    for (let fault = 0; fault < FAULTS && !this.isBroken; fault++) {
      const heal = this.#fault();
      await this.#pass(this.#random.between(...FAULT_MS));
      heal();
      await this.#pass(this.#random.between(...CALM_MS));
    }
    if (!this.isBroken) await this.#pass(HEALED_WITHIN_MS);
    if (!this.isBroken) this.#judgeHealed();
    for (const node of this.#nodes) void node?.roots.stop();
    await this.#quietly(12_000);
  }

  #begin(at: number): void {
    const machine = this.#machines[at];
    const way = this.#ways[at];
    if (machine === undefined || way === undefined) return;
    const name = `p${++this.#processes}`;
    const node = new LeaseNode(name, { machine, way, tables: this.#tables, random: this.#random.fork(name) });
    this.#nodes[at] = node;
    node.roots.start().catch(() => {
      node.isOver = true;
    });
  }

  #fault(): () => void {
    const at = this.#random.below(MACHINES);
    const [machine, way, node] = [this.#machines[at], this.#ways[at], this.#nodes[at]];
    if (machine === undefined || way === undefined) return () => undefined;
    const kind = this.#random.pick(["cut", "slow", "asleep", "stopped", "outage", "crash", "end"] as const);
    this.#campaign.count(kind);
    switch (kind) {
      case "cut":
        way.isCut = true;
        return () => {
          way.isCut = false;
        };
      case "slow":
        way.isSlow = true;
        return () => {
          way.isSlow = false;
        };
      case "outage":
        for (const each of this.#ways) each.isCut = true;
        return () => {
          for (const each of this.#ways) each.isCut = false;
        };
      case "crash":
        if (node !== undefined) node.isOver = true;
        void node?.roots.stop();
        way.isCut = true;
        return () => {
          way.isCut = false;
        };
      case "end":
        void node?.roots.stop().then(() => {
          node.isOver = true;
        });
        return () => undefined;
      default:
        machine.goAway(this.#random.between(...FAULT_MS), kind);
        return () => undefined;
    }
  }

  async #pass(ms: number): Promise<void> {
    for (let passed = 0; passed < ms && !this.isBroken; passed += STEP_MS) {
      for (const machine of this.#machines) machine.advance(STEP_MS);
      await settle();
      for (const [at, node] of this.#nodes.entries()) {
        if (node?.isOver === true && this.#random.chance(0.02)) this.#begin(at);
      }
      this.#work();
      this.#judge();
    }
  }

  async #quietly(ms: number): Promise<void> {
    for (let passed = 0; passed < ms; passed += 500) {
      for (const machine of this.#machines) machine.advance(500);
      await settle();
    }
  }

  #work(): void {
    for (let number = 1; number <= ROOTS; number++) {
      for (const node of this.#nodes) {
        if (node?.roots.withNumber(number) === undefined || !this.#random.chance(WRITE_CHANCE)) continue;
        const value = ++this.#value;
        void node.write(number, value).then((isDone) => {
          if (!isDone) return;
          this.#campaign.count("acknowledged changes");
          this.#acknowledged.set(number, Math.max(value, this.#acknowledged.get(number) ?? 0));
        });
      }
    }
  }

  #judge(): void {
    for (let number = 1; number <= ROOTS; number++) {
      const least = this.#acknowledged.get(number) ?? 0;
      const stored = this.#tables.holdings.get(number)?.value ?? 0;
      if (stored < least) this.#broken(`root ${number} has ${stored} after ${least} was acknowledged`);
      for (const node of this.#nodes) {
        const said = node?.read(number) ?? "refused";
        if (said === "refused") continue;
        this.#campaign.count("reads");
        if (said === "nothing")
          this.#broken(`${node?.name} serves root ${number} and has fetched nothing of it`);
        else if (said < least)
          this.#broken(`${node?.name} says ${said} of root ${number} after ${least} was acknowledged`);
      }
    }
  }

  #judgeHealed(): void {
    for (let number = 1; number <= ROOTS; number++) {
      const serving = this.#nodes.filter((node) => node !== undefined && node.read(number) !== "refused");
      if (serving.length !== 1) {
        this.#broken(
          `root ${number} is served by ${serving.length} processes ${HEALED_WITHIN_MS} ms after all faults`,
        );
      }
    }
    const taken = this.#nodes.reduce((sum, node) => sum + (node?.roots.takenOverTotal ?? 0), 0);
    this.#campaign.count("roots taken over by the last processes", taken);
  }

  #broken(text: string): void {
    this.isBroken = true;
    this.#campaign.violation(`seed ${this.#seed}: ${text}`);
  }
}

/** See above. */
export const leases: Rig = {
  name: "leases",
  figure: "F21",
  proves: "no process of the shared engine reads past its lease, and every root is taken over",
  unit: "seeds",
  goal: 200,
  shortGoal: 5,
  plantedGoal: 60,
  async run(campaign) {
    while (campaign.shouldGoOn()) {
      await new Simulation(campaign.random.below(SEEDS), campaign).run();
      campaign.step();
    }
  },
};
