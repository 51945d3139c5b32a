// One run of a rig: its seed, its goal, its counts, and every violation that it saw.
import { existsSync, statfsSync } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { SeededRandom } from "./seeded-random.ts";

/** A run stops by itself after this many violations. */
const MAX_VIOLATIONS = 20;
const MAX_VIOLATION_CHARACTERS = 2_000;
const PROGRESS_EVERY_MS = 5_000;
const MEMORY = "/dev/shm";
const MEMORY_NEEDED_BYTES: number = 2 ** 30;

/** What a run needs to know of a rig. */
export interface Attack {
  /** Argument of `npm run prove -- NAME`; also the folder below prove/. */
  readonly name: string;
  /** Its row in docs/proof.md, such as "F1". */
  readonly figure: string;
  /** What is counted, in the plural: "kills". */
  readonly unit: string;
  /** Set where its FileServers use a shared engine. */
  readonly isOverEngine?: true;
  /**
   * Attacks while `campaign.shouldGoOn()`, counts with `campaign.step()`, and reports with
   * `campaign.violation()`.
   */
  run(campaign: Campaign): Promise<void>;
}

/** Options of one run. */
export interface CampaignOptions {
  readonly seed: number;
  /** In the rig's unit. */
  readonly goal: number;
  /** Milliseconds until no further attack is begun. */
  readonly timeMs: number;
  /** The run ends at so many violations; 20 by default. */
  readonly violationsMax?: number | undefined;
  /** A rejection ends what the run has made at once, and the run rejects with it. */
  readonly interrupted?: Promise<never>;
  /** False ends the run as if its time were up. */
  readonly isWanted?: () => boolean;
  /** Receives the run's progress every five seconds, and each violation at once. */
  readonly onProgress?: (line: string) => void;
  /** Receives all that is counted and seen, at once. */
  readonly listener?: CampaignListener;
}

/** Listener for every count, figure and violation of a run. */
export interface CampaignListener {
  count(what: string, by: number): void;
  figure(what: string, value: number): void;
  violation(text: string): void;
}

/** Result of a run, as it is printed. */
export interface CampaignResult {
  readonly rig: string;
  readonly figure: string;
  readonly seed: number;
  readonly seconds: number;
  readonly goal: number;
  /** The rig's unit first, then its other counts. */
  readonly counts: Readonly<Record<string, number>>;
  readonly violationCount: number;
  readonly violations: readonly string[];
  /** Whether the goal was reached with no violation. */
  readonly reached: boolean;
}

/** The rig's handle on its run; see Attack.run. */
export class Campaign {
  /** The seed's own stream of random numbers. */
  readonly random: SeededRandom;
  readonly seed: number;
  readonly goal: number;
  readonly #rig: Attack;
  readonly #startedMs = performance.now();
  readonly #timeMs: number;
  readonly #counts = new Map<string, number>();
  readonly #violations: string[] = [];
  readonly #ends: (() => unknown)[] = [];
  readonly #onProgress: (line: string) => void;
  readonly #isWanted: () => boolean;
  readonly #violationsMax: number;
  readonly #listener: CampaignListener | undefined;
  #violationCount = 0;
  #isWhole = true;
  #toldMs = 0;

  constructor(rig: Attack, options: CampaignOptions) {
    this.#rig = rig;
    this.seed = options.seed;
    this.goal = options.goal;
    this.random = new SeededRandom(options.seed);
    this.#timeMs = options.timeMs;
    this.#onProgress = options.onProgress ?? (() => undefined);
    this.#isWanted = options.isWanted ?? (() => true);
    this.#listener = options.listener;
    this.#violationsMax = options.violationsMax ?? MAX_VIOLATIONS;
    this.#counts.set(rig.unit, 0);
  }

  /** True where FileServers of the run use a shared engine. */
  get isOverEngine(): boolean {
    return this.#rig.isOverEngine === true;
  }

  /** Number of the rig's units that are done. */
  get done(): number {
    return this.#counts.get(this.#rig.unit) ?? 0;
  }

  /** True while the goal is not reached, time is left and violations are below the maximum. */
  shouldGoOn(): boolean {
    return this.done < this.goal && !this.isOver();
  }

