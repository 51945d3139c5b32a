// Calls of honest users and nodes beside an attack; time and refusal of each count for its phase.
import { setTimeout as sleep } from "node:timers/promises";
import type { Campaign } from "#prove/campaign.ts";

/** A task that an honest client repeats. */
export interface HonestTask {
  readonly name: string;
  readonly everyMs: number;
  /** Whether its time is compared with that of calm phases. */
  readonly isPaced: boolean;
  /** Phases in which it may be refused: newcomers share what such an attack uses up. */
  readonly mayFailIn?: readonly string[];
  /** Does it once; rejects when it was refused. */
  once(): Promise<void>;
  /** Signs in again after a server was restarted. */
  renew?(): Promise<void>;
}

interface Phase {
  readonly timesMs: number[];
  underWay: number;
  failures: number;
  firstFailure: string;
}

const CALM = "calm";
/** Characters. */
const COLUMN = 18;
const UNATTACKED: readonly string[] = ["before", CALM, "after"];
const CALLS_AT_LEAST = 10;
/** Shortest pause of tasks that leave attackers and servers the processor time of a short stroke. */
const PACED_EVERY_MS = 20;
/**
 * With fewer calls the p99 is the slowest of all, which shows the machine's state in that moment: the mean of
 * the others is judged instead.
 */
const CALLS_FOR_P99 = 100;

/** All honest tasks. */
export class HonestSide {
  readonly #campaign: Campaign;
  readonly #phases = new Map<string, Phase>();
  readonly #tasks: readonly HonestTask[];
  readonly #done: Promise<unknown>;
  readonly #pauseMinMs: number;
  #now = "before";
  #isOver = false;

  constructor(campaign: Campaign, tasks: readonly HonestTask[], isPaced = false) {
    this.#campaign = campaign;
    this.#tasks = tasks;
    this.#pauseMinMs = isPaced ? PACED_EVERY_MS : 0;
    this.#done = Promise.all(tasks.map((task) => this.#goOn(task)));
    campaign.atEnd(() => this.end());
  }

  /** Names the phase that begins now. */
  during(phase: string): void {
    this.#now = phase;
  }

