// Rebuilds, from recorded system calls, the states in which a power cut may leave the disk, and opens each of them.
//
// How it works: a process does the set-up of a store and all workloads of one and two of 30 mutating operations, and of three of the 23
// that do not resemble another one, behind strace, which records every call that changes a file or a folder with its bytes. From that a disk is modelled
// as POSIX promises it and no better: a file's bytes are surely there after a flush of the file, a name after a flush of its folder;
// until then each write is there, not there, or torn at 512 bytes, each name is old or new, in any order. At each acknowledgement the
// worst such state is made, and random ones in between; each is opened with the code that starts a node, every stored byte is compared
// with its checksum and every counter with a recount, and each folder must be as acknowledged last or as the change under way makes it.
// No two states of a batch have the same bytes and the same expectation; "distinct images" counts those that differ in their bytes.
// What it cannot see: operations that overlap (the rig that cuts the power has six at a time), a crash of the recovery itself (the same),
// and what lies below the calls: it believes that a flush that ended well has flushed. States are opened without the writer's thread.
import { spawn, spawnSync } from "node:child_process";
import { existsSync } from "node:fs";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import type { Campaign } from "#prove/campaign.ts";
import type { Rig } from "#prove/rig.ts";
import type { ExplorerLine } from "./explorer-lines.ts";

const EXPLORER = fileURLToPath(new URL("./crash-explorer.fixture.ts", import.meta.url));
const MEMORY = "/dev/shm";
/** One for each processor. */
const EXPLORERS = 2;
const WHOLE_RUN = 50_000;
const END_WAIT_MS = 15_000;

/** F4. */
export const crashStates: Rig = {
  name: "crash-states",
  figure: "F4",
  unit: "crash states",
  proves:
    "whatever a power cut may leave of what was not flushed, a start finds everything acknowledged and nothing half",
  goal: WHOLE_RUN,
  shortGoal: 300,
  lacks: () => (spawnSync("strace", ["-V"]).status === 0 ? undefined : "strace is not installed"),
  run,
};

async function run(campaign: Campaign): Promise<void> {
  const folder = await campaign.folder(existsSync(MEMORY) ? MEMORY : undefined);
  const parts = Array.from({ length: EXPLORERS }, (_, part) => explore(campaign, part, `${folder}/${part}`));
  const results = await Promise.allSettled(parts);
  for (const result of results) if (result.status === "rejected") throw result.reason;
}

function explore(campaign: Campaign, part: number, folder: string): Promise<void> {
  const words = [EXPLORER, folder, part, EXPLORERS, campaign.seed].map(String);
  const child = spawn(process.execPath, words, { stdio: ["pipe", "pipe", "pipe"], detached: true });
  const killAll = (): void => {
    try {
      if (child.pid !== undefined) process.kill(-child.pid, "SIGKILL");
    } catch {
      // It has ended.
    }
  };
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
  let distinct = 0;
  createInterface({ input: child.stdout }).on("line", (text) => {
    const line = JSON.parse(text) as ExplorerLine;
    if ("violation" in line) campaign.violation(line.violation);
    else {
      campaign.count("workloads", line.workloads);
      campaign.count("acknowledged changes", line.acknowledged);
      campaign.count("distinct images", line.distinct - distinct);
      distinct = line.distinct;
      campaign.step(line.states);
    }
    // A whole run goes on to the last workload.
    if (campaign.isOver() || (!campaign.shouldGoOn() && campaign.goal < WHOLE_RUN)) stop();
  });
  return new Promise((resolve, reject) => {
    child.once("error", reject);
    child.once("close", (code) => {
      clearInterval(clock);
      clearTimeout(late);
      killAll();
      if (code === 0 || late !== undefined) resolve();
      else reject(new Error(`an explorer ended with ${code ?? "a signal"}: ${errors}`));
    });
  });
}
