// Roots of the shared engine and of nodes with disks on simulated time: leases, take-over and moves (F21).
//
// Three machines of the shared engine, two nodes with disks and a MetaServer serve five roots. The product's own
// code holds, renews, watches and takes over (HeldRoots, LeaseHolder, LeaseWatch) and moves (RootMover,
// MoveSource, MoveTarget and their routes, Arrivals, Departures, LocalMoves, KnownMoves, MetaLink). Its routes and
// its SQLite store are the MetaServer, and its commands on SQLite change rows at disks and in the engine. Clocks,
// the ways, PostgreSQL's statements and the object store are simulated.
//
// Ways are cut or slow, requests arrive late, answers are lost, machines stand still or sleep beyond a lease. The
// database or the MetaServer is away for all, processes end or are killed, and others follow. An operator moves
// roots from disk to disk, from disk to engine, from engine to disk and within the engine, and confirms or undoes.
// A kill of source, target or MetaServer falls into a drawn step. Meanwhile files of each root, small ones and
// ones with chunks, are written and read at every process. The first seed is run twice, and both must agree.
//
// These must hold at every moment. At most one process answers for a root. None says less than what was
// acknowledged before, wherever that was, and none serves a root of which it has fetched nothing. After all faults
// every move ends within four minutes, each root is served by one process, and the store sends to it. A move
// without a fault stops its root for at most six seconds. At the end counters equal what they count. No rows of
// moves, roots, chunks or notes are left, and no object without a row or a sweep.
//
// It cannot see SQL: what the database's functions do is told anew in memory, with files alone; F27 has the real
// ones. Nor can it see the engine's cache of rows and its commits, whose guard alone is here, uploads under way,
// chunk files (F21's `simulation` has them), gRPC, threads and power cuts.
import { createHash } from "node:crypto";
import { mkdtempSync, rmSync } from "node:fs";
import { join } from "node:path";
import type { Campaign } from "#prove/campaign.ts";
import type { Rig } from "#prove/rig.ts";
import { SeededRandom } from "#prove/seeded-random.ts";
import { Cluster } from "./cluster.ts";
import { befall, crash, FAULTS } from "./faults.ts";
import { Judge } from "./judge.ts";
import { Operator } from "./operator.ts";
import { FILES } from "./stored-roots.ts";

const FAULTS_OF_A_SEED = 25;
const FAULTS_SHORT = 5;
const SHORT_BELOW_SEEDS = 30;
const TICK_MS = 50;
const FAULT_MS = [200, 14_000] as const;
const CALM_MS = [500, 16_000] as const;
const BEGIN_MS = 8_000;
/** After the last fault every move has ended, and every root is served: pauses after failures reach a minute. */
const ENDED_WITHIN_MS = 240_000;
const QUIET_TICKS = 40;
/** The source takes an attempt back after four seconds. */
const STOPPED_MAX_MS = 6_000;
const CALM_MOVE_MS = 9_000;
const MOVE_CHANCE = 0.01;
const WRITE_CHANCE = 0.05;
const TIDY_CHANCE = 0.02;
const RESTART_CHANCE = 0.02;
const SEEDS = 2 ** 31;

class Simulation {
  readonly #random: SeededRandom;
  readonly #campaign: Campaign;
  readonly #cluster: Cluster;
  readonly #operator: Operator;
  readonly #judge: Judge;
  readonly #trace = createHash("sha256");
  readonly #count: (what: string) => void;
  #value = 0;
  #movesBefore = "";

