// Cuts the power of real filesystems under load and during recovery, and looks for all that was acknowledged
// (F3).
//
// Two processes, each in a mount namespace of its own, make an ext4 and an XFS filesystem on a loop device. A
// process below each opens the store on it and works in six folders at once: uploads of all kinds, ranged
// writes, renames, copies, trash, shares. It prints each beginning and each acknowledgement; they are kept
// outside.
//
// After a random number of acknowledgements, or at a random moment while the store is being opened, the
// kernel shuts the filesystem down. No write, flush or journal entry goes to the device from then on. The
// process is killed, and the filesystem mounted again, which replays its journal. The next process checks
// every byte and counter, then lists and reads everything. Each folder must be as last acknowledged, or as
// the change under way makes it.
//
// The process is frozen a moment before the cut. Otherwise the kernel would report success for flushes that
// the cut overtakes, which a machine without power could not do: one cut in eight "lost" its very last
// acknowledgement.
//
// It cannot see disks that lie about flushes or reorder behind them (the loop device's file keeps what it was
// given), and torn sectors. Nor can it see what these two filesystems happen to do unasked: both flush a new
// file's name along with the file.
import { fileURLToPath } from "node:url";
import type { Campaign } from "#prove/campaign.ts";
import { runLinePart } from "#prove/line-process.ts";
import type { Rig } from "#prove/rig.ts";
import { lacksDisks } from "./lacks-disks.ts";
import type { LaneLine } from "./lane-lines.ts";

const LANE = fileURLToPath(new URL("./power-lane.fixture.ts", import.meta.url));
const FILESYSTEMS = ["ext4", "xfs"] as const;

/** F3. */
export const power: Rig = {
  name: "power",
  figure: "F3",
  unit: "power cuts",
  proves: "a power cut loses nothing that was acknowledged, on ext4 and on XFS",
  goal: 500,
  shortGoal: 3,
  plantedGoal: 4,
  lacks: lacksDisks,
  run,
};

async function run(campaign: Campaign): Promise<void> {
  const folder = await campaign.folder("memory");
  const lanes = FILESYSTEMS.map((filesystem) => runLane(campaign, filesystem, `${folder}/${filesystem}`));
  const results = await Promise.allSettled(lanes);
  for (const result of results) if (result.status === "rejected") throw result.reason;
}

function runLane(campaign: Campaign, filesystem: string, folder: string): Promise<void> {
  // Its mounts go with the last process of its namespace, and with them the loop devices.
  const lane = [process.execPath, LANE, filesystem, String(campaign.seed), folder];
  return runLinePart<LaneLine>(campaign, {
    name: `the ${filesystem} lane`,
    command: ["unshare", "-m", "--propagation", "private", ...lane],
    env: { ...process.env, PATH: `${process.env["PATH"] ?? ""}:/usr/sbin:/sbin` },
    take(line) {
      take(campaign, filesystem, line);
      return campaign.shouldGoOn();
    },
  });
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
