// Kills FileServers of one shared engine, its database and its store under load, and compares what other
// FileServers answer with what was acknowledged (F27).
//
// Everything is real: a MetaServer, two or three FileServers, PostgreSQL with a synchronous standby, an object store.
// Six lanes of three users send the mixed load of F1 to whoever serves their roots. In turn a FileServer gets
// SIGKILL, the primary dies and its standby is promoted, the store dies and comes back, a node's way to the
// database is held until others have its roots and then lets through what was on its way, a process stands
// still beyond its lease and goes on, and connections break for a moment. Leases last 2 seconds, now and then
// 10. After each of these, all lanes are compared byte by byte where their roots are served now, counters as
// well, and the rows are checked by the rules of `grove fsck`; then they work on, while what was struck comes
// back, and are compared again. A node whose roots others have taken is asked, and must not answer. At the end
// everything that waits for removal is made eight days old and swept, `grove fsck -list` compares the whole
// bucket, and every byte is read once more.
//
// It cannot see: an asynchronous standby, a store that loses what it has acknowledged, clocks, PgBouncer.
import type { Campaign } from "#prove/campaign.ts";
import { narrowedTo, type Rig } from "#prove/rig.ts";
import { lacksEngine } from "#prove/rig-engine.ts";
import type { SeededRandom } from "#prove/seeded-random.ts";
import type { Shift } from "./shift.ts";
import { Site } from "./site.ts";
import { STRIKES, type Strike, type StrikeKind } from "./strikes.ts";
import { sweepAll } from "./sweeps.ts";

/** The order of strikes; the first three are the short form's. */
const ORDER: readonly StrikeKind[] = [
  ...(["fileserver", "database", "store", "cut"] as const),
  ...(["fileserver", "hiccup", "still", "fileserver"] as const),
];
const ACKNOWLEDGEMENTS_MAX = 40;
/** Side by side in a long run: while one waits for a lease to end, the other uses the cores. */
const SITES = 2;
/** Runs of more strikes have more nodes, and leases of the usual length among the short ones. */
const LONG_RUN = 20;
const LONG_LEASE_CHANCE = 0.08;
const LONG_LEASE_S = 10;
const SHORT_LEASE_S = 2;
/** Until others serve the roots of a node that ended. */
const TAKEN_WITHIN_MS = 15_000;
/** In the short form, beside other tests on the same cores; the figures tell how long it took. */
const TAKEN_WITHIN_BUSY_MS = 40_000;

/** See above. */
export const engineKills: Rig = {
  name: "engine-kills",
  figure: "F27",
  unit: "kills",
  goal: 1_000,
  shortGoal: 3,
  plantedGoal: 8,
  proves: "whatever dies of a shared engine, nothing that was acknowledged is lost, and others serve it soon",
  lacks: lacksEngine,
  async run(campaign) {
    const sites = campaign.goal > LONG_RUN ? SITES : 1;
    await Promise.all(Array.from({ length: sites }, (_, index) => attack(campaign, index)));
  },
};

async function attack(campaign: Campaign, index: number): Promise<void> {
  const isLong = campaign.goal > LONG_RUN;
  const random = campaign.random.fork(`site ${index}`);
  const site = await Site.start(campaign, random, isLong ? 3 : 2);
  const order = narrowedTo(ORDER, (kind) => kind);
  let isWell = await site.settle("at the start");
  for (let round = 0; isWell && campaign.shouldGoOn(); round++) {
    const kind = order[(round + index) % order.length] as StrikeKind;
    const own = random.fork(`round ${round}`);
    if (isLong) {
      for (const post of site.posts) {
        post.leaseSeconds = own.chance(LONG_LEASE_CHANCE) ? LONG_LEASE_S : SHORT_LEASE_S;
      }
    }
    isWell = await strikeOnce(site, kind, own);
    campaign.count(kind);
    campaign.step();
  }
  campaign.count("leases that ended by themselves", sum(site.posts.map((post) => post.ends.leases)));
  // What is wrong stays wrong, and sweeps would only hide it.
  if (isWell) await endWell(campaign, site);
}

/** Sweeps, compares the bucket, and reads every byte once more. */
async function endWell(campaign: Campaign, site: Site): Promise<void> {
  const problems = await sweepAll(site);
  // A busy machine must not end a lease in the middle of the last reads.
  for (const post of site.posts) post.leaseSeconds = LONG_LEASE_S;
  await Promise.all(site.posts.map((post) => post.begin()));
  await site.settle("after the sweeps");
  for (const person of site.people) problems.push(...(await person.readAll()));
  for (const problem of problems) campaign.violation(`after the sweeps: ${problem}`);
  const lanes = site.people.flatMap((person) => person.lanes);
  campaign.count("acknowledged calls", sum(lanes.map((lane) => lane.acknowledged)));
  campaign.count("bytes read back", sum(lanes.map((lane) => lane.readBytes)));
  campaign.count("swept sites");
}

const sum = (numbers: readonly number[]): number => numbers.reduce((all, one) => all + one, 0);

/** Strikes under load, compares, works on, heals, and compares again; false when something is wrong. */
async function strikeOnce(site: Site, kind: StrikeKind, random: SeededRandom): Promise<boolean> {
  const { campaign, people } = site;
  const when = `${kind}, after ${campaign.done} kills`;
  await Promise.all(site.posts.map((post) => post.serves()));
  const before = site.work();
  const problems = await awaited(before, 1 + random.below(ACKNOWLEDGEMENTS_MAX));
  const strike = await STRIKES[kind](site, random.pick(people).at, random);
  problems.push(...(await takeOver(site, strike, before)), ...(await before.end()));
  for (const problem of problems) campaign.violation(`${when}: ${problem}`);
  const isWell = (await site.settle(when)) && problems.length === 0;
  if (!isWell) {
    await strike.heal();
    return false;
  }
  const after = site.work();
  const later = await awaited(after, 1 + random.below(ACKNOWLEDGEMENTS_MAX));
  later.push(...(await strike.heal()), ...(await after.end()));
  for (const problem of later) campaign.violation(`${when}, healed: ${problem}`);
  return (await site.settle(`${when}, healed`)) && later.length === 0;
}

async function awaited(shift: Shift, acknowledgements: number): Promise<string[]> {
  return (await shift.acknowledges(acknowledgements)) ? [] : ["no call is acknowledged any more"];
}

/** Waits until all roots are served, those of a victim by others, and measures how long that took. */
async function takeOver(
  { campaign, people }: Site,
  { victim, sinceMs }: Strike,
  shift: Shift,
): Promise<string[]> {
  const passed = (): number => Math.round(performance.now() - sinceMs);
  const longest = (what: string): void => campaign.figure(what, Math.max(campaign.countOf(what), passed()));
  if (victim === undefined) {
    const problems = await awaited(shift, 1);
    longest("longest until the next acknowledgement, ms");
    return problems;
  }
  const problems: string[] = [];
  await Promise.all(
    people.map(async (person) => {
      const isHurt = person.at === victim;
      await person.find(victim);
      if (!isHurt) return;
      const { leaseSeconds } = victim;
      longest(`longest take-over with a lease of ${leaseSeconds} s, ms`);
      campaign.count("roots taken over");
      if (passed() > (campaign.goal > LONG_RUN ? TAKEN_WITHIN_MS : TAKEN_WITHIN_BUSY_MS)) {
        problems.push(`the root of ${person.email} was served after ${passed()} ms`);
      }
    }),
  );
  // What hangs at the victim has ended with its hold on the root.
  for (const person of people) person.leave(victim);
  return problems;
}