  constructor(seed: number, campaign: Campaign, folder: string) {
    this.#campaign = campaign;
    this.#random = new SeededRandom(seed);
    this.#count = (what) => {
      this.#note(what);
      campaign.count(what);
    };
    this.#cluster = new Cluster(this.#random.fork("cluster"), folder);
    this.#operator = new Operator(this.#cluster, this.#random.fork("operator"), this.#count);
    this.#judge = new Judge(this.#cluster, campaign, (text) => {
      const seconds = Math.round(this.#cluster.world.nowMs / 1_000);
      campaign.violation(`seed ${seed}, ${seconds} s: ${text}`);
    });
  }

  async run(faults: number): Promise<string> {
    await this.#pass(BEGIN_MS);
    for (let fault = 0; fault < faults && !this.#judge.isBroken; fault++) {
      const kind = this.#random.pick(FAULTS);
      this.#count(kind);
      const heal = befall(kind, this.#cluster, this.#random);
      await this.#pass(this.#random.between(...FAULT_MS));
      heal();
      await this.#pass(this.#random.between(...CALM_MS));
    }
    await this.#end();
    for (const site of this.#cluster.sites) site.process?.kill();
    this.#cluster.meta.kill();
    return this.#trace.digest("hex");
  }

  async #end(): Promise<void> {
    this.#operator.mayKill = false;
    this.#isEnding = true;
    await this.#settleAll();
    for (const isKilled of [false, false, true]) await this.#moveCalmly(isKilled);
    await this.#settleAll();
    if (!this.#judge.isBroken) this.#judge.atEnd();
  }

  /**
   * Waits until all moves have ended, and each root is served where the store sends to. A registration that
   * was sent while the MetaServer was away is made again after twenty seconds only.
   */
  async #settleAll(): Promise<void> {
    const { world } = this.#cluster;
    const endMs = world.nowMs + ENDED_WITHIN_MS;
    for (let quiet = 0; quiet < QUIET_TICKS && !this.#judge.isBroken; ) {
      await this.#pass(TICK_MS);
      const { moves } = this.#operator;
      const astray = moves.size === 0 ? this.#judge.astray() : [];
      quiet = moves.size === 0 && astray.length === 0 ? quiet + 1 : 0;
      if (world.nowMs < endMs) continue;
      for (const { owner, state, problem } of moves.values())
        this.#judge.broken(`the move of ${owner} is ${state} long after all faults: ${problem}`);
      for (const text of astray) this.#judge.broken(`${text}, long after all faults`);
    }
  }

  /** A root stops for a short time only, also when the target of its move ends before the switch. */
  async #moveCalmly(isKilled: boolean): Promise<void> {
    const owner = this.#operator.beginCalmly();
    if (owner === undefined) return;
    const endMs = this.#cluster.world.nowMs + CALM_MOVE_MS;
    let heal: (() => void) | undefined;
    while (this.#cluster.world.nowMs < endMs && !this.#judge.isBroken) {
      await this.#pass(TICK_MS);
      const move = this.#operator.moves.get(owner);
      if (move?.state === "frozen" && isKilled && heal === undefined) {
        const site = this.#cluster.sites.find(({ folder }) => folder.id === move.target);
        if (site !== undefined) heal = crash(site);
      }
      const unservedMs = this.#judge.unservedMs(owner);
      const isAtSource = heal === undefined || move?.state === "copying";
      if (unservedMs > STOPPED_MAX_MS && isAtSource)
        this.#judge.broken(
          `${owner} is served by no process for ${unservedMs} ms of a move without other faults`,
        );
    }
    heal?.();
  }

  #isEnding = false;

  async #pass(ms: number): Promise<void> {
    for (let passed = 0; passed < ms && !this.#judge.isBroken; passed += TICK_MS) {
      await this.#cluster.world.run(TICK_MS);
      for (const site of this.#cluster.sites) {
        const mayStart = site.process?.isOver === true && !site.isDown;
        if (mayStart && this.#random.chance(RESTART_CHANCE)) this.#cluster.begin(site);
        if (this.#random.chance(TIDY_CHANCE)) site.process?.tidy();
      }
      if (!this.#isEnding && this.#random.chance(MOVE_CHANCE)) this.#operator.begin();
      if (passed % (2 * TICK_MS) === 0) this.#operator.look();
      this.#noteMoves();
      this.#work();
      this.#judge.look();
    }
  }

  #noteMoves(): void {
    const moves = [...this.#operator.moves.values()].map(
      ({ owner, state, attempt, target }) => `${owner} ${state} to ${target}, attempt ${attempt}`,
    );
    const text = moves.join("; ");
    if (text !== this.#movesBefore) this.#note(`moves: ${text}`);
    this.#movesBefore = text;
  }

  #work(): void {
    for (const owner of this.#cluster.owners) {
      for (const process of this.#cluster.processes) {
        if (!process.has(owner) || !this.#random.chance(WRITE_CHANCE)) continue;
        const [file, value] = [this.#random.below(FILES), ++this.#value];
        void process.write(owner, file, value).then((isDone) => {
          if (!isDone) return;
          this.#note(`${owner} ${file} ${value}`);
          this.#campaign.count("acknowledged changes");
          this.#judge.acknowledged(owner, file, value);
        });
      }
    }
  }

  #note(text: string): void {
    this.#trace.update(`${this.#cluster.world.nowMs} ${text}\n`);
  }
}

async function runSeed(seed: number, campaign: Campaign, under: string): Promise<string> {
  const folder = mkdtempSync(join(under, "seed-"));
  const faults = campaign.goal < SHORT_BELOW_SEEDS ? FAULTS_SHORT : FAULTS_OF_A_SEED;
  try {
    return await new Simulation(seed, campaign, folder).run(faults);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

/** See above. */
export const leases: Rig = {
  name: "leases",
  figure: "F21",
  proves:
    "each root of the shared engine, and each that moves to, from or within it, is served by one process",
  unit: "seeds",
  goal: 200,
  shortGoal: 8,
  plantedGoal: 60,
  async run(campaign) {
    const folder = await campaign.folder("memory");
    const first = campaign.random.below(SEEDS);
    const trace = await runSeed(first, campaign, folder);
    const again = await runSeed(first, campaign, folder);
    if (trace !== again) campaign.violation(`seed ${first} has the trace ${trace} and the trace ${again}`);
    campaign.step();
    while (campaign.shouldGoOn()) {
      await runSeed(campaign.random.below(SEEDS), campaign, folder);
      campaign.step();
    }
  },
};
