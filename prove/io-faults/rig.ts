// Gives each storage call of changes and of recoveries each kind of fault, once or for ever, and looks for
// silent losses (F6).
//
// A process opens a store, is traced, and makes changes of several kinds one after the other. One of its
// calls on files of the store fails with EIO, ENOSPC, EROFS or EDQUOT, does only half of its work, or takes
// three seconds. Either that call alone fails, or every later call of the same name too. Other processes are
// attacked while they open a store after a crash.
//
// Then the store is opened without any fault. Every acknowledged change must be there byte for byte, every
// refused one must not be, and the deep check must find neither faults nor leftovers. After a failed flush
// nothing may be acknowledged, the failure must be reported, and the file may not be flushed again. Where a
// read of a chunk failed, its file may be condemned with a report, and the repair must find that all its
// bytes are right. Every kind of call meets every kind of fault before any does so a second time.
//
// It cannot see what a disk does after a call that succeeded, faults in the files of audit log, leases and
// certificates, and more than six delays in one process.
import { join } from "node:path";
import { OPERATIONS, type Operation } from "#prove/calls/operations.ts";
import { Scene } from "#prove/calls/scene.ts";
import { runSubject } from "#prove/calls/subject.ts";
import { lacksTracing } from "#prove/calls/traced-process.ts";
import type { Campaign } from "#prove/campaign.ts";
import { compiledIn } from "#prove/launcher.ts";
import { narrowedTo, type Rig } from "#prove/rig.ts";
import { attackFault } from "./attack.ts";
import { type FaultPoint, faultPoints, ordered } from "./faults.ts";

const LANES = 2;
/** A delayed process sleeps. */
const DELAY_LANES = 6;
const GROUP = 4;
/** They wait or end by themselves, and stand alone. */
const LEFT_OUT: ReadonlySet<string> = new Set(["idle", "close", "copy-large-folder"]);

/** See above. */
export const ioFaults: Rig = {
  name: "io-faults",
  figure: "F6",
  unit: "faults",
  goal: 1_000,
  shortGoal: 4,
  plantedGoal: 12,
  proves:
    "a storage call that fails, falls short or hangs loses nothing without a word, and no failed flush is tried again",
  lacks: lacksTracing,
  run: async (campaign) => {
    const isWhole = campaign.goal >= ioFaults.goal;
    const folder = await campaign.folder("memory");
    const compileCache = compiledIn(join(folder, "compiled"));
    const operations = narrowedTo(
      OPERATIONS.filter(({ name }) => !LEFT_OUT.has(name)),
      ({ name }) => name,
    );
    const groups = groupsOf(operations, campaign, isWhole);
    const points: FaultPoint[] = [];
    await inLanes(campaign, LANES, groups, async (group) => {
      const settings = { compileCache, withReads: true };
      const scene = await Scene.make(join(folder, group.map(({ name }) => name).join("+")), group, settings);
      points.push(...faultPoints(scene, "operate", scene.reference.calls));
      const directory = await scene.copyOfLeft();
      const plan = { directory, withReads: true, withListings: true };
      const { calls } = await runSubject({ mode: "open", operations: [], plan, compileCache });
      points.push(...faultPoints(scene, "open", calls));
    });
    campaign.figure("possible faults", points.length);
    const order = ordered(
      campaign.random,
      narrowedTo(points, ({ call }) => call.name),
    );
    const slow = order.filter(({ kind }) => kind === "delay");
    const quick = order.filter(({ kind }) => kind !== "delay");
    await Promise.all([
      // A sixth of the faults are delays, as there are six kinds.
      attackAll(campaign, compileCache, DELAY_LANES, slow.slice(0, Math.ceil(campaign.goal / 6))),
      attackAll(campaign, compileCache, LANES, quick),
    ]);
  },
};

/** All in a whole campaign; in a short one four of them. */
function groupsOf(
  operations: readonly Operation[],
  campaign: Campaign,
  isWhole: boolean,
): readonly (readonly Operation[])[] {
  const drawn = operations
    .map((operation) => ({ operation, at: campaign.random.next() }))
    .sort((a, b) => a.at - b.at)
    .map(({ operation }) => operation);
  const groups: Operation[][] = [];
  for (let at = 0; at < drawn.length; at += GROUP) groups.push(drawn.slice(at, at + GROUP));
  return isWhole ? groups : groups.slice(0, 1);
}

async function attackAll(
  campaign: Campaign,
  compileCache: string,
  lanes: number,
  points: readonly FaultPoint[],
): Promise<void> {
  await inLanes(campaign, lanes, points, async (point) => {
    const { isMade, isRefused, isCondemned, problems } = await attackFault(point, compileCache);
    for (const problem of problems) campaign.violation(problem);
    if (!isMade) return;
    campaign.step();
    campaign.count(`${point.kind} ${point.forever ? "for ever" : "once"}`);
    if (isCondemned) campaign.count("condemned and repaired");
    if (isRefused) campaign.count("refused and said so");
  });
}

async function inLanes<Item>(
  campaign: Campaign,
  lanes: number,
  items: readonly Item[],
  work: (item: Item) => Promise<void>,
): Promise<void> {
  let next = 0;
  const lane = async (): Promise<void> => {
    for (let item = items[next++]; item !== undefined && campaign.shouldGoOn(); item = items[next++])
      await work(item);
  };
  await Promise.all(Array.from({ length: lanes }, lane));
}
