// Runs a rig in several processes side by side, with one count, one goal and one time limit.
import { fileURLToPath } from "node:url";
import type { Attack, Campaign } from "./campaign.ts";
import { runLinePart } from "./line-process.ts";
import type { Rig } from "./rig.ts";

const LANE = fileURLToPath(new URL("lane.ts", import.meta.url));

/** A line of a lane: counts since its last line, current figures, and violations. */
export interface LaneLine {
  readonly counts?: Readonly<Record<string, number>>;
  readonly figures?: Readonly<Record<string, number>>;
  readonly violation?: string;
}

/** Returns the rig itself, or its run in as many processes as it asks for. */
export function inLanes(rig: Rig): Attack {
  const lanes = rig.lanes ?? 1;
  if (lanes === 1) return rig;
  const { name, figure, unit } = rig;
  return {
    name,
    figure,
    unit,
    async run(campaign) {
      const parts = Array.from({ length: lanes }, (_, lane) => runLane(rig, campaign, lane));
      for (const end of await Promise.allSettled(parts)) if (end.status === "rejected") throw end.reason;
    },
  };
}

function runLane(rig: Rig, campaign: Campaign, lane: number): Promise<void> {
  const seed = campaign.random.fork(`lane ${lane}`).below(2 ** 31);
  return runLinePart<LaneLine>(campaign, {
    name: `lane ${lane} of ${rig.name}`,
    command: [process.execPath, LANE, rig.name, `${seed}`, `${campaign.goal}`],
    take({ counts = {}, figures = {}, violation }) {
      for (const [what, by] of Object.entries(counts)) {
        if (what === rig.unit) campaign.step(by);
        else campaign.count(what, by);
      }
      for (const [what, value] of Object.entries(figures))
        campaign.figure(what, Math.max(value, campaign.countOf(what)));
      if (violation !== undefined) campaign.violation(violation);
      return campaign.shouldGoOn();
    },
  });
}
