// Cuts the power of a shared engine's database and store under load, and looks for all that was acknowledged
// (F29).
//
// A process in a mount namespace of its own makes two filesystems on loop devices, ext4 or XFS: one for
// PostgreSQL, which flushes as it does by default, one for versitygw or MinIO. That one is mounted so that it
// flushes every change, since neither store flushes all that it has acknowledged. An engine works there in six
// folders at once: small files, which lie in PostgreSQL, large ones, which lie in the store, overwrites and
// removals.
//
// After a random number of acknowledgements the power of one or both goes, also while PostgreSQL recovers from
// the cut before. The servers are stopped, the kernel shuts the filesystems down, and nothing that was not
// flushed reaches the devices. The servers are killed, the filesystems mounted again, the servers started. The
// same engine goes on, finds out what became of commits without an answer, and ends its calls. Then a new
// engine without caches takes the root and reads everything: each file as it was last acknowledged, or as a
// call without an answer would have left it. Rows are compared with the bucket as `fsck -list` does.
//
// It cannot see drives that lie about flushes, torn sectors, and a standby whose power stays.

import { fileURLToPath } from "node:url";
import type { Campaign } from "#prove/campaign.ts";
import { runLinePart } from "#prove/line-process.ts";
import { lacksDisks } from "#prove/power/lacks-disks.ts";
import type { Rig } from "#prove/rig.ts";
import { lacksEngine } from "#prove/rig-engine.ts";
import { withoutStore } from "#testing/object-stores.ts";

const LANE = fileURLToPath(new URL("./engine-power.fixture.ts", import.meta.url));

/** A line of the process. */
export type EnginePowerLine =
  | { readonly cut: "database" | "store" | "both"; readonly isInRecovery: boolean }
  | { readonly acknowledged: number; readonly readBytes: number }
  | { readonly violation: string };

/** F29. */
export const enginePower: Rig = {
  name: "engine-power",
  figure: "F29",
  unit: "power cuts",
  proves: "a power cut of the shared engine's database or store loses nothing that was acknowledged",
  goal: 200,
  shortGoal: 2,
  plantedGoal: 6,
  lacks: () => lacksDisks() ?? lacksEngine() ?? (withoutStore("minio") || undefined),
  async run(campaign) {
    const folder = await campaign.folder("memory");
    await runLinePart<EnginePowerLine>(campaign, {
      name: "the engine without power",
      command: [
        "unshare",
        "-m",
        "--propagation",
        "private",
        process.execPath,
        LANE,
        `${campaign.seed}`,
        folder,
      ],
      env: { ...process.env, PATH: `${process.env["PATH"] ?? ""}:/usr/sbin:/sbin` },
      take(line) {
        take(campaign, line);
        return campaign.shouldGoOn();
      },
    });
  },
};

function take(campaign: Campaign, line: EnginePowerLine): void {
  if ("violation" in line) campaign.violation(line.violation);
  else if ("cut" in line) {
    campaign.count(`cuts of ${line.cut}`);
    if (line.isInRecovery) campaign.count("cuts during recovery");
    campaign.step();
  } else {
    campaign.count("acknowledged changes", line.acknowledged);
    campaign.count("bytes read back", line.readBytes);
  }
}
