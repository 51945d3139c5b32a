// Cuts and mends every link between real processes and real PostgreSQL, and checks that all converges (F17).
//
// Links join clients and nodes, clients and MetaServers, nodes and MetaServers, MetaServers and the database.
// One link is cut, all links of one party, or the database is stopped as by a power cut. Cuts are silent
// (bytes wait, as TCP holds them), in one direction, or seen by both ends. Processes are also stopped for a
// while and go on. Two users write without a pause and share with each other.
//
// After each mending both users must be able to write through every MetaServer within two leases. By then
// every node must have sent a heartbeat, and the grants in the store must be those acknowledged. At the end
// every acknowledged file is read.
//
// Three hundred cuts run with all times of the processes 50 times faster (scaled-time.ts, loaded before the
// program), ten beside them at real times. A machine that gives a process only a part of its time cannot keep
// to a fiftieth of a second. The scale is lowered by the square of how much longer a short calculation takes
// than it should; the figure "scale" is the result. A short form has them 15 times faster at most.
//
// It cannot see TCP's own retries on a link that was dead for long (those are this machine's; the rig
// "simulation" has them). Nor can it see packets lost one by one, more than two MetaServers, or a database
// that fails over to another.
import type { Campaign } from "#prove/campaign.ts";
import type { Rig } from "#prove/rig.ts";
import type { SeededRandom } from "#prove/seeded-random.ts";
import { postgresPrograms, startPostgres } from "#testing/postgres-server.ts";
import { PartitionedCluster, USERS } from "./cluster.ts";
import type { Cut, Link } from "./link.ts";

const SCALE = 50;
/** A few partitions take no long time anyway, beside whatever else a machine does. */
const SHORT_SCALE = 15;
const REAL_PARTITIONS = 10;
/** From this goal on some of them run at real times. */
const LONG_FROM = 50;
const LEASE_MS = 30_000;
const CONVERGED_WITHIN_MS: number = 2 * LEASE_MS;
const CUT_MIN_MS = 500;
const CUT_MAX_MS = 75_000;
/** Longer ones would take the ten minutes. */
const REAL_CUT_MAX_MS = 40_000;
const HEARD_WITHIN_MS = 11_000;
const CUTS: readonly Cut[] = ["held", "held", "requests held", "replies held", "reset"];
const PARTIES = ["n0", "n1", "m0", "m1", "db", "client"];

/** Every run begins with these, each longer than a call may take; the short form makes one of them. */
const OPENING: readonly (readonly [party: string, how: Cut])[] = [
  ["n0", "held"],
  ["db", "reset"],
  ["n1", "requests held"],
  ["m0", "replies held"],
];
const OPENING_CUT_MS = 20_000;

/** Returns how many times longer a calculation takes than on an idle machine. */
function slowness(): number {
  const began = { wall: performance.now(), cpu: process.cpuUsage() };
  while (performance.now() - began.wall < 300) Math.sqrt(Math.random());
  const { user, system } = process.cpuUsage(began.cpu);
  return Math.max(1, (performance.now() - began.wall) / ((user + system) / 1_000));
}

/** A cut, and how to mend it. */
interface Cutting {
  readonly mend: () => void;
  readonly what: string;
}

/** One cluster under attack, and its acknowledged shares. */
class Attack {
  readonly #campaign: Campaign;
  readonly #cluster: PartitionedCluster;
  readonly #random: SeededRandom;
  readonly #grants = new Set<string>();
  readonly #uncertain = new Map<number, boolean>();
  slowestMs = 0;

  constructor(campaign: Campaign, cluster: PartitionedCluster, random: SeededRandom) {
    this.#campaign = campaign;
    this.#cluster = cluster;
    this.#random = random;
  }

  /** Cuts, lets the users try, mends, and waits until all has converged. */
  async partition(longestMs: number, number: number): Promise<void> {
    const isShort = this.#campaign.goal < OPENING.length;
    const opening = isShort ? this.#random.pick(OPENING) : OPENING[number];
    const { mend, what } = opening === undefined ? this.#cut() : this.#cutOff(...opening);
    const drawnMs = CUT_MIN_MS * (longestMs / CUT_MIN_MS) ** this.#random.next();
    const cutMs = opening === undefined ? drawnMs : OPENING_CUT_MS;
    if (opening !== undefined) for (const from of USERS.keys()) void this.#share(from, number % 2 === 0);
    else if (this.#random.chance(0.6)) void this.#share(this.#random.below(2), this.#random.chance(0.5));
    await this.#cluster.pause(cutMs);
    mend();
    const mendedAtMs = this.#cluster.nowMs();
    for (;;) {
      const open = await this.#open();
      const tookMs = this.#cluster.nowMs() - mendedAtMs;
      if (open === undefined) {
        this.slowestMs = Math.max(this.slowestMs, tookMs);
        return;
      }
      if (tookMs > CONVERGED_WITHIN_MS) {
        this.#campaign.violation(
          `${what} for ${Math.round(cutMs)} ms at ${this.#cluster.scale} times the speed: ${Math.round(tookMs)} ms after it was mended ${open}`,
        );
        return;
      }
      await this.#cluster.pause(500);
    }
  }

