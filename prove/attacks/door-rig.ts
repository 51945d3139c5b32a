// Attacks two doors of a cluster, one plain and one over TLS, by HTTP/1.1, HTTP/2, XML and slow clients (F30).
//
// Each attack runs in short strokes from a process and an address of its own, with the app password of a user of
// its own. Beside it honest clients get and list on kept connections, by HTTP/1.1 and by HTTP/2. None of their
// calls may be refused, and their times are compared with those of calm phases of the same run. After each
// stroke both doors must serve new connections, and the memory of all servers is read ten times a second.
//
// It cannot see attacks from many networks at once, nor what a proxy before a door makes of them.
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { narrowedTo, type Rig } from "#prove/rig.ts";
import { DOOR_ATTACKS } from "./door-kinds.ts";
import type { DoorPlace } from "./door-place.ts";
import { startDoorScene } from "./door-scene.ts";
import { HonestSide } from "./honest-side.ts";
import { watchMemory } from "./memory-watch.ts";
import { startAttacker, strike } from "./orders.ts";

const KINDS = narrowedTo(Object.keys(DOOR_ATTACKS), (kind) => kind);
/** As many as ten seconds are enough for. */
const SHORT_KINDS = 5;
const STROKE_MS = 800;
/** What nobody takes piles up only as fast as it is sent. */
const PILING = "slow readers";
const PILING_MS = 10_000;
const LONGEST_STROKE_MS = 16 * STROKE_MS;
const SHORT_STROKE_MS = 200;
const CALM_MS = 250;
const SHORT_CALM_MS = 60;
const CALM_CALLS_AT_LEAST = 10;
const SLOWER_MAX = 5;
/** Below this the machine's own load decides. */
const FLOOR_MS = 40;
/** With one or two strokes of each kind there are few calls on a busy machine. */
const FLOOR_FROM: number = Object.keys(DOOR_ATTACKS).length * 2;
const SHORT_FLOOR_MS = 3_000;
const ATTACKER = fileURLToPath(new URL("door-attacker.ts", import.meta.url));

/** The rig. */
export const doorAttacks: Rig = {
  name: "door-attacks",
  figure: "F30",
  unit: "strokes",
  proves: "no flood and no slow client at a door takes another client's time or the door's memory",
  goal: KINDS.length * 10,
  shortGoal: Math.min(SHORT_KINDS, KINDS.length),
  plantedGoal: KINDS.length,
  async run(campaign) {
    const scene = await startDoorScene(campaign);
    const isShort = campaign.goal <= KINDS.length;
    const attacker = startAttacker(campaign, ATTACKER, isShort);
    const honest = new HonestSide(campaign, scene.tasks);
    let now = "";
    const peaks = watchMemory(
      campaign,
      () => now,
      () => scene.processes,
    );
    const kinds = isShort ? campaign.random.shuffled(KINDS) : KINDS;
    await honest.calmDown(CALM_CALLS_AT_LEAST);
    for (let turn = 0; campaign.shouldGoOn(); turn++) {
      const kind = kinds[turn % kinds.length] as string;
      honest.during("calm");
      await sleep(isShort ? SHORT_CALM_MS : CALM_MS);
      honest.during(kind);
      now = kind;
      const ms = kind === PILING ? PILING_MS : STROKE_MS;
      const order = { ...scene.place, kind, ms: isShort ? SHORT_STROKE_MS : ms };
      const complaint = await strike<DoorPlace>(campaign, attacker, order, LONGEST_STROKE_MS);
      if (complaint !== undefined) campaign.violation(`${kind}: ${complaint}`);
      honest.during("after");
      for (const refused of await honest.refusalsOf(kind)) campaign.violation(`${kind}: ${refused}`);
      for (const process of scene.processes)
        if (!process.isRunning()) campaign.violation(`a server has ended in ${kind}: ${process.log()}`);
      const trouble = await scene.letsIn();
      if (trouble !== undefined) campaign.violation(`after ${kind} a new client was not served: ${trouble}`);
      campaign.step();
    }
    peaks.tell();
    for (const kind of KINDS) {
      const tooMuch = peaks.tooMuchIn(kind);
      if (tooMuch !== undefined) campaign.violation(`${kind}: ${tooMuch}`);
    }
    await honest.end();
    for (const phase of ["calm", "after"])
      for (const refused of await honest.refusalsOf(phase)) campaign.violation(`${phase}: ${refused}`);
    honest.judge(campaign.goal < FLOOR_FROM ? SHORT_FLOOR_MS : FLOOR_MS, SLOWER_MAX);
  },
};
