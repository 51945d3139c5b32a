// Moves roots between two nodes under load, kills processes at random steps, and compares with what was
// acknowledged (F28).
//
// A MetaServer and two FileServers are processes; three users write, overwrite and remove small and large
// files all the time, each lane in a folder of its own, and follow their roots as clients do. All roots move
// at once, again and again. Either node, the MetaServer or all of them get SIGKILL at a random state of a
// move, which goes on, or is undone before its switch. After each round every file is read where the store
// has its root, byte by byte, and the counters are compared. Meanwhile both nodes are asked in turn: once the
// second has answered, the first must not answer again. At the end both folders are checked deeply.
//
// It cannot see: shares, trash and begun uploads (the tests of the storage), PostgreSQL, power cuts.
import { setTimeout as sleep } from "node:timers/promises";
import type { RootMove } from "#metaserver/directory/root-move.ts";
import type { Campaign } from "#prove/campaign.ts";
import type { Rig } from "#prove/rig.ts";
import type { SeededRandom } from "#prove/seeded-random.ts";
import { type MovesCluster, startMovesCluster } from "./cluster.ts";
import { Lane, RootUser } from "./lane.ts";

const USERS = ["alice@example.com", "bob@example.com", "carol@example.com"];
const LANES_PER_USER = 3;
/** Lanes rest, so that the processes that move have a share of the machine. */
const REST_MS = 30;
const LOOK_MS = 5;
/** A move that takes longer has got stuck: looks of nodes are seconds apart, and so are retries. */
const MOVE_MS = 120_000;
const PROBE_PAUSE_MS = 3;
const KILL_CHANCE = 0.6;
const UNDO_CHANCE = 0.2;

/** See above. */
export const moves: Rig = {
  name: "moves",
  figure: "F28",
  unit: "moves",
  goal: 300,
  shortGoal: 3,
  plantedGoal: 12,
  proves:
    "a root that moves under load and kills loses nothing that was acknowledged, and one node serves it",
  async run(campaign) {
    const cluster = await startMovesCluster(campaign);
    const users = USERS.map((email) => new RootUser(email, cluster.addresses));
    const lanes = users.flatMap((user, index) =>
      Array.from(
        { length: LANES_PER_USER },
        (_, lane) =>
          [user, new Lane(user, `/w${lane}`, campaign.random.fork(`lane ${index} ${lane}`))] as const,
      ),
    );
    campaign.atEnd(() => users.forEach((user) => user.close()));
    await Promise.all(lanes.map(([, lane]) => lane.step()));
    while (campaign.shouldGoOn()) {
      const stop = new AbortController();
      const working = Promise.all([
        ...lanes.map(async ([, lane]) => {
          while (!stop.signal.aborted) {
            await lane.step();
            await sleep(REST_MS);
          }
        }),
        ...users.map((user) => probe(campaign, user, stop.signal)),
      ]);
      const moving = moveAll(campaign, cluster).finally(() => stop.abort());
      await Promise.all([working, moving]);
      await compare(campaign, users, lanes);
    }
    for (const difference of await cluster.check()) campaign.violation(difference);
    campaign.count("acknowledged calls", sum(lanes.map(([, lane]) => lane.acknowledged)));
    campaign.count("acknowledged bytes", sum(lanes.map(([, lane]) => lane.acknowledgedBytes)));
  },
};

const sum = (numbers: readonly number[]): number => numbers.reduce((all, one) => all + one, 0);

/** Moves the roots of all users, with kills, until each move has ended. */
async function moveAll(campaign: Campaign, cluster: MovesCluster): Promise<void> {
  const { store } = cluster;
  const homes = new Map((await store.listRoots("")).map(({ owner, fsId }) => [owner, fsId]));
  const ends = USERS.map(async (owner) => {
    const target = homes.get(owner) === "n1" ? "n2" : "n1";
    await tried(() => store.beginMove({ owner, target }));
    const random = campaign.random.fork(`${owner} ${campaign.done}`);
    if (random.chance(UNDO_CHANCE)) {
      await sleep(random.below(3_000));
      const isUndone = await store.decideMove(owner, "undo").then(
        () => true,
        () => false,
      );
      if (isUndone) campaign.count("undone");
    }
    await reached(
      store,
      owner,
      (move) => move === undefined || (move.state !== "copying" && move.state !== "frozen"),
    );
    await store.decideMove(owner, "confirm").catch(() => undefined);
    await reached(store, owner, (move) => move === undefined);
    campaign.step();
  });
  const all = Promise.all(ends);
  const random = campaign.random.fork(`kill ${campaign.done}`);
  if (random.chance(KILL_CHANCE)) await killOnce(campaign, cluster, random);
  await all;
}

