// Simulates the whole cluster in one thread (F21).
//
// A MetaServer with its SQLite store, three FileServers and four users with the product's own client run for
// two simulated hours a seed, through every kind of fault. Processes and machines crash (the store lost, or
// an older copy of it put back) and restart. The network has partitions, one-way partitions, slow links, lost
// replies, and late and doubled messages of the control plane. Wall clocks jump by up to 13 hours, disks fill
// up, and a second process registers with a node's id while the first goes on elsewhere. Roots move from one
// node's disk to another's, confirmed or undone, with a kill of either side at a drawn step. Users work before,
// during and half a minute after a fault; in the minutes until the next one they do a quarter of that.
//
// The product's modules are loaded unchanged, and a module hook (hooks.ts) gives them simulated parts of
// Node. Timers, clocks and chance come from one scheduler. Worker threads run their own modules in this
// thread, between turns. Files and SQLite are real, called synchronously, and a killed process leaves its
// database and log as they are at that moment. HTTP/2 streams hand their headers and buffers over in order.
// The trace of a seed is hashed, and the first seed is run twice, in two processes, which must agree.
//
// These must hold. Acknowledged files can be read and have their acknowledged content. No root is on two
// nodes, and leases show which nodes are alive. Two leases after the end of a fault grants are equal on both
// sides, every node has its lease and no process serves in another's place. Sessions follow a list of the
// rig's own, and sums and reservations are exact at rest. A root that moves has one node that changes it, and
// nothing is left of its move 90 s after the last fault. At the end every data folder is recounted and read.
//
// It cannot see moves to, from and within the shared engine (the rig "leases" does, on simulated time too), HTTP/2
// framing and flow control, TLS, PostgreSQL and two MetaServers (the rig "partitions" has them), the console
// and its alerts. Nor can it see races between threads, power cuts (a kill falls between two turns and keeps
// what was written), and SQL commands in the middle of one.
import { spawn } from "node:child_process";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import type { Campaign } from "#prove/campaign.ts";
import type { Rig } from "#prove/rig.ts";
import type { SeedLength, SeedResult } from "./world.ts";

const WORLD = fileURLToPath(new URL("world.fixture.ts", import.meta.url));
const PROCESSES = 2;
/** Seeds of the form for `npm test`. */
const SHORT_SEEDS = 20;
const FEW_BELOW_SEEDS = 10;
const SLOT_MS = 360_000;
const WHOLE: SeedLength = { faults: 20, slotMs: SLOT_MS };
/** Each kind once, where few seeds are run, such as against planted bugs. */
const ONCE: SeedLength = { faults: 12, slotMs: SLOT_MS };
/** One kind a seed, some minutes long: many seeds together have every kind. */
const SHORT: SeedLength = { faults: 1, slotMs: 0 };
const SEEDS = 2 ** 31;

/** A process that simulates one seed after the other. */
class Simulator {
  readonly #child;
  readonly #lines: AsyncIterator<string>;
  #errors = "";

  constructor(folder: string, { faults, slotMs }: SeedLength) {
    const flags = ["--max-semi-space-size=64", WORLD, folder, String(faults), String(slotMs)];
    this.#child = spawn(process.execPath, flags, { stdio: ["pipe", "pipe", "pipe"] });
    this.#child.stderr.setEncoding("utf8").on("data", (text: string) => {
      this.#errors = (this.#errors + text).slice(-2_000);
    });
    this.#lines = createInterface({ input: this.#child.stdout })[Symbol.asyncIterator]();
  }

  async run(seed: number): Promise<SeedResult> {
    this.#child.stdin.write(`${seed}\n`);
    const { value, done } = await this.#lines.next();
    if (done === true) throw new Error(`the simulation of seed ${seed} ended: ${this.#errors}`);
    return JSON.parse(value) as SeedResult;
  }

  end(): void {
    this.#child.kill("SIGKILL");
  }
}

function lengthOf({ goal }: Campaign): SeedLength {
  if (goal === SHORT_SEEDS) return SHORT;
  return goal < FEW_BELOW_SEEDS ? ONCE : WHOLE;
}

function report(campaign: Campaign, { violations, counts }: SeedResult): void {
  for (const text of violations) campaign.violation(text);
  for (const [name, count] of Object.entries(counts)) {
    if (name.startsWith("slowest")) slowest.set(campaign, Math.max(slowest.get(campaign) ?? 0, count));
    else campaign.count(name, count);
  }
  campaign.figure("slowest convergence s", slowest.get(campaign) ?? 0);
  if ((counts["acknowledged changes"] ?? 0) === 0 || (counts["faults"] ?? 0) === 0)
    campaign.violation("nothing was acknowledged, or nothing befell anybody");
}

const slowest = new WeakMap<Campaign, number>();

async function run(campaign: Campaign): Promise<void> {
  const folder = await campaign.folder("memory");
  const simulators = Array.from({ length: PROCESSES }, () => new Simulator(folder, lengthOf(campaign)));
  for (const simulator of simulators) campaign.atEnd(() => simulator.end());
  const first = campaign.random.below(SEEDS);
  const [one, other] = await Promise.all(simulators.map((simulator) => simulator.run(first)));
  if (one === undefined || other === undefined) throw new Error("no simulator");
  if (one.traceHash !== other.traceHash)
    campaign.violation(`seed ${first} has the trace ${one.traceHash} and the trace ${other.traceHash}`);
  report(campaign, one);
  campaign.step();
  let begun = 1;
  await Promise.all(
    simulators.map(async (simulator) => {
      while (begun < campaign.goal && !campaign.isOver()) {
        begun++;
        report(campaign, await simulator.run(campaign.random.below(SEEDS)));
        campaign.step();
      }
    }),
  );
}

/** See above. */
export const simulation: Rig = {
  name: "simulation",
  figure: "F21",
  proves:
    "A whole cluster keeps its promises through simulated hours of faults, the same way for the same seed",
  unit: "seeds",
  goal: 200,
  shortGoal: SHORT_SEEDS,
  plantedGoal: 1,
  run,
};