  /** Continues the calm phase until every task was done this often in it. */
  async calmDown(times: number): Promise<void> {
    this.during(CALM);
    const isEnough = (task: HonestTask): boolean => this.#phase(task, CALM).timesMs.length >= times;
    while (!this.#tasks.every(isEnough) && !this.#campaign.isOver()) await sleep(10);
  }

  /** Time in calm from one call of the slowest task to its next, by the mean of its calls. */
  longestRoundMs(): number {
    const rounds = this.#tasks.map((task) => {
      const { timesMs } = this.#phase(task, CALM);
      return this.#pauseMs(task) + timesMs.reduce((sum, each) => sum + each, 0) / Math.max(1, timesMs.length);
    });
    return Math.max(...rounds);
  }

  /** Waits for the calls under way. */
  async end(): Promise<void> {
    this.#isOver = true;
    await this.#done;
  }

  /** Waits for all calls begun in a phase, and returns its refusals since the last time. */
  async refusalsOf(phaseName: string): Promise<string[]> {
    const told: string[] = [];
    for (const task of this.#tasks) {
      const phase = this.#phase(task, phaseName);
      while (phase.underWay > 0) await sleep(10);
      const { failures, timesMs, firstFailure } = phase;
      if (task.mayFailIn?.includes(phaseName) === true) {
        this.#campaign.count(`${task.name} that met ${phaseName}`, timesMs.length);
        this.#campaign.count(`${task.name} refused in ${phaseName}`, failures);
        timesMs.length = 0;
      } else if (failures > 0)
        told.push(`${failures} of ${timesMs.length} ${task.name} refused (${firstFailure})`);
      phase.failures = 0;
    }
    return told;
  }

  /** Signs in again where a server was restarted. */
  async renew(): Promise<void> {
    for (const task of this.#tasks) await task.renew?.();
  }

  /**
   * Compares the p99 of each phase with that of the calm, or with the floor where that is higher. A phase
   * with less than a hundred calls is judged by the mean of all but the slowest. Calls are few where a server
   * stands still, and one such moment may be the machine's.
   */
  judge(floorMs: number, slowerMax: number): void {
    const slow = new Map<string, string[]>();
    let worst = 0;
    for (const task of this.#tasks) {
      const calm = this.#phase(task, CALM).timesMs;
      const calmMs = percentile(calm, 0.99);
      if (!task.isPaced) continue;
      this.#campaign.figure(`${task.name}: calm p99 ms`, tenths(calmMs));
      if (calm.length < CALLS_AT_LEAST) throw new Error(`only ${calm.length} ${task.name} in calm moments`);
      for (const [key, { timesMs }] of this.#phases) {
        const [name, phase = ""] = key.split("\n");
        if (name !== task.name || UNATTACKED.includes(phase) || timesMs.length === 0) continue;
        const attackedMs = percentile(timesMs, 0.99);
        this.#campaign.figure(`${phase}: ${name} p99 ms`, tenths(attackedMs));
        worst = Math.max(worst, attackedMs / calmMs);
        const isFew = timesMs.length < CALLS_FOR_P99;
        const judgedMs = isFew ? meanButSlowest(timesMs) : attackedMs;
        if (judgedMs <= Math.max(floorMs, calmMs * slowerMax)) continue;
        const what = `${isFew ? "mean" : "p99"} of ${name} ${tenths(judgedMs)} ms, calm p99 ${tenths(calmMs)}`;
        slow.set(phase, [...(slow.get(phase) ?? []), what]);
      }
    }
    this.#campaign.figure("times slower at most", tenths(worst));
    for (const [phase, what] of slow) this.#campaign.violation(`${phase}: ${what.join("; ")}`);
  }

  /** The p99 of each task in calm moments and in each phase, in milliseconds: one line for each. */
  table(): string[] {
    const p99 = (task: HonestTask, phase: string): string =>
      percentile(this.#phase(task, phase).timesMs, 0.99).toFixed(1).padStart(COLUMN);
    const paced = this.#tasks.filter(({ isPaced }) => isPaced);
    const phases = new Set([...this.#phases.keys()].map((key) => key.split("\n")[1] ?? ""));
    const attacked = [...phases].filter((phase) => !UNATTACKED.includes(phase));
    const width = Math.max(...attacked.map(({ length }) => length), CALM.length);
    return [
      `${"p99 in ms".padEnd(width)}${paced.map(({ name }) => name.padStart(COLUMN)).join("")}`,
      ...[CALM, ...attacked].map(
        (phase) => `${phase.padEnd(width)}${paced.map((task) => p99(task, phase)).join("")}`,
      ),
    ];
  }

  async #goOn(task: HonestTask): Promise<void> {
    while (!this.#isOver) {
      const phase = this.#phase(task, this.#now);
      const startedMs = performance.now();
      phase.underWay++;
      try {
        await task.once();
      } catch (error) {
        if (phase.failures++ === 0) phase.firstFailure = String(error);
        // A refused client waits before the next try, as real ones do.
        await sleep(100);
      }
      phase.underWay--;
      phase.timesMs.push(performance.now() - startedMs);
      this.#campaign.count("honest calls");
      await sleep(this.#pauseMs(task));
    }
  }

  #pauseMs({ everyMs }: HonestTask): number {
    return Math.max(everyMs, this.#pauseMinMs);
  }

  #phase(task: HonestTask, name: string): Phase {
    const key = `${task.name}\n${name}`;
    let phase = this.#phases.get(key);
    if (phase === undefined) {
      phase = { timesMs: [], underWay: 0, failures: 0, firstFailure: "" };
      this.#phases.set(key, phase);
    }
    return phase;
  }
}

function percentile(timesMs: readonly number[], part: number): number {
  const sorted = timesMs.toSorted((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * part))] ?? 0;
}

function meanButSlowest(timesMs: readonly number[]): number {
  const others = timesMs.toSorted((a, b) => a - b).slice(0, -1);
  return others.reduce((sum, each) => sum + each, 0) / Math.max(1, others.length);
}

const tenths = (value: number): number => Math.round(value * 10) / 10;
