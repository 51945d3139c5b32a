// How long one session check takes when the table is full.
import { numberOf } from "#bench/lab.ts";
import { median, ROUNDS } from "#bench/measure.ts";
import type { Group } from "#bench/row.ts";

const SESSIONS = 10_000;
const PER_USER = 5;
const CHECKS_PER_ROUND = 200_000;

export const sessions: Group = {
  name: "sessions",
  rows: () => [
    {
      name: "session check, 10,000 live sessions, p99 inside the process",
      unit: "µs",
      below: 50,
      async measure(lab) {
        const program = lab.program("session-check");
        const open = await program.run("fill", { sessions: SESSIONS, perUser: PER_USER });
        if (open !== SESSIONS) throw new Error(`${String(open)} sessions are open`);
        await program.run("checkP99", CHECKS_PER_ROUND);
        const rounds: number[] = [];
        while (rounds.length < ROUNDS) rounds.push(numberOf(await program.run("checkP99", CHECKS_PER_ROUND)));
        return {
          value: median(rounds),
          detail: `p99 of ${CHECKS_PER_ROUND.toLocaleString("en-US")} checks, ${ROUNDS} times`,
        };
      },
    },
  ],
};
