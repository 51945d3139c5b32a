// Processor time of test files, which `npm test -- --costs` prints with the dearest first.
import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { processorMsOfTree } from "#bench/processor-time.ts";
import type { TestTask } from "./test-pool.ts";

/** Files that are printed. */
const SHOWN = 20;
const MS_PER_SECOND = 1_000;

/** Collects the processor time of test files, that of all processes included which they started and ended. */
export class TestCosts {
  readonly #folder: string;
  readonly #files = new Map<TestTask, string>();

  private constructor(folder: string) {
    this.#folder = folder;
  }

  /** Keeps them in a temporary folder until they are printed. */
  static async start(): Promise<TestCosts> {
    return new TestCosts(await mkdtemp(join(tmpdir(), "grove-costs-")));
  }

  /** Where the process of a task writes its milliseconds at its end. */
  fileOf(task: TestTask): string {
    const file = join(this.#folder, `${this.#files.size}`);
    this.#files.set(task, file);
    return file;
  }

  /** The final lines: the dearest tasks, and the whole run with this process. */
  async words(): Promise<string> {
    const costs = await Promise.all(
      Array.from(this.#files, async ([task, file]) => {
        // Nothing is written by a process that was killed.
        const ms = Number(await readFile(file, "utf8").catch(() => "NaN"));
        const name = task.length > 1 ? `${task[0]} and ${task.length - 1} more` : task[0];
        return { ms, line: `${inSeconds(ms)}  ${name}` };
      }),
    );
    await rm(this.#folder, { recursive: true });
    const dearest = costs.toSorted((a, b) => (b.ms || 0) - (a.ms || 0)).slice(0, SHOWN);
    const all = `${inSeconds(processorMsOfTree(process.pid))}  all`;
    return ["", "Processor time in seconds:", ...dearest.map(({ line }) => line), all, ""].join("\n");
  }
}

function inSeconds(ms: number): string {
  return (ms / MS_PER_SECOND).toFixed(2).padStart(8);
}
