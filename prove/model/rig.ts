// Compares random calls of many clients with a model of the FileServer in memory, over gRPC, on a server of
// its own (F8).
//
// Lanes work at the same time. In most of them one root's owner and two sharees make calls one after the
// other. They create, upload, write, truncate, rename, copy, trash, restore, purge, delete, share, unshare,
// set quotas near the bytes used, list page by page, read and download. Every field of every answer is
// compared with the model's, ids, versions and times included as far as they must stay or change. In the
// other lanes several clients call at once on one root, and some order of their calls must explain all
// answers. After 300 steps everything is compared, down to each byte, and a fresh root is begun. A difference
// is repeated on fresh roots with fewer and fewer calls; the report has the shortest case that still fails.
//
// It cannot see what a crash or a power cut leaves (the data lies in memory), contents beyond 4.1 MB, and
// hostile names (another rig's). Nor can it see copies and restores beside other calls on the same root, and
// what no answer shows.
import type { Campaign } from "#prove/campaign.ts";
import type { Rig } from "#prove/rig.ts";
import { overEngine } from "#prove/rig-engine.ts";
import { type ServedNode, type SignedIn, serveNode } from "#prove/served-node.ts";
import { RootCalls } from "./calls.ts";
import { Episode, type Step, shrink } from "./episode.ts";
import { Draws, POOL_BYTES } from "./operations.ts";

const LANES = 40;
const LANES_TOGETHER = 8;
const STEPS_PER_EPISODE = 300;
/** Calls at once on one root: all their orders are tried. */
const TOGETHER_MAX = 4;
const SHRINK_TRIES = 150;
/** Repeats that give a case of concurrent calls the chance to fail again. */
const REPEATS_TOGETHER = 4;
const SHAREE_CONNECTIONS = 4;

class Lab {
  readonly #campaign: Campaign;
  readonly #node: ServedNode;
  readonly #pool: Buffer;
  readonly #sharees: readonly [SignedIn, SignedIn];
  #roots = 0;

  constructor(campaign: Campaign, node: ServedNode, sharees: readonly [SignedIn, SignedIn]) {
    this.#campaign = campaign;
    this.#node = node;
    this.#sharees = sharees;
    this.#pool = campaign.random.fork("pool").bytes(POOL_BYTES);
  }

  /** One lane, episode after episode. */
  async lane(number: number): Promise<void> {
    const isTogether = number < LANES_TOGETHER;
    const random = this.#campaign.random.fork(`lane ${number}`);
    const draws = new Draws(random);
    while (this.#campaign.shouldGoOn()) {
      const steps: Step[] = [];
      const difference = await this.#onFreshRoot(async (episode) => {
        while (steps.length < STEPS_PER_EPISODE && !episode.isLost && this.#campaign.shouldGoOn()) {
          const step = isTogether
            ? draws.together(episode.model, random.between(1, TOGETHER_MAX))
            : [draws.next(episode.model)];
          steps.push(step);
          const wrong = await episode.take(step);
          if (isTogether && step.length > 1) this.#campaign.count("calls at once on one root", step.length);
          if (wrong !== undefined) return wrong;
        }
        if (episode.isLost) this.#campaign.count("roots left in the middle");
        return episode.compareAll();
      });
      this.#campaign.count("roots");
      if (difference !== undefined) await this.#report(steps, difference);
    }
  }

  async #report(steps: readonly Step[], difference: string): Promise<void> {
    let last = difference;
    const repeats = steps.some((step) => step.length > 1) ? REPEATS_TOGETHER : 1;
    const fails = async (fewer: readonly Step[]): Promise<boolean> => {
      for (let repeat = 0; repeat < repeats && !this.#campaign.isOver(); repeat++) {
        const wrong = await this.#repeat(fewer);
        if (wrong !== undefined) {
          last = wrong;
          return true;
        }
      }
      return false;
    };
    const shortest = await shrink(steps, fails, SHRINK_TRIES);
    const lines = shortest.map((step) => JSON.stringify(step));
    this.#campaign.violation(`${last}\nafter ${lines.join("\n")}`);
  }

  #repeat(steps: readonly Step[]): Promise<string | undefined> {
    return this.#onFreshRoot(async (episode) => {
      for (const step of steps) {
        const wrong = await episode.take(step);
        if (wrong !== undefined) return wrong;
        if (episode.isLost) return undefined;
      }
      return episode.compareAll();
    });
  }

  /** Makes a root for an episode, and empties it afterwards. */
  async #onFreshRoot(live: (episode: Episode) => Promise<string | undefined>): Promise<string | undefined> {
    const owner = await this.#node.signIn(`owner${this.#roots++}@example.com`);
    const [sharee0, sharee1] = this.#sharees;
    const { setQuota } = this.#node;
    try {
      const calls = new RootCalls({ users: { owner, sharee0, sharee1 }, setQuota }, this.#pool);
      return await live(new Episode(calls, this.#pool, (made) => this.#campaign.step(made)));
    } finally {
      const { entries } = await owner.calls.listDir({ path: "/" }, owner);
      await Promise.all(entries.map(({ path }) => owner.calls.deleteFile({ path, recursive: true }, owner)));
      await owner.calls.purgeTrash({}, owner);
      await owner.calls.endSession({}, owner);
      for (const channel of owner.channels) channel.close();
    }
  }
}

async function run(campaign: Campaign): Promise<void> {
  const node = await serveNode(campaign, "memory");
  const sharees = [
    await node.signIn("sharee0@example.com", SHAREE_CONNECTIONS),
    await node.signIn("sharee1@example.com", SHAREE_CONNECTIONS),
  ] as const;
  const lab = new Lab(campaign, node, sharees);
  await Promise.all(Array.from({ length: LANES }, (_, number) => lab.lane(number)));
  if (!node.process.isRunning()) campaign.violation(`the server ended: ${node.process.log()}`);
}

/** See the head of this file. */
export const model: Rig = {
  name: "model",
  figure: "F8",
  proves:
    "Every answer of a FileServer to many clients at once is the one that a model in plain memory gives",
  unit: "calls",
  goal: 1_000_000,
  shortGoal: 3_000,
  plantedGoal: 6_000,
  run,
};

/** F8 on the shared engine. */
export const modelOverEngine: Rig = overEngine(model, { goal: 100_000, shortGoal: 600, plantedGoal: 3_000 });
