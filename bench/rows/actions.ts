// Actions over SSH: Grove's overhead over a call of ssh, and a flood of output to the console.
import type { Json } from "#bench/child.ts";
import { type Lab, numberOf } from "#bench/lab.ts";
import type { Group } from "#bench/row.ts";

/** A share of 1 ÷ 1.3 of the rate is an overhead of 1.3 times. */
const OVERHEAD_MOST = 1.3;

export const actions: Group = {
  name: "actions",
  rows: () => [
    {
      name: "a no-op action on 50 nodes, 10 at a time",
      against: "bare multiplexed `ssh` calls",
      atLeast: Number((1 / OVERHEAD_MOST).toFixed(3)),
      rate: "nodes/s",
      async sides(lab) {
        const runs = await served(lab, 50);
        return {
          ours: async () => numberOf(await runs("action")),
          theirs: async () => numberOf(await runs("bare")),
        };
      },
    },
    {
      name: "100 MB of output of one action, highest memory of the console's part",
      unit: "MB",
      below: 200,
      async measure(lab) {
        const { memoryMb, seconds } = await flood(lab);
        return { value: memoryMb, detail: `in ${seconds.toFixed(1)} s` };
      },
    },
    {
      name: "100 MB of output of one action, event loop's delay, p99",
      unit: "ms",
      below: 20,
      async measure(lab) {
        const { delayMs, seconds } = await flood(lab);
        return { value: delayMs, detail: `in ${seconds.toFixed(1)} s` };
      },
    },
  ],
};

interface Flood {
  readonly memoryMb: number;
  readonly delayMs: number;
  readonly seconds: number;
}

/** Measured once for both rows, in a fresh process. */
function flood(lab: Lab): Promise<Flood> {
  return lab.once("flood", async () => (await (await served(lab, 1))("output")) as unknown as Flood);
}

function served(lab: Lab, targets: number): Promise<(task: string) => Promise<Json>> {
  return lab.once(`action runs ${targets}`, async () => {
    const program = lab.program("action-runs");
    await program.run("serve", targets);
    return (task) => program.run(task);
  });
}
