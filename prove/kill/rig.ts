// Kills a FileServer under mixed load from several clients, again and again, and compares it with a manifest
// of its acknowledgements (F1).
//
// Four data directories have a real `grove fileserver` each. Nine lanes of three users and an administrator
// send real gRPC: uploads small, large and resumable, overwrites, ranged writes, truncations, renames,
// copies, trash, restores, purges, deletes, shares, quotas. At a random moment the process gets SIGKILL. The
// next one must show each lane's folder as it was last acknowledged, or with the one call that was under way.
// Names, sizes, checksums, shares, trash, unfinished uploads, counters and quotas must be exact; changed
// content is read back and compared byte by byte. Some starts are killed as well, and now and then the check
// recounts the directory of a dead server. At the end everything is read again, the trash included, and
// checked deeply.
//
// It cannot see a missing flush (the kernel keeps what a dead process wrote), nor orders of calls that no
// kill fell into.
import { join } from "node:path";
import type { Campaign } from "#prove/campaign.ts";
import { withCompiled } from "#prove/file-server.ts";
import type { Rig } from "#prove/rig.ts";
import { Arena, type ArenaDeps } from "./arena.ts";

/** Side by side: while one waits for a process to start or to die, others use the cores. */
const ARENAS = 4;
/** A few kills are of more use where much has been written already. */
const KILLS_OF_AN_ARENA_MIN = 3;
const CHECK_CHANCE = 0.1;
const START_KILL_CHANCE = 0.1;

/** See above. */
export const kill: Rig = {
  name: "kill",
  figure: "F1",
  unit: "kills",
  goal: 1_000,
  shortGoal: 2,
  plantedGoal: 6,
  proves: "kill -9 under mixed load loses nothing that was acknowledged, and no counter drifts",
  run: async (campaign) => {
    const arenas = Math.min(ARENAS, Math.ceil(campaign.goal / KILLS_OF_AN_ARENA_MIN));
    const env = await withCompiled(await campaign.folder("memory"));
    await Promise.all(Array.from({ length: arenas }, (_, index) => attack(campaign, index, env)));
  },
};

async function attack(campaign: Campaign, index: number, env: ArenaDeps["env"]): Promise<void> {
  const random = campaign.random.fork(`arena ${index}`);
  const data = join(await campaign.folder("memory"), "data");
  const arena = await Arena.make({ data, random, env });
  campaign.atEnd(() => arena.drop());
  const tell = (problems: readonly string[]): boolean => {
    for (const problem of problems)
      campaign.violation(`arena ${index}, after ${campaign.done} kills: ${problem}`);
    return problems.length === 0;
  };
  // A fault once found stays: the arena ends there.
  while (campaign.shouldGoOn()) {
    if (!tell(await arena.begin())) return;
    const before = arena.acknowledged;
    if (!tell(await arena.workAndKill())) return;
    if (arena.acknowledged > before) campaign.step();
    campaign.count("acknowledged calls", arena.acknowledged - before);
    if (random.chance(CHECK_CHANCE) && !tell(arena.check(false))) return;
    if (random.chance(START_KILL_CHANCE)) {
      await arena.killStart();
      campaign.count("kills of a start");
    }
  }
  if (!tell(await arena.begin())) return;
  tell(await arena.end());
  campaign.count(
    "bytes read back",
    arena.lanes.reduce((sum, lane) => sum + lane.readBytes, 0),
  );
}
