// Rebuilds, from recorded system calls, the states in which a power cut may leave the disk, and opens each of
// them.
//
// A process sets up a store and runs all workloads of one and two of 30 mutating operations, and of three of
// the 23 that do not resemble another one. It runs behind strace, which records every call that changes a
// file or a folder, with its bytes. From that a disk is modelled as POSIX promises it and no better. A file's
// bytes are durable after a flush of the file, a name after a flush of its folder. Until then each write is
// there, not there, or torn at 512 bytes, and each name is old or new, in any order.
//
// At each acknowledgement the worst such state is made. Before each flush that ends while others wait, all
// states are made that lack only what one file or folder waits for ("all but one there"). Every sixth flush
// is held back, so that code that does not wait for it overtakes it. Random states are made in between.
//
// Each state is opened with the code that starts a node. Every stored byte is compared with its checksum and
// every counter with a recount. Each folder must be as last acknowledged, or as the change under way makes
// it.
//
// No two states of a batch have the same bytes and the same expectation; "distinct images" counts those that
// differ in their bytes. Every state is recovered. Of a batch's recovered folders with the same bytes the
// first one is checked, and its content is compared with each state's own expectation ("looked through").
//
// It cannot see operations that overlap, nor a crash of the recovery itself: the rig that cuts the power has
// both. It believes that a flush that ended well has flushed. States are opened without the writer's thread.
import { spawnSync } from "node:child_process";
import { fileURLToPath } from "node:url";
import type { Campaign } from "#prove/campaign.ts";
import { runLinePart } from "#prove/line-process.ts";
import type { Rig } from "#prove/rig.ts";
import type { ExplorerLine } from "./explorer-lines.ts";

const EXPLORER = fileURLToPath(new URL("./crash-explorer.fixture.ts", import.meta.url));
/** One for each processor. */
const EXPLORERS = 2;
const WHOLE_RUN = 50_000;

/** F4. */
export const crashStates: Rig = {
  name: "crash-states",
  figure: "F4",
  unit: "crash states",
  proves:
    "whatever a power cut may leave of what was not flushed, a start finds everything acknowledged and nothing half",
  goal: WHOLE_RUN,
  shortGoal: 150,
  plantedGoal: 300,
  lacks: () => (spawnSync("strace", ["-V"]).status === 0 ? undefined : "strace is not installed"),
  run,
};

async function run(campaign: Campaign): Promise<void> {
  const folder = await campaign.folder("memory");
  const parts = Array.from({ length: EXPLORERS }, (_, part) => explore(campaign, part, `${folder}/${part}`));
  const results = await Promise.allSettled(parts);
  for (const result of results) if (result.status === "rejected") throw result.reason;
}

function explore(campaign: Campaign, part: number, folder: string): Promise<void> {
  let distinct = 0;
  return runLinePart<ExplorerLine>(campaign, {
    name: "an explorer",
    command: [process.execPath, EXPLORER, folder, `${part}`, `${EXPLORERS}`, `${campaign.seed}`],
    take(line) {
      if ("violation" in line) campaign.violation(line.violation);
      else {
        campaign.count("workloads", line.workloads);
        campaign.count("acknowledged changes", line.acknowledged);
        campaign.count("distinct images", line.distinct - distinct);
        distinct = line.distinct;
        campaign.count("looked through", line.looked);
        campaign.count("all but one there", line.late);
        campaign.step(line.states);
      }
      // A whole run goes on to the last workload.
      return !campaign.isOver() && (campaign.goal >= WHOLE_RUN || campaign.shouldGoOn());
    },
  });
}