  /** True when time is up or violations are at the maximum: for attacks under way that may take long. */
  isOver(): boolean {
    if (performance.now() - this.#startedMs > this.#timeMs || !this.#isWanted()) return true;
    return this.#violationCount >= this.#violationsMax;
  }

  /** Counts attacks made. */
  step(by = 1): void {
    this.count(this.#rig.unit, by);
    const now = performance.now() - this.#startedMs;
    if (now - this.#toldMs < PROGRESS_EVERY_MS) return;
    this.#toldMs = now;
    this.#onProgress(
      `${this.done} of ${this.goal} ${this.#rig.unit}, ${Math.round(now / 1_000)} s, ${this.#violationCount} violations`,
    );
  }

  /** Counts anything else worth reading: "acknowledged files", "resumed uploads". */
  count(what: string, by = 1): void {
    this.#counts.set(what, (this.#counts.get(what) ?? 0) + by);
    this.#listener?.count(what, by);
  }

  /** What was counted so far under a name. */
  countOf(what: string): number {
    return this.#counts.get(what) ?? 0;
  }

  /** Sets a figure instead of adding: "p99 ms". */
  figure(what: string, value: number): void {
    this.#counts.set(what, value);
    this.#listener?.figure(what, value);
  }

  /** Counts attacks of the run that were not made: its goal then counts as not reached. */
  leaveOut(what: string, count: number): void {
    this.figure(what, count);
    this.#isWhole = false;
  }

  /** Reports a broken promise: what was seen, with all that it takes to see it again. */
  violation(text: string): void {
    this.#violationCount++;
    this.#listener?.violation(text.slice(0, MAX_VIOLATION_CHARACTERS));
    this.#onProgress(`violation: ${text.slice(0, MAX_VIOLATION_CHARACTERS)}`);
    if (this.#violations.length < MAX_VIOLATIONS)
      this.#violations.push(text.slice(0, MAX_VIOLATION_CHARACTERS));
  }

  /**
   * Makes a folder that is removed when the run ends; in memory, where flushes cost nothing, if the machine
   * has so much room there.
   */
  async folder(
    where: "memory" | "disk" = "disk",
    neededBytes: number = MEMORY_NEEDED_BYTES,
  ): Promise<string> {
    const under = where === "memory" && memoryFreeBytes() >= neededBytes ? MEMORY : tmpdir();
    const folder = await mkdtemp(join(under, `grove-prove-${this.#rig.name}-`));
    this.atEnd(() => rm(folder, { recursive: true, force: true, maxRetries: 3 }));
    return folder;
  }

  /** Registers a clean-up for the end of the run; the last registered runs first. */
  atEnd(end: () => unknown): void {
    this.#ends.push(end);
  }

  /**
   * Runs the rig, cleans up after it, and returns the result. Throws an error of the rig itself, unless a
   * violation was seen before it.
   */
  static async run(rig: Attack, options: CampaignOptions): Promise<CampaignResult> {
    const campaign = new Campaign(rig, options);
    const run = rig.run(campaign).catch((error: unknown) => {
      if (campaign.#violationCount === 0) throw error;
      campaign.violation(`after that the rig could not go on: ${String(error)}`);
    });
    try {
      await (options.interrupted === undefined ? run : Promise.race([run, options.interrupted]));
    } finally {
      await campaign.#end();
    }
    return campaign.#result();
  }

  /** Runs all clean-ups even when one fails: a timer that goes on would hold the process for ever. */
  async #end(): Promise<void> {
    const errors: unknown[] = [];
    for (const end of this.#ends.toReversed()) {
      try {
        await end();
      } catch (error) {
        errors.push(error);
      }
    }
    if (errors.length > 0) throw new AggregateError(errors, `${this.#rig.name} could not clean up`);
  }

  #result(): CampaignResult {
    return {
      rig: this.#rig.name,
      figure: this.#rig.figure,
      seed: this.seed,
      seconds: Math.round((performance.now() - this.#startedMs) / 100) / 10,
      goal: this.goal,
      counts: Object.fromEntries(this.#counts),
      violationCount: this.#violationCount,
      violations: this.#violations,
      reached: this.done >= this.goal && this.#isWhole && this.#violationCount === 0,
    };
  }
}

function memoryFreeBytes(): number {
  if (!existsSync(MEMORY)) return 0;
  const { bavail, bsize } = statfsSync(MEMORY);
  return bavail * bsize;
}
