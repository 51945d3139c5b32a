// Tests an operator's ordinary day: three nodes with TLS and real sign-in, and the jobs that come up.
import { join } from "node:path";
import { after, before, test } from "node:test";
import { scratchFolder } from "#testing/scratch-folder.ts";
import { wrongClock } from "./clock.ts";
import { mountSmallDisk, noInodes, SMALL_RESERVE_BYTES, unmountSmallDisk, whichFillsFirst } from "./disks.ts";
import { aFullQuota } from "./full-quota.ts";
import type { Job } from "./job.ts";
import { aDiskRestored, aNodeDies } from "./lost-disk.ts";
import { theMetaServerDies, theMetaServerIsBack } from "./metaserver-away.ts";
import { movingIn, restarts } from "./moving.ts";
import { newSecrets } from "./new-secrets.ts";
import { aFourthNode, oneRemoved, theFourthIsSeen } from "./nodes.ts";
import { quietPlease } from "./quiet.ts";
import { rolloutFails, rolloutKey, rolloutStopped } from "./rollout.ts";
import { Site } from "./site.ts";
import { slowYesterday } from "./slow-yesterday.ts";
import { uninstall } from "./uninstall.ts";
import { aUserLeaves } from "./user-leaves.ts";
import { whoDeletedThis } from "./who-deleted.ts";

/**
 * Groups of parallel lanes, each job after the one before. A silent server is an alert only after 30 s:
 * meanwhile the other lanes continue.
 */
const DAY: readonly (readonly (readonly Job[])[])[] = [
  [[aFourthNode], [aNodeDies]],
  [[theMetaServerDies]],
  [
    [aFullQuota, restarts, movingIn],
    [whichFillsFirst, noInodes],
    [theFourthIsSeen, quietPlease, slowYesterday],
  ],
  [[theMetaServerIsBack]],
  [[oneRemoved]],
  [[aDiskRestored]],
  [[whoDeletedThis], [aUserLeaves]],
  [[rolloutStopped, rolloutFails], [wrongClock]],
  [[newSecrets]],
  [[uninstall]],
];

const ends: (() => Promise<void>)[] = [];
let site: Site;
let skip: string | undefined;

before(async () => {
  const folder = scratchFolder("grove-e2e-");
  const small = join(folder, "small");
  skip = await mountSmallDisk(small);
  if (skip !== undefined) return;
  ends.push(async () => unmountSmallDisk(small));
  site = new Site(folder);
  ends.push(() => site.end());
  await site.begin();
  // Roots go to the node with the most room above the reserve: one after the other, so that each node gets a
  // user.
  const arrives = async (name: string): Promise<void> => {
    const { code, stderr } = await site.person(name).signIn();
    if (code !== 0) throw new Error(stderr);
    await site.person(name).ok("mkdir", "/kept");
  };
  await site.addNode("n3", join(small, "data"), ["-reserve", String(SMALL_RESERVE_BYTES)]);
  await arrives("dave");
  await site.addNode("n1", join(folder, "n1"), ["-reserve", "1GiB"]);
  await arrives("alice");
  await site.addNode("n2", join(folder, "n2"), ["-reserve", "1MiB"]);
  await arrives("bob");
  await site.openConsole(await rolloutKey(site, ends));
});

after(async () => {
  for (const end of ends.toReversed()) await end();
});

test("an operator's ordinary Tuesday", { timeout: 1_800_000, concurrency: true }, async (t) => {
  if (skip !== undefined) {
    t.skip(skip);
    return;
  }
  let failed: string | undefined;
  const one = ({ title, skip: cannot = false, run }: Job): Promise<void> =>
    t.test(title, { skip: failed === undefined ? cannot : `failed before: ${failed}` }, async () => {
      try {
        await run(site);
      } catch (error) {
        failed = title;
        throw error;
      }
    });
  for (const lanes of DAY) {
    await Promise.all(
      lanes.map(async (jobs) => {
        for (const job of jobs) await one(job);
      }),
    );
  }
});
