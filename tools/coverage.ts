// `npm run coverage [ROOM…]`: runs a room's tests and fails on an unlisted branch that they do not take.
import { spawn } from "node:child_process";
import { glob, mkdtemp, readdir, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { type Branch, branchesOf, ReachCounts, type ScriptCoverage } from "./branches.ts";

const ROOT = fileURLToPath(new URL("..", import.meta.url));
/** Rooms of src/ whose every branch is taken by their own tests, or listed in coverage-exceptions.json. */
const COVERED_ROOMS: readonly string[] = ["quota", "sessions", "policy", "alerts", "storage"];

/** Branches that no test of their room takes, with one reason. */
interface Untaken {
  readonly reason: string;
  /** True where a busy machine may take it by chance: then it may also be taken. */
  readonly isChancy: boolean;
  /** By file: way and words of each branch, as printed after its line. */
  readonly branches: Readonly<Record<string, readonly string[]>>;
}

const UNTAKEN = JSON.parse(
  await readFile(new URL("coverage-exceptions.json", import.meta.url), "utf8"),
) as readonly Untaken[];

interface SourceReach {
  readonly path: string;
  readonly branches: readonly Branch[];
  readonly reach: ReachCounts;
}

interface RoomReport {
  readonly files: number;
  readonly branches: number;
  readonly listed: number;
  readonly wrong: readonly string[];
}

/** Runs the room's tests; V8 writes the coverage of every process and thread into the folder. */
async function runTests(room: string, folder: string): Promise<boolean> {
  const tests = await Array.fromAsync(glob(`src/${room}/*.test.ts`, { cwd: ROOT }));
  const options = ["--test", "--test-concurrency=2", "--test-timeout=120000", "--test-reporter=dot"];
  const child = spawn(process.execPath, [...options, ...tests], {
    cwd: ROOT,
    stdio: ["ignore", "pipe", "inherit"],
    env: { ...process.env, NODE_V8_COVERAGE: folder },
  });
  let output = "";
  child.stdout.setEncoding("utf8").on("data", (text: string) => {
    output += text;
  });
  const code = await new Promise<number | null>((resolve, reject) => {
    child.once("error", reject).once("close", resolve);
  });
  if (code !== 0) console.log(output);
  return code === 0;
}

async function readReach(room: string, folder: string): Promise<SourceReach[]> {
  const sources = new Map<string, SourceReach>();
  for await (const path of glob(`src/${room}/*.ts`, { cwd: ROOT })) {
    if (/\.(?:test|fixture)\.ts$/.test(path)) continue;
    const text = await readFile(join(ROOT, path), "utf8");
    const branches = branchesOf(path, text);
    const reach = new ReachCounts(text.length);
    sources.set(pathToFileURL(join(ROOT, path)).href, { path, branches, reach });
  }
  for (const name of await readdir(folder)) {
    // A process that a test kills may leave half a file.
    const { result } = parsed(await readFile(join(folder, name), "utf8"));
    for (const script of result) sources.get(script.url)?.reach.add(script);
  }
  return [...sources.values()].toSorted((a, b) => (a.path < b.path ? -1 : 1));
}

function parsed(text: string): { readonly result: readonly ScriptCoverage[] } {
  try {
    return JSON.parse(text) as { readonly result: readonly ScriptCoverage[] };
  } catch {
    return { result: [] };
  }
}

function judge(sources: readonly SourceReach[]): RoomReport {
  const wrong: string[] = [];
  let listed = 0;
  for (const { path, branches, reach } of sources) {
    const exceptions = new Map(
      UNTAKEN.flatMap((group) => (group.branches[path] ?? []).map((words) => [words, group] as const)),
    );
    const used = new Set<string>();
    for (const branch of branches) {
      if (reach.isTaken(branch)) continue;
      const words = `${branch.way}: ${branch.text}`;
      if (exceptions.has(words)) {
        listed++;
        used.add(words);
      } else {
        wrong.push(`${path}:${branch.line} ${words}`);
      }
    }
    for (const [words, group] of exceptions) {
      if (!used.has(words) && !group.isChancy)
        wrong.push(`${path} is listed as an exception and is none: ${words}`);
    }
  }
  const branches = sources.reduce((sum, source) => sum + source.branches.length, 0);
  return { files: sources.length, branches, listed, wrong };
}

async function coverRoom(room: string): Promise<boolean> {
  const folder = await mkdtemp(join(tmpdir(), "grove-coverage-"));
  try {
    if (!(await runTests(room, folder))) {
      console.log(`${room}: its tests fail`);
      return false;
    }
    const { files, branches, listed, wrong } = judge(await readReach(room, folder));
    const taken = branches - listed - wrong.filter((line) => !line.includes(" is listed as ")).length;
    const columns = [files, branches, taken, listed, wrong.length].map((n) => `${n}`.padStart(9));
    console.log(`${room.padEnd(10)}${columns.join("")}`);
    for (const line of wrong) console.log(`  ${line}`);
    return wrong.length === 0;
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

const asked = process.argv.slice(2);
const rooms = asked.length === 0 ? COVERED_ROOMS : asked;
if (rooms.some((room) => !COVERED_ROOMS.includes(room))) {
  console.log(`usage: npm run coverage [-- ROOM…], of ${COVERED_ROOMS.join(", ")}`);
  process.exitCode = 2;
} else {
  console.log(
    `room${["files", "branches", "taken", "listed", "wrong"]
      .map((w) => w.padStart(9))
      .join("")
      .padStart(51)}`,
  );
  for (const room of rooms) if (!(await coverRoom(room))) process.exitCode = 1;
}
