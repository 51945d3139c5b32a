// One process of a run in lanes: `node prove/lane.ts RIG SEED GOAL` prints lines of JSON until its input
// ends.
import { Campaign } from "./campaign.ts";
import type { LaneLine } from "./lanes.ts";
import { rigs } from "./rigs.ts";

const TELL_EVERY_MS = 500;

const [name, seed, goal] = process.argv.slice(2);
const rig = rigs.find((each) => each.name === name);
if (rig === undefined) throw new Error(`no such rig: ${name}`);

let counts: Record<string, number> = {};
let figures: Record<string, number> = {};
const say = (line: LaneLine): void => void process.stdout.write(`${JSON.stringify(line)}\n`);
const tell = (): void => {
  say({ counts, figures });
  counts = {};
  figures = {};
};
const timer = setInterval(tell, TELL_EVERY_MS);
// The parent process keeps the time: it closes the input when the goal is reached or the time is up.
let isWanted = true;
process.stdin.resume().once("end", () => {
  isWanted = false;
});
await Campaign.run(rig, {
  seed: Number(seed),
  goal: Number(goal),
  timeMs: Number.POSITIVE_INFINITY,
  isWanted: () => isWanted,
  listener: {
    count(what, by) {
      counts[what] = (counts[what] ?? 0) + by;
    },
    figure(what, value) {
      figures[what] = value;
    },
    violation: (violation) => say({ violation }),
  },
});
clearInterval(timer);
tell();
process.stdin.destroy();
