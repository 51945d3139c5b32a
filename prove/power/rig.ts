// Cuts the power of real filesystems under load, and while the store recovers from the cut before, and looks for what was acknowledged.
//
// How it works: two processes, each in a mount namespace of its own, make an ext4 and an XFS filesystem on a loop device. A process
// below each opens the store on it and works in six folders at once: uploads of all kinds, ranged writes, renames, copies, trash, shares.
// It says what it begins and what was acknowledged; that is kept outside. After a random number of acknowledgements, or at a random
// moment while the store is being opened, the kernel is told to shut the filesystem down (no write, flush or journal entry goes to the
// device from then on), the process is killed, and the filesystem mounted again, which replays its journal. The next process has every
// byte and counter checked, then lists and reads everything: each folder must be as acknowledged last, or as the change under way makes it.
// The process is frozen a moment before the cut: otherwise it hears of success from flushes that the cut overtakes in the kernel, which a
// machine without power would not tell anybody (without it one cut in eight "lost" its very last acknowledgement).
// What it cannot see: disks that lie about flushes or reorder behind them (the loop device's file keeps what it was given), torn sectors,
// and what these two filesystems happen to do unasked: both flush a new file's name along with the file.
import { type ChildProcess, spawn, spawnSync } from "node:child_process";
import { existsSync } from "node:fs";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import type { Campaign } from "#prove/campaign.ts";
import type { Rig } from "#prove/rig.ts";
import type { LaneLine } from "./lane-lines.ts";

const LANE = fileURLToPath(new URL("./power-lane.fixture.ts", import.meta.url));
const MEMORY = "/dev/shm";
const FILESYSTEMS = ["ext4", "xfs"] as const;
const TOOLS = ["mount", "umount", "unshare", "mkfs.ext4", "mkfs.xfs", "perl"] as const;
/** A lane that is asked to end finishes the cut that it is at. */
const END_WAIT_MS = 15_000;

/** F3. */
export const power: Rig = {
  name: "power",
  figure: "F3",
  unit: "power cuts",
  proves: "a power cut loses nothing that was acknowledged, on ext4 and on XFS",
  goal: 500,
  shortGoal: 4,
  lacks,
  run,
};

function lacks(): string | undefined {
  if (process.getuid?.() !== 0) return "only root can mount";
  if (!existsSync("/dev/loop-control")) return "there are no loop devices";
  const path = `${process.env["PATH"] ?? ""}:/usr/sbin:/sbin`;
  const isThere = (tool: string): boolean =>
    path.split(":").some((folder) => existsSync(`${folder}/${tool}`));
  const missing = TOOLS.filter((tool) => !isThere(tool));
  if (missing.length > 0) return `${missing.join(", ")} not installed`;
  const { status } = spawnSync("unshare", ["-m", "--propagation", "private", "true"]);
  return status === 0 ? undefined : "mount namespaces are not allowed";
}

async function run(campaign: Campaign): Promise<void> {
  const folder = await campaign.folder(existsSync(MEMORY) ? MEMORY : undefined);
  const lanes = FILESYSTEMS.map((filesystem) => startLane(campaign, filesystem, `${folder}/${filesystem}`));
  const results = await Promise.allSettled(lanes.map(({ ended }) => ended));
  for (const result of results) if (result.status === "rejected") throw result.reason;
}

function startLane(campaign: Campaign, filesystem: string, folder: string): { ended: Promise<void> } {
  const lane = [process.execPath, LANE, filesystem, String(campaign.seed), folder];
  const child = spawn("unshare", ["-m", "--propagation", "private", ...lane], {
    stdio: ["pipe", "pipe", "pipe"],
    detached: true,
    env: { ...process.env, PATH: `${process.env["PATH"] ?? ""}:/usr/sbin:/sbin` },
  });
  // Its mounts go with the last process of its namespace, and with them the loop devices.
  const killAll = (): void => killGroup(child);
  process.on("exit", killAll);
  campaign.atEnd(() => process.off("exit", killAll));
  let errors = "";
  child.stderr.setEncoding("utf8").on("data", (text: string) => {
    errors = (errors + text).slice(-2_000);
  });
  child.stdin.on("error", () => undefined);
  let late: NodeJS.Timeout | undefined;
  const stop = (): void => {
    if (late !== undefined) return;
    late = setTimeout(killAll, END_WAIT_MS);
    child.stdin.end();
  };
  const clock = setInterval(() => campaign.isOver() && stop(), 200);
  createInterface({ input: child.stdout }).on("line", (text) => {
    take(campaign, filesystem, JSON.parse(text) as LaneLine);
    if (!campaign.shouldGoOn()) stop();
  });
  const ended = new Promise<void>((resolve, reject) => {
    child.once("error", reject);
    child.once("close", (code) => {
      clearInterval(clock);
      clearTimeout(late);
      killAll();
      if (code === 0 || late !== undefined) resolve();
      else reject(new Error(`the ${filesystem} lane ended with ${code ?? "a signal"}: ${errors}`));
    });
  });
  return { ended };
}

function take(campaign: Campaign, filesystem: string, line: LaneLine): void {
  if ("violation" in line) campaign.violation(line.violation);
  else if ("acknowledged" in line) campaign.count("acknowledged changes", line.acknowledged);
  else {
    campaign.count(`${filesystem} cuts`, line.cuts);
    campaign.count("cuts during recovery", line.inRecovery);
    campaign.step(line.cuts);
  }
}

function killGroup(child: ChildProcess): void {
  try {
    if (child.pid !== undefined) process.kill(-child.pid, "SIGKILL");
  } catch {
    // It has ended.
  }
}
