// Sign-in peaks: 2,000 users within a minute from fifty addresses, and 200 more behind one address (F26).
//
// Each asks the MetaServer where their root is, with an ID token that it must have the provider check, then
// signs in to that node and reads the root's attributes. Users behind the one address keep their connections.
// None may be refused: the limits of unproven callers must let these through. A user who gets "busy" from the
// server or the provider tries again, as clients do; a rate limit or a closed connection counts as a refusal.
//
// It cannot see how long users wait: on a busy machine that is the machine's.
//
//   npm run prove -- peaks --no-planted
import { setTimeout as sleep } from "node:timers/promises";
import type { Campaign } from "#prove/campaign.ts";
import { FrontCaller } from "#prove/front-caller.ts";
import type { Rig } from "#prove/rig.ts";
import { FILES, META, sessionTokenIn } from "./unproven-place.ts";
import { startUnprovenScene, type UnprovenScene } from "./unproven-scene.ts";

const ADDRESSES = 50;
const OF_AN_ADDRESS = 40;
const BEHIND_ONE = 200;
/** In the short form: one address, with more users behind it than one user could have calls. */
const SHORT_BEHIND_ONE = 70;
const MINUTE_MS = 55_000;
const SHORT_MS = 2_000;
/** Refusals that do not depend on the caller. */
const BUSY = /OVERLOADED|IDP_UNAVAILABLE|STORE_UNAVAILABLE|STARTING|not answered in time|lets nobody in/;
const AGAIN_MAX = 8;
const AGAIN_MS = 2_000;
const NAT = "127.89.0.1";
const NOTHING = new Uint8Array();

/** See above. */
export const peaks: Rig = {
  name: "peaks",
  figure: "F26",
  unit: "sign-ins",
  proves:
    "two thousand people who sign in within a minute, and two hundred behind one address, are all let in",
  goal: ADDRESSES * OF_AN_ADDRESS + BEHIND_ONE,
  shortGoal: OF_AN_ADDRESS + SHORT_BEHIND_ONE,
  async run(campaign) {
    const scene = await startUnprovenScene(campaign);
    const isShort = campaign.goal <= peaks.shortGoal;
    const from = Array.from({ length: isShort ? 1 : ADDRESSES }, (_, at) => `127.88.${at}.5`);
    const addresses = [
      ...from.flatMap((address) => Array.from({ length: OF_AN_ADDRESS }, () => address)),
      ...Array.from({ length: isShort ? SHORT_BEHIND_ONE : BEHIND_ONE }, () => NAT),
    ];
    const refused = new Map<string, number>();
    const spreadMs = isShort ? SHORT_MS : MINUTE_MS;
    const startedMs = performance.now();
    await Promise.all(
      addresses.map(async (address, at) => {
        await sleep(campaign.random.fork(`arrival ${at}`).below(spreadMs));
        let why = await signsIn(campaign, scene, address, `person${at}`);
        for (let again = 0; again < AGAIN_MAX && why !== undefined && BUSY.test(why); again++) {
          campaign.count("came again");
          await sleep(AGAIN_MS);
          why = await signsIn(campaign, scene, address, `person${at}`);
        }
        if (why !== undefined) refused.set(why, (refused.get(why) ?? 0) + 1);
        campaign.step();
      }),
    );
    campaign.figure("seconds until all were in", Math.round((performance.now() - startedMs) / 100) / 10);
    for (const [why, count] of refused)
      campaign.violation(`${count} of ${addresses.length} people were not let in: ${why}`);
  },
};

/** Signs one user in; returns undefined, or the refusing server and its reason. */
async function signsIn(
  campaign: Campaign,
  scene: UnprovenScene,
  address: string,
  name: string,
): Promise<string | undefined> {
  const who = address === NAT ? "from behind one address" : "from an address of few";
  const token = scene.tokenOf(name);
  try {
    const meta = await FrontCaller.connect(scene.meta.door, address);
    const roots = await meta.call(`${META}GetRoots`, NOTHING, { token });
    meta.close();
    if (roots.code !== 0) return `${who}, by the MetaServer: ${roots.reason}`;
    const node = await FrontCaller.connect(scene.node.door, address);
    if (address === NAT) campaign.atEnd(() => node.close());
    const signedIn = await node.call(`${FILES}RegisterClient`, NOTHING, { token });
    if (signedIn.code !== 0) return `${who}, by the node: ${signedIn.reason}`;
    const looked = await node.call(`${FILES}GetAttr`, ROOT, { token: sessionTokenIn(signedIn.body) });
    if (address !== NAT) node.close();
    return looked.code === 0 ? undefined : `${who}, when they looked: ${looked.reason}`;
  } catch (error) {
    return `${who}: ${String(error)}`;
  }
}

/** GetAttr of "/". */
const ROOT: Buffer = Buffer.from([0x12, 1, 0x2f]);
