// Cuts the power of one disk again and again, in its own mount namespace, while a child changes a store on
// it.
import { setTimeout as sleep } from "node:timers/promises";
import { compiledIn } from "#prove/launcher.ts";
import { SeededRandom } from "#prove/seeded-random.ts";
import { FolderStates } from "#prove/store/folder-states.ts";
import { CUT_FLAGS, DISK_KINDS, Disk, PowerSwitch } from "./disk.ts";
import type { LaneLine } from "./lane-lines.ts";
import type { LoadLine } from "./load-lines.ts";
import { LoadProcess } from "./load-process.ts";

const [, , filesystem = "", seed = "", folder = ""] = process.argv;
const CUTS_PER_IMAGE = 12;
const ACKNOWLEDGED_PER_CUT = 40;
/** Share of the cuts that come while the store is being opened. */
const RECOVERY_CHANCE = 0.2;
const LOG_FLUSH_CHANCE = 0.2;
const FIRST_OPEN_MS = 150;

function say(line: LaneLine): void {
  process.stdout.write(`${JSON.stringify(line)}\n`);
}

/** The next process starts while the present one works. */
class Lane {
  readonly #random = new SeededRandom(Number(seed)).fork(filesystem);
  #disk: Disk | undefined;
  #states = new FolderStates();
  /** Cuts of this image since the last comparison. */
  #unverified = { cuts: 0, inRecovery: 0 };
  #openMs = FIRST_OPEN_MS;
  #spare: LoadProcess | undefined;
  #hear: (line: LoadLine) => void = () => undefined;
  #isBroken = false;
  readonly #switch = new PowerSwitch();

  /** One filesystem with its cuts. */
  async image(shouldGoOn: () => boolean): Promise<void> {
    if (filesystem !== "ext4" && filesystem !== "xfs") throw new Error(`what is ${filesystem}?`);
    this.#disk = new Disk(folder, this.#random.pick(DISK_KINDS[filesystem]));
    this.#states = new FolderStates();
    this.#unverified = { cuts: 0, inRecovery: 0 };
    this.#isBroken = false;
    for (let cut = 0; cut < CUTS_PER_IMAGE && shouldGoOn() && !this.#isBroken; cut++) {
      await this.#run(this.#random.chance(RECOVERY_CHANCE) ? "recovery" : "load");
    }
    if (!this.#isBroken && this.#unverified.cuts > 0) await this.#run("look");
  }

  async end(): Promise<void> {
    await this.#spare?.kill();
    this.#switch.end();
  }

  async #run(plan: "recovery" | "load" | "look"): Promise<void> {
    const disk = this.#disk;
    if (disk === undefined) return;
    const load = this.#spare ?? this.#start();
    this.#spare = undefined;
    let isCut = false;
    let done = 0;
    let checkedMs = 0;
    const problems: string[] = [];
    this.#hear = (line) => {
      if (line.event === "begin") this.#states.begin(line.folder, line.lines);
      else if (line.event === "done") {
        this.#states.done(line.folder);
        done++;
      } else if (line.event === "checked") checkedMs = performance.now();
      else if (line.event === "found") {
        if (!isCut) this.#openMs = performance.now() - checkedMs;
        problems.push(...this.#settle(line.folders));
      } else if ((line.event === "broken" || line.event === "stopped") && !isCut) problems.push(line.text);
    };
    disk.mount();
    load.order({ directory: `${disk.path}/data`, seed: this.#random.below(2 ** 31) });
    const isStuck = ({ event }: LoadLine): boolean => event === "broken" || event === "stopped";
    if (plan === "recovery") {
      await load.until((line) => line.event === "checked" || isStuck(line));
      await sleep(this.#random.next() * this.#openMs * 1.2);
    } else {
      const wanted = plan === "look" ? 0 : this.#random.between(1, ACKNOWLEDGED_PER_CUT);
      await load.until(
        (line) => isStuck(line) || (line.event === "found" && wanted === 0) || (done >= wanted && wanted > 0),
      );
      this.#spare = this.#start();
      await sleep(this.#random.next() * 4);
    }
    isCut = true;
    if (plan !== "look") {
      // Frozen first: the kernel would report success for some flushes in flight that the cut overtakes.
      load.freeze();
      const flags = this.#random.chance(LOG_FLUSH_CHANCE) ? CUT_FLAGS.logFlush : CUT_FLAGS.noLogFlush;
      await this.#switch.cut(disk, flags);
      this.#unverified.cuts++;
      if (plan === "recovery") this.#unverified.inRecovery++;
    }
    await load.kill();
    await disk.unmount();
    say({ acknowledged: done });
    this.#isBroken ||= problems.length > 0;
    for (const problem of problems) say({ violation: `${filesystem} (${disk.kind.options}): ${problem}` });
    if (plan === "load" && done === 0 && problems.length === 0)
      throw new Error(`nothing was acknowledged: ${load.errors}`);
  }

  #settle(folders: Readonly<Record<string, string>>): string[] {
    const problems = this.#states.settle(new Map(Object.entries(folders)));
    if (problems.length === 0) say(this.#unverified);
    this.#unverified = { cuts: 0, inRecovery: 0 };
    return problems;
  }

  #start(): LoadProcess {
    return new LoadProcess(compiledIn(`${folder}/cache`), (line) => this.#hear(line));
  }
}

const stopped = new AbortController();
process.stdin.on("end", () => stopped.abort());
process.stdin.resume();
const lane = new Lane();
while (!stopped.signal.aborted) await lane.image(() => !stopped.signal.aborted);
await lane.end();
