// `npm run mutants [FILE…]`: puts one mutation at a time into the pure rules, and fails on an unnoticed one.
import { spawn } from "node:child_process";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { parseArgs } from "node:util";
import { SeededRandom } from "#prove/seeded-random.ts";
import { EQUIVALENT, TARGETS } from "./mutant-targets.ts";
import { type Mutation, mutationsOf } from "./mutations.ts";

const ROOT = fileURLToPath(new URL("..", import.meta.url));
const HOOK = new URL("mutant-hook.ts", import.meta.url).href;
const AT_ONCE = 2;
/** V8's compile cache, shared with `npm test`: only the mutated file is compiled anew. */
const COMPILED = process.env["NODE_COMPILE_CACHE"] ?? join(ROOT, ".cache/compiled");
/** Factor of processor time, not of wall time, beyond which a mutant counts as an endless loop. */
const SLOWER_MAX = 5;
const SLOWER_SLACK_SECONDS = 2;
/** Time limit of a mutant that waits for ever without using the processor. */
const WAITING_MAX_MS = 600_000;
/** The last line of tests without a mutation. */
const PROCESSOR_TIME = /# processor (\d+) ms/;
const SEEDS = 2 ** 31;

type Outcome = "killed" | "out of time" | "survived";

interface Mutant extends Mutation {
  readonly tests: readonly string[];
  /** Why the mutant is equivalent, if it is. */
  readonly equivalent: string | undefined;
}

interface Trial {
  readonly outcome: Outcome;
  /** The last output of the processes. */
  readonly tail: string;
}

/** Runs tests with the mutation until one fails or their processor time is used up. */
async function tryTests(
  tests: readonly string[],
  mutation?: Mutation,
  limitSeconds?: number,
): Promise<Trial> {
  const options = ["--import", HOOK, "--test", "--test-isolation=none", "--test-reporter=tap"];
  const mutant = mutation && { ...mutation, path: pathToFileURL(join(ROOT, mutation.path)).href };
  const limited = `ulimit -t ${limitSeconds ?? "unlimited"}; exec "$@"`;
  const child = spawn("sh", ["-c", limited, "sh", process.execPath, ...options, ...tests], {
    cwd: ROOT,
    stdio: ["ignore", "pipe", "ignore"],
    env: {
      ...process.env,
      GROVE_MUTANT: JSON.stringify(mutant ?? null),
      NODE_COMPILE_CACHE: COMPILED,
      NODE_TEST_CONTEXT: undefined,
    },
  });
  let outcome: Outcome | undefined;
  const end = (how: Outcome): void => {
    outcome ??= how;
    child.kill("SIGKILL");
  };
  const late = setTimeout(() => end("out of time"), WAITING_MAX_MS);
  let tail = "";
  child.stdout.setEncoding("utf8").on("data", (text: string) => {
    tail = (tail + text).slice(-text.length - 200);
    if (/^\s*not ok /m.test(tail)) end("killed");
  });
  const [code, signal] = await new Promise<[number | null, string | null]>((resolve, reject) => {
    child.once("error", reject).once("close", (...how) => resolve(how));
  });
  clearTimeout(late);
  if (signal === "SIGXCPU" || signal === "SIGKILL") outcome ??= "out of time";
  return { outcome: outcome ?? (code === 0 ? "survived" : "killed"), tail };
}

/** Processor time limits of each target's tests, in seconds; without a mutation they must pass. */
class TimeLimits {
  readonly #limits = new Map<string, Promise<number>>();

  of(tests: readonly string[]): Promise<number> {
    const known = this.#limits.get(tests.join(" "));
    if (known !== undefined) return known;
    const measured = this.#measure(tests);
    this.#limits.set(tests.join(" "), measured);
    return measured;
  }

  async #measure(tests: readonly string[]): Promise<number> {
    const { outcome, tail } = await tryTests(tests);
    const usedMs = Number(PROCESSOR_TIME.exec(tail)?.[1]);
    if (outcome !== "survived" || Number.isNaN(usedMs))
      throw new Error(`fails without a mutation: ${tests.join(" ")}`);
    return Math.ceil((SLOWER_MAX * usedMs) / 1_000) + SLOWER_SLACK_SECONDS;
  }
}

async function mutantsOf(only: readonly string[]): Promise<Mutant[]> {
  const mutants: Mutant[] = [];
  for (const [path, tests] of Object.entries(TARGETS)) {
    if (only.length > 0 && !only.includes(path)) continue;
    const reasons = new Map(
      EQUIVALENT.flatMap(({ reason, mutants: each }) =>
        (each[path] ?? []).map((change) => [change, reason] as const),
      ),
    );
    const mutations = mutationsOf(path, await readFile(join(ROOT, path), "utf8"));
    for (const mutation of mutations)
      mutants.push({ ...mutation, tests, equivalent: reasons.get(mutation.change) });
    for (const change of reasons.keys()) {
      if (!mutations.some((mutation) => mutation.change === change))
        throw new Error(`${path} is listed with a mutant that it has not: ${change}`);
    }
  }
  return mutants;
}

async function main(): Promise<void> {
  const { values, positionals } = parseArgs({
    allowPositionals: true,
    options: { seed: { type: "string" }, sample: { type: "string" }, minutes: { type: "string" } },
  });
  const strange = positionals.filter((path) => !(path in TARGETS));
  if (strange.length > 0) throw new Error(`not in tools/mutant-targets.ts: ${strange.join(", ")}`);
  const seed = Number(values.seed ?? Math.floor(Math.random() * SEEDS));
  const untilMs = performance.now() + Number(values.minutes ?? Number.POSITIVE_INFINITY) * 60_000;
  const all = await mutantsOf(positionals);
  const isWhole = values.sample === undefined && values.minutes === undefined;
  const waiting = isWhole
    ? [...all]
    : shuffled(all, new SeededRandom(seed)).slice(0, Number(values.sample ?? all.length));
  const limits = new TimeLimits();
  const counts: Record<Outcome, number> = { killed: 0, "out of time": 0, survived: 0 };
  let equivalent = 0;
  const wrong: string[] = [];
  const work = async (): Promise<void> => {
    for (
      let next = waiting.shift();
      next !== undefined && performance.now() < untilMs;
      next = waiting.shift()
    ) {
      const { outcome } = await tryTests(next.tests, next, await limits.of(next.tests));
      if (outcome === "survived" && next.equivalent !== undefined) equivalent++;
      else counts[outcome]++;
      if (outcome === "out of time") console.log(`${next.path}:${next.line} out of time: ${next.change}`);
      if ((outcome === "survived") === (next.equivalent !== undefined)) continue;
      const what = outcome === "survived" ? "survived" : "is listed as equivalent and was noticed";
      wrong.push(`${next.path}:${next.line} ${what}: ${next.change}`);
      console.log(wrong.at(-1));
    }
  };
  await Promise.all(Array.from({ length: AT_ONCE }, work));
  const tried = counts.killed + counts["out of time"] + counts.survived + equivalent;
  const noticed = counts.killed + counts["out of time"];
  const score = Math.round((1_000 * noticed) / Math.max(1, tried - equivalent)) / 10;
  console.log(`seed ${seed}`);
  console.log(JSON.stringify({ mutants: all.length, tried, ...counts, equivalent, score }));
  if (wrong.length > 0 || tried === 0) process.exitCode = 1;
}

function shuffled(mutants: readonly Mutant[], random: SeededRandom): Mutant[] {
  const left = [...mutants];
  return mutants.flatMap(() => left.splice(random.below(left.length), 1));
}

await main();
