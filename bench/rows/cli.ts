// What a command costs before it does anything: start-up of the program, and the shortest useful command.
import { GROVE } from "#bench/node.ts";
import { costOfCommand } from "#bench/processor-time.ts";
import { amount } from "#bench/report.ts";
import type { Group } from "#bench/row.ts";

const RUNS = 20;

export const cli: Group = {
  name: "cli",
  rows: [
    {
      name: "`./grove --help`, from start to end",
      unit: "ms",
      below: 150,
      async measure() {
        await costOfCommand([GROVE, "--help"], { runs: 2 });
        const cost = await costOfCommand([GROVE, "--help"], { runs: RUNS });
        return {
          value: cost.wallMs,
          detail: `median of ${RUNS}; ${amount(cost.processorMs)} ms of processor time`,
        };
      },
    },
  ],
};
