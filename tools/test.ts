// `npm test [rooms|whole] [--no-skip] [--costs] [--disk] [[--shared] FILE…]`: runs the tests and prints the names
// of failed ones last.
import { glob, readFile, rm } from "node:fs/promises";
import { availableParallelism, tmpdir } from "node:os";
import { join, relative } from "node:path";
import { PassThrough } from "node:stream";
import { run } from "node:test";
import { spec, type TestEvent } from "node:test/reporters";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { hasRoom } from "./machine-room.ts";
import { TestCosts } from "./test-costs.ts";
import { memoryFolder } from "./test-memory.ts";
import { LONGEST } from "./test-order.ts";
import { planTasks, runInLanes, type TestTask } from "./test-pool.ts";
import { bundleProgram } from "./test-program.ts";
import { SharingRule } from "./test-sharing.ts";
import { TestVerdict } from "./test-verdict.ts";

const ROOT = fileURLToPath(new URL("..", import.meta.url));
const FIRST = new URL("test-process.ts", import.meta.url).href;
const BATCH = fileURLToPath(new URL("test-batch.ts", import.meta.url));
/** V8's compile cache, kept between files and runs. */
const COMPILED = process.env["NODE_COMPILE_CACHE"] ?? join(ROOT, ".cache/compiled");
const TEST_TIMEOUT_MS = 120_000;
/** More lanes than this need more memory than a developer's machine may have. */
const MAX_CORES = 4;
/** Files at once on a core, most of which then wait. */
const MAX_FILES_PER_CORE = 4;

/** The files of rooms, and those that start whole processes and browsers. */
const HALVES: Readonly<Record<string, readonly string[]>> = {
  rooms: ["src", "web", "tools", "bench", "prove"].map((folder) => `${folder}/**/*.test.ts`),
  whole: ["tests/**/*.test.ts"],
};

const CORES = Math.min(availableParallelism(), MAX_CORES);

/** Lanes by the half that they begin with. More files run while these leave processors idle. */
function lanesFor(halves: number): number[] {
  const [first, last] = [0, halves - 1];
  return [...Array<number>(CORES).fill(first), ...Array<number>(CORES).fill(last)];
}

/** Runs the files of one process. Its events come at its end, so that those of several do not mix. */
async function runTask(files: TestTask, verdict: TestVerdict, report: PassThrough): Promise<void> {
  const isShared = files.length > 1;
  const events = run({
    cwd: ROOT,
    files: isShared ? [BATCH] : files.map((path) => join(ROOT, path)),
    argv: isShared ? [`${TEST_TIMEOUT_MS}`, ...files] : [],
    concurrency: 1,
    timeout: TEST_TIMEOUT_MS * files.length,
    forceExit: true,
    execArgv: [`--import=${costs === undefined ? FIRST : `${FIRST}?cost=${costs.fileOf(files)}`}`],
    env: { ...process.env, ...program, ...places, NODE_COMPILE_CACHE: COMPILED },
  });
  const results = verdict.ofProcess();
  events.on("test:pass", (test) => results.note(test));
  events.on("test:fail", (test) => results.note(test, test.details.error));
  events.on("test:summary", (summary) => results.noteSummary(summary));
  const told = (await Array.fromAsync(events)) as TestEvent[];
  for (const event of told.filter((one) => !isOwnCount(one))) report.write(event);
}

/** A run's own counts, where the verdict has those of all. */
function isOwnCount({ type, data }: TestEvent): boolean {
  return type === "test:diagnostic" && data.nesting === 0 && data.file === undefined;
}

async function planHalf(name: string, rule: SharingRule): Promise<TestTask[]> {
  const files = await Array.fromAsync(glob([...(HALVES[name] ?? [])], { cwd: ROOT }));
  const shareable = new Set<string>();
  for (const path of files) {
    // Those of the whole wait side by side, not one after the other.
    if (name === "rooms" && (await rule.reasonAlone(path)) === undefined) shareable.add(path);
  }
  return planTasks(files, { longest: LONGEST, shareable });
}

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    "no-skip": { type: "boolean", default: false },
    // Prints the processor time of the dearest files.
    costs: { type: "boolean", default: false },
    // Keeps temporary files on the disk.
    disk: { type: "boolean", default: false },
    // Files that are named run in one process.
    shared: { type: "boolean", default: false },
  },
});
const named = positionals.filter((word) => !(word in HALVES));
const halves = Object.keys(HALVES).filter((name) => positionals.length === 0 || positionals.includes(name));
const { imports } = JSON.parse(await readFile(join(ROOT, "package.json"), "utf8")) as {
  readonly imports: Readonly<Record<string, string>>;
};
const rule = new SharingRule(ROOT, imports);
const queues = await Promise.all(halves.map((name) => planHalf(name, rule)));
if (named.length > 0) {
  const paths = named.map((path) => relative(ROOT, path));
  queues.push(values.shared ? [paths] : paths.map((path) => [path]));
}

// A few files start their programs from the sources sooner than from a bundle that has to be made.
const program = named.length > 0 ? {} : { GROVE_TEST_PROGRAM: await bundleProgram(ROOT) };
const memory = values.disk ? undefined : await memoryFolder();
const places = memory === undefined ? {} : { TMPDIR: memory, GROVE_TEST_DISK: tmpdir() };
const costs = values.costs ? await TestCosts.start() : undefined;
const verdict = new TestVerdict(ROOT);
verdict.expect(queues.flat(2).map((path) => join(ROOT, path)));
const report = new PassThrough({ objectMode: true });
const shown = (async () => {
  for await (const text of report.compose(spec)) process.stdout.write(text as string);
})();
await runInLanes(queues, lanesFor(queues.length), (files) => runTask(files, verdict, report), {
  most: CORES * MAX_FILES_PER_CORE,
  hasRoom,
});
report.end();
await shown;
if (memory !== undefined) await rm(memory, { recursive: true, force: true, maxRetries: 5 });

if (costs !== undefined) process.stdout.write(await costs.words());
const { text, passed } = verdict.words({ mayBeSkipped: !values["no-skip"] });
process.stdout.write(text);
process.exitCode = passed ? 0 : 1;
