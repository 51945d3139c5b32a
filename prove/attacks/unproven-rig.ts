// Unproven callers against a FileServer and a cluster with TLS: memory, time and places (F26).
//
// Each kind of call or connection is made in strokes by a process of low priority, from up to 64 addresses of
// eight networks, none of which is an honest client's. Meanwhile signed-in users read, ask, and write
// megabytes, new ones sign in, and a node's certificate sends heartbeats beside those of two real nodes. None
// of them may be refused, and the users' times are compared with calm phases of the same run. A server that
// ends is started again, so that one kind hides no other.
//
// It cannot see attacks with more processors than the server has, nor delays and losses of a real network.
//
//   npm run prove -- unproven --short --no-planted              some kinds, drawn at random, then the siege,
//                                                               in seconds
//   npm run prove -- unproven --short --goal 16 --no-planted    each kind once, in seconds
//   npm run prove -- unproven --no-planted                      each kind four times for five seconds
//   GROVE_PROVE_NARROW="refusals,idle connections" npm run prove -- unproven …  only these
//   npm run prove -- siege --no-planted --minutes 6             280 seconds of the costliest kinds at once,
//                                                               from 64 addresses
//   npm run prove -- siege --no-planted --goal 60               a minute of them
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import type { Campaign } from "#prove/campaign.ts";
import { narrowedTo, type Rig } from "#prove/rig.ts";
import { HonestSide } from "./honest-side.ts";
import { holdsTooMuch, watchMemory } from "./memory-watch.ts";
import { type OrderAt, startAttacker, strike } from "./orders.ts";
import { UNPROVEN_KINDS } from "./unproven-kinds.ts";
import { addressesOf, SIEGE, type UnprovenPlace } from "./unproven-place.ts";
import { nodesLive, revive, startUnprovenScene, type UnprovenScene } from "./unproven-scene.ts";
import { honestTasks } from "./unproven-watch.ts";

const KINDS = narrowedTo(Object.keys(UNPROVEN_KINDS), (kind) => kind);
/** As many as ten seconds are enough for, the siege being the last: one cluster is started for all. */
const SHORT_KINDS = 4;
const ADDRESSES = 64;
const SHORT_ADDRESSES = 16;
const STROKE_MS = 5_000;
const SHORT_STROKE_MS = 600;
const SHORT_SIEGE_MS = 1_200;
const LONGEST_STROKE_MS = 80_000;
/** Calls of each honest task that a stroke has time for at least. */
const ROUNDS_MET = 2;
const BETWEEN_MS = 300;
/** Calls of each honest task before the first stroke. */
const CALM_CALLS = 200;
const CALM_CALLS_SIEGE = 100;
const SHORT_CALM_CALLS = 10;
const SLOWER_MAX = 5;
/** Below this the machine's own load decides. */
const FLOOR_MS = 20;
/** Floor for strokes of less than a second, which see few calls. */
const SHORT_FLOOR_MS = 1_500;
/**
 * Questions to the provider about unknown tokens of one address: twice the burst that it may cause, and some
 * more per second.
 */
const ASKED_AT_ONCE = 120;
const ASKED_PER_SECOND = 20;
/** Bytes of log that one stroke may cause in a server. */
const LOG_MAX_BYTES = 1_048_576;
const SIEGE_SECONDS = 280;
const ATTACKER = fileURLToPath(new URL("unproven-attacker.ts", import.meta.url));

/** Runs each attack by itself. */
export const unproven: Rig = {
  name: "unproven",
  figure: "F26",
  unit: "strokes",
  proves: "callers who have proven nothing take no memory, time or places that others need",
  goal: KINDS.length * 4,
  shortGoal: Math.min(SHORT_KINDS, KINDS.length),
  plantedGoal: KINDS.length,
  async run(campaign) {
    const isShort = campaign.goal <= KINDS.length;
    const kinds = isShort ? drawn(campaign) : KINDS;
    const calmCalls = isShort ? SHORT_CALM_CALLS : CALM_CALLS;
    const stage = await setUp(campaign, isShort, { calmCalls, isPaced: isShort });
    for (let turn = 0; campaign.shouldGoOn(); turn++) {
      const kind = kinds[turn % kinds.length] as string;
      const shortMs = kind === SIEGE ? SHORT_SIEGE_MS : SHORT_STROKE_MS;
      await stage.stroke({ kind, isShort, ms: isShort ? shortMs : STROKE_MS });
      campaign.step();
    }
    await stage.judge(isShort ? SHORT_FLOOR_MS : FLOOR_MS);
  },
};

/** As many kinds as the goal in an order of the seed's; the siege comes last, also where not all have a turn. */
function drawn(campaign: Campaign): string[] {
  const alone = campaign.random.shuffled(KINDS.filter((kind) => kind !== SIEGE));
  return KINDS.includes(SIEGE) ? [...alone.slice(0, campaign.goal - 1), SIEGE] : alone;
}

/**
 * Runs attacks by bodies, watchers and idle connections at once without a pause: `--minutes` bounds the time,
 * `--goal` the seconds.
 */
