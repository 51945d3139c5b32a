// Rebuilds, from recorded system calls, the states in which a power cut may leave the disk, and opens each of them.
//
// How it works: a process does the set-up of a store and all workloads of one and two of 30 mutating operations, and of three of the 23
// that do not resemble another one, behind strace, which records every call that changes a file or a folder with its bytes. From that a disk is modelled
// as POSIX promises it and no better: a file's bytes are surely there after a flush of the file, a name after a flush of its folder;
// until then each write is there, not there, or torn at 512 bytes, each name is old or new, in any order. At each acknowledgement the
// worst such state is made; before each flush that ends while others wait, all those that lack only what one file or folder waits for
// ("all but one there"), for every sixth flush is held back so that whoever does not wait for it overtakes it; and random ones in
// between. Each is opened with the code that starts a node, every stored byte is compared
// with its checksum and every counter with a recount, and each folder must be as acknowledged last or as the change under way makes it.
// No two states of a batch have the same bytes and the same expectation; "distinct images" counts those that differ in their bytes. Every
// state is recovered; of recovered folders of a batch with the same bytes in all files the first is looked through, and what was found in
// it is compared with each state's own expectation ("looked through").
// What it cannot see: operations that overlap (the rig that cuts the power has six at a time), a crash of the recovery itself (the same),
// and what lies below the calls: it believes that a flush that ended well has flushed. States are opened without the writer's thread.
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
