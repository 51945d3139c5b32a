// Copies the sources with one bug planted, and runs a rig on that copy.
import { spawn } from "node:child_process";
import { once } from "node:events";
import { cp, mkdtemp, readFile, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import type { CampaignResult } from "./campaign.ts";
import { endsWithUs } from "./ends-with-us.ts";
import { NARROW, type PlantedBug, type Rig } from "./rig.ts";

const ROOT = fileURLToPath(new URL("..", import.meta.url));
/**
 * What a rig and the program need to run; installed packages and built pages are linked, since no bug is
 * planted there.
 */
const COPIED = [
  "src",
  "prove",
  "proto",
  "tests",
  "bench",
  "docs",
  "packaging",
  "package.json",
  "tsconfig.json",
  "grove",
];
const LINKED = ["node_modules", "dist"];
const LIMIT_MS = 180_000;
const TAIL_CHARACTERS = 1_500;

/** Result of one planted bug in one rig. */
export interface Catch {
  readonly bug: string;
  readonly rig: string;
  /** "could not run": the machine lacks something that the rig needs. */
  readonly outcome: "caught" | "missed" | "could not run";
  /** The first violation; why there was none; or what is lacking. */
  readonly why: string;
}

/**
 * Returns the text of a file with the bug in it.
 * @throws Error when the text to be changed is not there exactly once
 */
export function withEdit(text: string, edit: PlantedBug["edits"][number]): string {
  const parts = text.split(edit.from);
  if (parts.length !== 2) throw new Error(`${edit.file} has ${parts.length - 1} times: ${edit.from}`);
  return parts.join(edit.to);
}

/** Runs one rig's short form on a copy that has the bug. A rig that does not end has not caught it. */
export async function tryBug(bug: PlantedBug, rig: Rig, seed: number): Promise<Catch> {
  const lacking = rig.lacks?.();
  if (lacking !== undefined) return { bug: bug.name, rig: rig.name, outcome: "could not run", why: lacking };
  const tree = await mkdtemp(join(tmpdir(), "grove-planted-"));
  try {
    for (const name of COPIED) await cp(join(ROOT, name), join(tree, name), { recursive: true });
    for (const name of LINKED) await symlink(join(ROOT, name), join(tree, name));
    for (const edit of bug.edits) {
      const file = join(tree, edit.file);
      await writeFile(file, withEdit(await readFile(file, "utf8"), edit));
    }
    return { bug: bug.name, rig: rig.name, ...(await askRig(tree, bug, rig, seed)) };
  } finally {
    await rm(tree, { recursive: true, force: true, maxRetries: 3 });
  }
}

async function askRig(
  tree: string,
  bug: PlantedBug,
  rig: Rig,
  seed: number,
): Promise<Omit<Catch, "bug" | "rig">> {
  const words = [
    join(tree, "prove/run.ts"),
    rig.name,
    "--short",
    "--json",
    "--no-planted",
    "--end-at-first",
    "--seed",
    String(seed),
  ];
  const goal = bug.goal ?? rig.plantedGoal;
  if (goal !== undefined) words.push("--goal", String(goal));
  const child = spawn(process.execPath, words, {
    cwd: tree,
    env: { ...process.env, ...(bug.narrow === undefined ? {} : { [NARROW]: bug.narrow }) },
    stdio: ["ignore", "pipe", "pipe"],
    detached: true,
  });
  let stdout = "";
  let all = "";
  child.stdout.setEncoding("utf8").on("data", (text: string) => {
    stdout += text;
    all = (all + text).slice(-TAIL_CHARACTERS);
  });
  child.stderr.setEncoding("utf8").on("data", (text: string) => {
    all = (all + text).slice(-TAIL_CHARACTERS);
  });
  // The rig's own servers end with it: they are in its process group.
  const late = setTimeout(endsWithUs(child, { isGroup: true }), LIMIT_MS);
  await once(child, "close");
  clearTimeout(late);
  const result = lastJson(stdout);
  if (result === undefined) return { outcome: "missed", why: `the rig did not end: ${all}` };
  const first = result.violations[0];
  return first === undefined
    ? { outcome: "missed", why: `nothing seen in ${JSON.stringify(result.counts)}` }
    : { outcome: "caught", why: first };
}

function lastJson(text: string): CampaignResult | undefined {
  const line = text.trimEnd().split("\n").at(-1) ?? "";
  try {
    return JSON.parse(line) as CampaignResult;
  } catch {
    return undefined;
  }
}