export const siege: Rig = {
  name: "siege",
  figure: "F26",
  unit: "seconds",
  proves:
    "all that callers without any proof can do, at once, ends no server, stops no node and slows nobody down",
  goal: SIEGE_SECONDS,
  shortGoal: 1,
  async run(campaign) {
    const isShort = campaign.goal <= siege.shortGoal;
    const calmCalls = isShort ? SHORT_CALM_CALLS : CALM_CALLS_SIEGE;
    const stage = await setUp(campaign, isShort, { calmCalls, isPaced: isShort });
    const seconds = setInterval(() => stage.isStriking() && campaign.step(), 1_000);
    campaign.atEnd(() => clearInterval(seconds));
    while (campaign.shouldGoOn()) {
      const ms = Math.min(LONGEST_STROKE_MS / 8, (campaign.goal - campaign.done) * 1_000 + 200);
      await stage.stroke({ kind: SIEGE, isShort, ms });
    }
    await stage.judge(isShort ? SHORT_FLOOR_MS : FLOOR_MS);
  },
};

/** A scene, the honest clients in it, and the attacker. */
interface Stage {
  isStriking(): boolean;
  stroke(what: { readonly kind: string; readonly isShort: boolean; readonly ms: number }): Promise<void>;
  judge(floorMs: number): Promise<void>;
}

/** Honest clients that are paced leave attackers and servers the processor time of a short stroke. */
async function setUp(
  campaign: Campaign,
  isShort: boolean,
  { calmCalls, isPaced }: { readonly calmCalls: number; readonly isPaced: boolean },
): Promise<Stage> {
  const scene = await startUnprovenScene(campaign);
  const attacker = startAttacker(campaign, ATTACKER, isShort);
  const honest = new HonestSide(campaign, await honestTasks(campaign, scene, isPaced), isPaced);
  let now = "";
  const peaks = watchMemory(
    campaign,
    () => now,
    () => scene.servers.map(({ process }) => process),
  );
  await honest.calmDown(calmCalls);
  return {
    isStriking: () => now !== "",
    async stroke({ kind, isShort, ms }) {
      const addresses = addressesOf(isShort ? SHORT_ADDRESSES : ADDRESSES);
      const { files, node, meta } = scene;
      const order: OrderAt<UnprovenPlace> & { kind: string; ms: number } = {
        files: files.door,
        node: node.door,
        meta: meta.door,
        addresses,
        isShort,
        kind,
        // On a slow machine longer, so that each honest task meets it.
        ms: Math.max(ms, ROUNDS_MET * honest.longestRoundMs()),
      };
      const found = observe(scene);
      now = kind;
      honest.during(kind);
      const startedMs = performance.now();
      const complaint = await strike<UnprovenPlace>(campaign, attacker, order, LONGEST_STROKE_MS);
      const seconds = (performance.now() - startedMs) / 1_000;
      honest.during("after");
      const wrong = [complaint, ...wrongAfter(campaign, scene, found, seconds)];
      wrong.push(...(await honest.refusalsOf(kind)), peaks.tooMuchIn(kind));
      const { ended, isChanged } = await revive(scene, holdsTooMuch);
      wrong.push(...ended);
      const told = wrong.filter((each) => each !== undefined);
      if (told.length > 0) campaign.violation(`${kind}: ${told.join("; ")}`);
      if (isChanged) {
        await nodesLive(scene);
        await honest.renew();
      }
      now = "";
      if (kind !== SIEGE) await sleep(BETWEEN_MS);
    },
    async judge(floorMs) {
      await honest.end();
      peaks.tell();
      honest.judge(floorMs, SLOWER_MAX);
      const live = await scene.liveNodes();
      if (live !== 2) campaign.violation(`the MetaServer takes ${live} of 2 nodes for alive`);
    },
  };
}

/** Counts before and after a stroke. */
interface Observed {
  readonly failedHeartbeats: number;
  readonly printed: readonly number[];
  readonly asked: number;
}

function observe(scene: UnprovenScene): Observed {
  const [from = ""] = addressesOf(1);
  return {
    failedHeartbeats: scene.failedHeartbeats(),
    printed: scene.servers.map((server) => server.printed()),
    asked: scene.askedAbout(`unknown-${from}-`),
  };
}

/** Returns what a stroke must not have caused, by the servers' and the provider's counts. */
function wrongAfter(campaign: Campaign, scene: UnprovenScene, found: Observed, seconds: number): string[] {
  const wrong: string[] = [];
  const { failedHeartbeats, printed, asked } = observe(scene);
  if (failedHeartbeats > found.failedHeartbeats) wrong.push("a node could not reach the MetaServer");
  const printedMax = LOG_MAX_BYTES * Math.max(1, seconds / (STROKE_MS / 1_000));
  for (const [at, server] of scene.servers.entries()) {
    const bytes = (printed[at] ?? 0) - (found.printed[at] ?? 0);
    if (bytes > printedMax) wrong.push(`the ${server.name} wrote ${bytes} bytes of log`);
  }
  const questions = asked - found.asked;
  campaign.count("questions about unknown tokens", questions);
  const questionsMax = Math.round(ASKED_AT_ONCE + ASKED_PER_SECOND * seconds);
  if (questions > questionsMax)
    wrong.push(
      `${questions} unknown tokens of one address went on to the provider, of ${questionsMax} that may`,
    );
  return wrong;
}
