// Users of the shared engine with their lanes: they look for the FileServer that serves them, work there, and
// compare.
import { setTimeout as sleep } from "node:timers/promises";
import type { ContentMaker } from "#prove/kill/content.ts";
import { Lane, type SignedIn } from "#prove/kill/lane.ts";
import { RootUser } from "#prove/moves/lane.ts";
import type { SeededRandom } from "#prove/seeded-random.ts";
import type { Post } from "./post.ts";

const LANES_PER_USER = 2;
/** A call that a node holds back for so long is asked elsewhere. */
const LOOK_MS = 1_500;
const PAUSE_MS = 20;
/** Beyond all waits for leases, promotions and busy machines. */
const STUCK_MS = 60_000;
/** Staged bytes of an upload that failed go soon after it. */
const COUNTED_WITHIN_MS = 10_000;
/** What a lane says where a server was away, and not where something is wrong. */
const AWAY = /cannot be read|that was begun/;

/** One user. */
export class Person {
  readonly email: string;
  readonly lanes: readonly Lane[];
  /** A second set of sessions, for looks at nodes that must not answer any more. */
  readonly watcher: RootUser;
  readonly #posts: readonly Post[];
  readonly #user: RootUser;
  #at: Post;
  #signedIn: SignedIn | undefined;

  constructor(deps: {
    email: string;
    others: readonly string[];
    posts: readonly Post[];
    random: SeededRandom;
    contents: ContentMaker;
  }) {
    const { email, others, posts, random, contents } = deps;
    this.email = email;
    this.#posts = posts;
    this.#at = random.pick(posts);
    this.#user = userOf(email, posts);
    this.watcher = userOf(email, posts);
    this.lanes = Array.from({ length: LANES_PER_USER }, (_, index) => {
      const folder = `/w${index}`;
      const own = random.fork(folder);
      return new Lane({ folder, user: email, others, random: own, contents: contents.fork(folder + email) });
    });
  }

  /** The node that serves the root, as it was last found. */
  get at(): Post {
    return this.#at;
  }

  get signedIn(): SignedIn {
    if (this.#signedIn === undefined) throw new Error(`${this.email} is served by nobody`);
    return this.#signedIn;
  }

  /** Looks until a node answers that serves the root, other than one. */
  async find(except?: Post): Promise<void> {
    const endMs = performance.now() + STUCK_MS;
    const posts = [this.#at, ...this.#posts.filter((post) => post !== this.#at)].filter(
      (post) => post !== except,
    );
    let last: unknown;
    while (performance.now() < endMs) {
      for (const post of posts) {
        try {
          this.#signedIn = await signedInAt(this.#user, post);
          this.#at = post;
          return;
        } catch (error) {
          last = error;
        }
      }
      await sleep(PAUSE_MS);
    }
    throw new Error(`nobody serves the root of ${this.email}: ${String(last)}`);
  }

  /** Ends all calls under way at a node. */
  leave({ id }: Post): void {
    this.#user.leave(id);
  }

  /** Compares all lanes with the node that serves, and the counters; returns the differences in words. */
  async settle(): Promise<string[]> {
    const found = await Promise.all(this.lanes.map((lane) => this.#again(() => lane.settle(this.signedIn))));
    return [...found, await this.#again(() => this.#compareCounters())].filter(
      (problem) => problem !== undefined,
    );
  }

  /** Reads every byte again. */
  async readAll(): Promise<string[]> {
    const found: (string | undefined)[] = [];
    for (const lane of this.lanes) found.push(await lane.readAll(this.signedIn));
    return found.filter((problem) => problem !== undefined);
  }

  /** True when a node serves the root to a session from before. */
  async isServedAt(post: Post, timeoutMs: number): Promise<boolean> {
    return signedInAt(this.watcher, post, timeoutMs).then(
      () => true,
      () => false,
    );
  }

  close(): void {
    this.#user.close();
    this.watcher.close();
  }

  /** Repeats a comparison that found the node away. */
  async #again(compare: () => Promise<string | undefined>): Promise<string | undefined> {
    const endMs = performance.now() + STUCK_MS;
    for (;;) {
      let problem: string | undefined;
      try {
        problem = await compare();
        if (problem === undefined || !AWAY.test(problem)) return problem;
      } catch (error) {
        problem = `${this.email} cannot be asked: ${String(error)}`;
      }
      if (performance.now() > endMs) return problem;
      await sleep(PAUSE_MS);
      await this.find();
    }
  }

  async #compareCounters(): Promise<string | undefined> {
    const sums = { live: 0n, trash: 0n, staging: 0n };
    for (const { bytes } of this.lanes) {
      sums.live += bytes.live;
      sums.trash += bytes.trash;
      sums.staging += bytes.staging;
    }
    const { live, trash, staging } = sums;
    const expected = [live, trash, staging, live + trash + staging].join(" ");
    const endMs = performance.now() + COUNTED_WITHIN_MS;
    for (;;) {
      const { client, metadata } = this.signedIn;
      const quota = await client.getQuota({}, { metadata });
      const found = [quota.liveBytes, quota.trashBytes, quota.stagingBytes, quota.usedBytes].join(" ");
      if (found === expected) return undefined;
      if (performance.now() > endMs) {
        return `${this.email}: live, trash, staging, used are counted as ${found} instead of ${expected}`;
      }
      await sleep(PAUSE_MS);
    }
  }
}

function userOf(email: string, posts: readonly Post[]): RootUser {
  return new RootUser(email, Object.fromEntries(posts.map(({ id, address }) => [id, address])));
}

/** A session at a node that serves the root. Rejects with the node's refusal, or when it is away. */
function signedInAt(user: RootUser, { id }: Post, timeoutMs = LOOK_MS): Promise<SignedIn> {
  return user.askAt(id, async (client, { metadata }) => {
    await client.getAttr({ path: "/" }, { metadata, timeoutMs });
    return { client, metadata };
  });
}