  /** Reads every acknowledged file. */
  async finish(): Promise<void> {
    const wrong = await this.#cluster.ask<string[]>({ ask: "verify" });
    for (const text of wrong) this.#campaign.violation(`acknowledged and not there: ${text}`);
    const { acknowledged, unknown } = await this.#cluster.ask<{ acknowledged: number; unknown: number }>({
      ask: "counts",
    });
    this.#campaign.count("acknowledged files", acknowledged);
    this.#campaign.count("files of unknown outcome", unknown);
    if (acknowledged === 0) this.#campaign.violation("nothing was acknowledged");
  }

  #cut(): Cutting {
    const cluster = this.#cluster;
    const random = this.#random;
    if (random.chance(0.1)) {
      const server = random.pick(cluster.servers);
      server.signal("SIGSTOP");
      return {
        mend: () => server.signal("SIGCONT"),
        what: `process ${cluster.servers.indexOf(server)} stopped`,
      };
    }
    if (random.chance(0.5)) return this.#cutOff(random.pick(PARTIES), random.pick(CUTS));
    return this.#cutLinks([random.pick(cluster.links)], random.pick(CUTS));
  }

  #cutOff(party: string, how: Cut): Cutting {
    return this.#cutLinks(this.#cluster.linksOf(party), how);
  }

  #cutLinks(links: readonly Link[], how: Cut): Cutting {
    for (const link of links) link.set(how);
    return {
      mend: () => {
        for (const link of links) link.set("open");
      },
      what: `${links.map(({ name }) => name).join(", ")} ${how}`,
    };
  }

  async #share(from: number, isOn: boolean): Promise<boolean> {
    const to = 1 - from;
    this.#uncertain.set(from, isOn);
    if (!(await this.#cluster.ask<boolean>({ ask: "share", from, to, isOn }))) return false;
    const grant = `${USERS[from]} ${USERS[to]}`;
    if (isOn) this.#grants.add(grant);
    else this.#grants.delete(grant);
    this.#uncertain.delete(from);
    return true;
  }

  /** Returns what has not converged yet; undefined when all has. */
  async #open(): Promise<string | undefined> {
    if (!(await this.#cluster.ask<boolean>({ ask: "probe" })))
      return "somebody cannot write, or find the way";
    // Repeated where the last attempt may or may not have arrived.
    for (const [from, isOn] of this.#uncertain)
      if (!(await this.#share(from, isOn))) return "somebody cannot share";
    const { grants, silentMs } = await this.#cluster.store();
    const silent = Math.max(...silentMs);
    if (silent > HEARD_WITHIN_MS) return `a node has not been heard of for ${Math.round(silent)} ms`;
    const missing = this.#grants.difference(grants);
    const ended = grants.difference(this.#grants);
    if (missing.size > 0) return `the store lacks ${[...missing].join(", ")}`;
    return ended.size > 0 ? `the store still has ${[...ended].join(", ")}` : undefined;
  }
}

async function run(campaign: Campaign): Promise<void> {
  const postgres = await startPostgres((end) => campaign.atEnd(end));
  const isLong = campaign.goal >= LONG_FROM;
  const most = isLong ? SCALE : SHORT_SCALE;
  const scale = Math.max(1, Math.min(most, Math.round(SCALE / slowness() ** 2)));
  campaign.figure("scale", scale);
  const scaledGoal = campaign.goal - (isLong ? REAL_PARTITIONS : 0);
  const runs = [
    attack(campaign, { postgres, scale, goal: scaledGoal, longestMs: CUT_MAX_MS, name: "scaled" }),
  ];
  if (isLong) {
    const real = { postgres, scale: 1, goal: REAL_PARTITIONS, longestMs: REAL_CUT_MAX_MS, name: "real" };
    runs.push(attack(campaign, real));
  }
  await Promise.all(runs);
}

interface Part {
  readonly postgres: Awaited<ReturnType<typeof startPostgres>>;
  readonly scale: number;
  readonly goal: number;
  readonly longestMs: number;
  readonly name: string;
}

async function attack(campaign: Campaign, part: Part): Promise<void> {
  const cluster = await PartitionedCluster.start(campaign, part.postgres, part.scale);
  const own = new Attack(campaign, cluster, campaign.random.fork(part.name));
  for (let done = 0; done < part.goal && !campaign.isOver(); done++) {
    await own.partition(part.longestMs, done);
    campaign.count(`partitions at ${part.name} times`);
    campaign.step();
  }
  await own.finish();
  campaign.figure(`slowest convergence at ${part.name} times, s`, Math.round(own.slowestMs / 1_000));
}

/** See above. */
export const partitions: Rig = {
  name: "partitions",
  figure: "F17",
  proves:
    "Clients, nodes, MetaServers and the database may lose one another: nothing acknowledged is lost, and all converges",
  unit: "partitions",
  goal: 310,
  shortGoal: 1,
  plantedGoal: 4,
  lacks: () => (postgresPrograms() === undefined ? "PostgreSQL is not installed" : undefined),
  run,
};
