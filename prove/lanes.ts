// A run in several processes side by side: what they count is one run's, and they share its goal and its time.
import { fileURLToPath } from "node:url";
import type { Attack, Campaign } from "./campaign.ts";
import { runLinePart } from "./line-process.ts";
import type { Rig } from "./rig.ts";

const LANE = fileURLToPath(new URL("lane.ts", import.meta.url));

/** What a lane says: what was counted since its last line, figures as they are now, and violations as they are seen. */
export interface LaneLine {
  readonly counts?: Readonly<Record<string, number>>;
  readonly figures?: Readonly<Record<string, number>>;
  readonly violation?: string;
}

/** The rig as it is, or its run in so many processes as it asks for. */
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