/** Kills some of the processes at a random state of some move, and starts them again. */
async function killOnce(
  campaign: Campaign,
  { posts, store }: MovesCluster,
  random: SeededRandom,
): Promise<void> {
  const owner = random.pick(USERS);
  const state = random.pick(["copying", "frozen", "switched", "confirmed"] as const);
  const order = ["copying", "frozen", "switched", "confirmed"];
  await reached(
    store,
    owner,
    (move) =>
      move === undefined || order.indexOf(move.state) >= order.indexOf(state) || move.state === "undone",
  );
  await sleep(random.chance(0.5) ? 0 : random.below(state === "copying" ? 2_000 : 100));
  const victims = random.pick([
    [posts.n1],
    [posts.n2],
    [posts.meta],
    [posts.n1, posts.n2],
    [posts.meta, posts.n1, posts.n2],
  ]);
  await Promise.all(victims.map((post) => post.end("SIGKILL")));
  // The MetaServer is first in the list where it is in it.
  for (const post of victims) await post.start();
  campaign.count("kills", victims.length);
}

async function reached(
  store: MovesCluster["store"],
  owner: string,
  is: (move: RootMove | undefined) => boolean,
): Promise<void> {
  const endMs = performance.now() + MOVE_MS;
  for (;;) {
    const move = (await tried(() => store.rootMoves())).find((one) => one.owner === owner);
    if (is(move)) return;
    if (performance.now() > endMs) {
      throw new Error(`the move of ${owner} does not go on: ${move?.state} ${move?.problem}`);
    }
    await sleep(LOOK_MS);
  }
}

/** Repeats what a busy or starting store refuses. */
async function tried<T>(act: () => Promise<T>): Promise<T> {
  const endMs = performance.now() + MOVE_MS;
  for (;;) {
    try {
      return await act();
    } catch (error) {
      if (performance.now() > endMs) throw error;
      await sleep(100);
    }
  }
}

/** Asks both nodes in turn: a root that has gone from the first to the second is not at the first again. */
async function probe(campaign: Campaign, user: RootUser, stop: AbortSignal): Promise<void> {
  const serves = (node: string): Promise<boolean> =>
    user
      .askAt(node, (client, options) => client.getAttr({ path: "/" }, { ...options, timeoutMs: 2_000 }))
      .then(
        () => true,
        () => false,
      );
  while (!stop.aborted) {
    for (const [one, other] of [
      ["n1", "n2"],
      ["n2", "n1"],
    ] as const) {
      if ((await serves(one)) && (await serves(other)) && (await serves(one))) {
        campaign.violation(`${one} serves the root of ${user.email} while ${other} does`);
      }
    }
    campaign.count("looks at both nodes");
    await sleep(PROBE_PAUSE_MS);
  }
}

async function compare(
  campaign: Campaign,
  users: readonly RootUser[],
  lanes: readonly (readonly [RootUser, Lane])[],
): Promise<void> {
  for (const user of users) {
    const own = lanes.filter(([owner]) => owner === user).map(([, lane]) => lane);
    for (const lane of own) {
      for (const problem of await lane.compare()) campaign.violation(`${user.email}: ${problem}`);
    }
    const { liveBytes } = await user.ask((client, options) => client.getQuota({}, options));
    const wanted = BigInt(sum(own.map((lane) => lane.liveBytes)));
    if (liveBytes !== wanted) {
      campaign.violation(`${user.email}: ${liveBytes} live bytes are counted, and there are ${wanted}`);
    }
  }
}
