// `npm run mutants [FILE…]`: puts one small mistake at a time into the pure rules, and fails on one that their tests do not notice.
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
/** A mutant whose tests take so many times as long as without it goes on for ever. */
const SLOWER_MAX = 10;
const SLOWER_SLACK_MS = 20_000;
const SEEDS = 2 ** 31;

type Outcome = "killed" | "out of time" | "survived";

interface Mutant extends Mutation {
  readonly tests: readonly string[];
  /** Why nobody could notice it, where that is so. */
  readonly equivalent: string | undefined;
}

/** Runs tests with the mutation in place, until the first of them fails. */
async function tryTests(tests: readonly string[], mutation?: Mutation, limitMs?: number): Promise<Outcome> {
  const options = ["--import", HOOK, "--test", "--test-isolation=none", "--test-reporter=tap"];
  const mutant = mutation && { ...mutation, path: pathToFileURL(join(ROOT, mutation.path)).href };
  const child = spawn(process.execPath, [...options, ...tests], {
    cwd: ROOT,
    stdio: ["ignore", "pipe", "ignore"],
    env: { ...process.env, GROVE_MUTANT: JSON.stringify(mutant ?? null), NODE_TEST_CONTEXT: undefined },
  });
  let outcome: Outcome | undefined;
  const end = (how: Outcome): void => {
    outcome ??= how;
    child.kill("SIGKILL");
  };
  const late = limitMs === undefined ? undefined : setTimeout(() => end("out of time"), limitMs);
  let tail = "";
  child.stdout.setEncoding("utf8").on("data", (text: string) => {
    tail = (tail + text).slice(-text.length - 100);
    if (/^\s*not ok /m.test(tail)) end("killed");
  });
  const code = await new Promise<number | null>((resolve, reject) => {
    child.once("error", reject).once("close", resolve);
  });
  clearTimeout(late);
  return outcome ?? (code === 0 ? "survived" : "killed");
}

/** How long the tests of each target may take; they must pass as the sources are. */
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
    const startedMs = performance.now();
    if ((await tryTests(tests)) !== "survived")
      throw new Error(`fails without a mutation: ${tests.join(" ")}`);
    return SLOWER_MAX * (performance.now() - startedMs) + SLOWER_SLACK_MS;
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
      const outcome = await tryTests(next.tests, next, await limits.of(next.tests));
      if (outcome === "survived" && next.equivalent !== undefined) equivalent++;
      else counts[outcome]++;
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
