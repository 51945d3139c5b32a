// `npm test [rooms|whole] [--no-skip] [FILE…]`: runs the tests and prints the names of failed ones last.
import { glob } from "node:fs/promises";
import { join, resolve } from "node:path";
import { run } from "node:test";
import { spec } from "node:test/reporters";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { longestFirst } from "./test-order.ts";
import { TestVerdict } from "./test-verdict.ts";

const ROOT = fileURLToPath(new URL("..", import.meta.url));
const FIRST = new URL("test-process.ts", import.meta.url).href;
/** V8's compile cache, kept between files and runs. */
const COMPILED = process.env["NODE_COMPILE_CACHE"] ?? join(ROOT, ".cache/compiled");
const TEST_TIMEOUT_MS = 120_000;

interface Half {
  readonly patterns: readonly string[];
  /** Concurrent files. */
  readonly concurrency: number;
}

/** The files of rooms, and those that start whole processes and browsers. */
const HALVES: Readonly<Record<string, Half>> = {
  rooms: {
    patterns: ["src", "web", "tools", "bench", "prove"].map((folder) => `${folder}/**/*.test.ts`),
    concurrency: 3,
  },
  // They mostly wait for leases, polls and pages.
  whole: { patterns: ["tests/**/*.test.ts"], concurrency: 4 },
};

async function runFiles(files: readonly string[], concurrency: number, verdict: TestVerdict): Promise<void> {
  verdict.expect(files);
  const events = run({
    cwd: ROOT,
    files: [...files],
    concurrency,
    timeout: TEST_TIMEOUT_MS,
    forceExit: true,
    execArgv: [`--import=${FIRST}`],
    env: { ...process.env, NODE_COMPILE_CACHE: COMPILED },
  });
  events.on("test:pass", (test) => verdict.note(test));
  events.on("test:fail", (test) => verdict.note(test, test.details.error));
  events.on("test:summary", (summary) => verdict.noteSummary(summary));
  const report = events.compose(spec);
  for await (const text of report) process.stdout.write(text as string);
}

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: { "no-skip": { type: "boolean", default: false } },
});
const verdict = new TestVerdict(ROOT);
const named = positionals.filter((word) => !(word in HALVES));
const chosen = Object.entries(HALVES).filter(
  ([name]) => positionals.length === 0 || positionals.includes(name),
);
for (const [, { patterns, concurrency }] of chosen) {
  const files = await Array.fromAsync(glob([...patterns], { cwd: ROOT }));
  await runFiles(
    longestFirst(files).map((path) => join(ROOT, path)),
    concurrency,
    verdict,
  );
}
if (named.length > 0)
  await runFiles(
    named.map((path) => resolve(path)),
    2,
    verdict,
  );

const { text, passed } = verdict.words({ mayBeSkipped: !values["no-skip"] });
process.stdout.write(text);
process.exitCode = passed ? 0 : 1;
