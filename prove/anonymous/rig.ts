// Compares what a visitor sees of two consoles whose clusters differ only in users (F14: W-09, spec 5.8.4).
//
// Each pair of states is a step in the life of a pair of real consoles: all parts, routes, files and the live
// stream, on one clock. Both have the same machines with the same faults. Users, quotas, counts of damage,
// security events, homes, operators and their acts differ. After each step a visitor from another address
// asks every public route and some of the others. Status, headers and body of the answers are compared byte
// by byte, as are the frames of its socket with their numbers. The next states follow upon those before. The
// operators' views must differ, or the rig has shown nothing.
//
// It cannot see how long an answer takes, nor the effect of a malformed poll document (the rig `mutations`
// tries that). It does not compare before alerts are saved.
import { join } from "node:path";
import { ManualClock } from "#base/clock.ts";
import type { NodeReading } from "#console/cluster/cluster-state.ts";
import type { Campaign } from "#prove/campaign.ts";
import type { Rig } from "#prove/rig.ts";
import type { SeededRandom } from "#prove/seeded-random.ts";
import { Machine, someEvents, someUsers } from "./cluster-states.ts";
import { questionsOf } from "./questions.ts";
import { Twin } from "./twin.ts";

/** Pairs of states in the life of two consoles. */
const STEPS_OF_A_LIFE = 100;
/** Share of the operators' two views that must differ; without users on either side they are the same. */
const DIFFERENT_AT_LEAST = 0.8;

/** The rig. */
export const anonymous: Rig = {
  name: "anonymous",
  figure: "F14",
  unit: "pairs of states",
  proves: "what visitors of the console are told does not depend on users, to the byte",
  goal: 10_000,
  shortGoal: 60,
  lanes: 2,
  async run(campaign) {
    const folder = await campaign.folder("memory");
    for (let life = 0; campaign.shouldGoOn(); life++) await live(campaign, join(folder, String(life)));
    const pairs = campaign.done;
    if (campaign.countOf("pairs that operators can tell apart") < pairs * DIFFERENT_AT_LEAST)
      throw new Error("the pairs hardly differ: nothing was shown");
    for (const seen of [
      "alerts about users",
      "alerts that visitors see",
      "alerts that visitors see without their number",
      "alerts that visitors only count",
    ])
      if (pairs >= anonymous.shortGoal && campaign.countOf(seen) === 0)
        throw new Error(`there were no ${seen}`);
  },
};

async function live(campaign: Campaign, folder: string): Promise<void> {
  const random = campaign.random.fork(folder.slice(folder.lastIndexOf("/")));
  const clock = new ManualClock();
  const nodeIds = Array.from({ length: random.between(1, 4) }, (_, at) => `n${at + 1}`);
  const twins = await Promise.all(["a", "b"].map((name) => Twin.open(join(folder, name), clock, nodeIds)));
  const [a, b] = twins as [Twin, Twin];
  const machines = new Map(nodeIds.map((id) => [id, new Machine(random.fork(id))]));
  try {
    for (let step = 0; step < STEPS_OF_A_LIFE && campaign.shouldGoOn(); step++) {
      const seconds = random.chance(0.1) ? random.between(5, 120) : 5;
      // In one longer step, the console would drop the socket, which had no turn to answer its pings.
      for (let left = seconds; left > 0; left -= 5) {
        clock.advance(Math.min(5, left) * 1_000);
        await Promise.all([a.settled(), b.settled()]);
        await Promise.all([a.socketAnswers(), b.socketAnswers()]);
      }
      for (const [id, machine] of machines) {
        const part = machine.next(seconds);
        for (const twin of [a, b]) tell(twin, id, part, random, clock);
      }
      for (const twin of [a, b]) await disturb(twin, random);
      // If the clock went on while one of them still writes, the rig would cause a difference itself.
      await Promise.all([a.settled(), b.settled()]);
      clock.advance(2_500);
      await Promise.all([a.settled(), b.settled()]);
      await compare(campaign, [a, b], random);
      campaign.step();
    }
  } finally {
    await Promise.all([a.close(), b.close()]);
  }
}

function tell(
  twin: Twin,
  nodeId: string,
  part: ReturnType<Machine["next"]>,
  random: SeededRandom,
  clock: ManualClock,
): void {
  twin.polled(nodeId, readingOf(part, random), someEvents(random, clock.wallMs()));
}

function readingOf(part: ReturnType<Machine["next"]>, random: SeededRandom): NodeReading | undefined {
  if (part === undefined) return undefined;
  const { faults, ...machine } = part;
  return { ...machine, ...someUsers(random, faults) };
}

async function disturb(twin: Twin, random: SeededRandom): Promise<void> {
  for (let guesses = random.chance(0.1) ? random.below(20) : 0; guesses > 0; guesses--)
    twin.guess("203.0.113.9");
  if (!random.chance(0.2)) return;
  await twin.operate(
    random.pick(["sign in", "sign out", "acknowledge users' alerts", "resolve users' alerts"] as const),
  );
}

async function compare(
  campaign: Campaign,
  [a, b]: readonly [Twin, Twin],
  random: SeededRandom,
): Promise<void> {
  const [framesA, framesB] = [await a.visitorFrames(), await b.visitorFrames()];
  if (framesA !== framesB)
    campaign.violation(`the visitor's socket differs: ${difference(framesA, framesB)}`);
  for (const question of questionsOf(random)) {
    const [answerA, answerB] = [await a.visitorAnswer(question), await b.visitorAnswer(question)];
    campaign.count("answers compared");
    if (answerA !== answerB)
      campaign.violation(`${question.method} ${question.url} differs: ${difference(answerA, answerB)}`);
    if (question.url === "/api/alerts")
      campaign.count("alerts that visitors see", answerA.split('"id":').length - 1);
    if (question.url === "/api/alerts")
      campaign.count(
        "alerts that visitors see without their number",
        answerA.split('"type":"corruption"').length - 1,
      );
    if (question.url === "/api/alerts/summary")
      campaign.count("alerts that visitors only count", Number(/"for_operators":(\d+)/.exec(answerA)?.[1]));
  }
  const [seenA, seenB] = [await a.operatorCluster(), await b.operatorCluster()];
  if (seenA !== seenB) campaign.count("pairs that operators can tell apart");
  const alerts = await a.operatorAlerts();
  campaign.count("alerts about users", alerts.filter(({ type }) => type === "quota_exceeded").length);
}

const AROUND = 160;

/** Returns the first difference between two texts, with the text around it. */
function difference(a: string, b: string): string {
  let at = 0;
  while (at < a.length && a[at] === b[at]) at++;
  const from = Math.max(0, at - AROUND);
  return `…${a.slice(from, at + AROUND)}… against …${b.slice(from, at + AROUND)}…`;
}
