// The kinds of strikes against the shared engine: each says whose roots must go elsewhere, and how it is healed.
import { setTimeout as sleep } from "node:timers/promises";
import type { SeededRandom } from "#prove/seeded-random.ts";
import type { Person } from "./people.ts";
import type { Post } from "./post.ts";
import type { Site } from "./site.ts";

/** Down times of what is started again, and pauses before a promotion. */
const AWAY_MS = 900;
const LOOK_PAUSE_MS = 5;
const LOOK_MS = 1_000;
/** A process whose lease has ended ends itself within its lease and this. */
const ENDS_WITHIN_MS = 13_000;

/** The kinds, as `narrow` of planted bugs names them. */
export type StrikeKind = "fileserver" | "database" | "store" | "cut" | "still" | "hiccup";

/** A strike under way. */
export interface Strike {
  /** The node that must lose its roots; undefined where all go on where they are. */
  readonly victim: Post | undefined;
  /** Moment from which the time until others serve counts. */
  readonly sinceMs: number;
  /** Ends what is out of order, and tells what was wrong meanwhile. */
  readonly heal: () => Promise<string[]>;
}

/** Makes a strike; `holder` serves at least one root. */
export type MakeStrike = (site: Site, holder: Post, random: SeededRandom) => Promise<Strike>;

const nothing = (): Promise<string[]> => Promise.resolve([]);

/** A process dies; the next one starts when others have its roots. */
const fileserver: MakeStrike = async (_site, victim) => {
  const sinceMs = performance.now();
  await victim.kill();
  return { victim, sinceMs, heal: () => victim.begin().then(nothing) };
};

/** The primary dies; the standby is promoted, and a new standby made. */
const database: MakeStrike = async ({ places }, _holder, random) => {
  await places.failOver(random.below(AWAY_MS));
  return { victim: undefined, sinceMs: performance.now(), heal: () => places.mend().then(nothing) };
};

/** The store dies and comes back. */
const store: MakeStrike = async ({ places }, _holder, random) => {
  await places.store.kill();
  await sleep(random.below(AWAY_MS));
  await places.store.start();
  return { victim: undefined, sinceMs: performance.now(), heal: nothing };
};

/** A node's way to the database ends for longer than its lease; what was under way there comes late. */
const cut: MakeStrike = async ({ people }, victim, random) => {
  const hurt = people.filter(({ at }) => at === victim);
  await Promise.all(hurt.map((person) => person.isServedAt(victim, LOOK_MS)));
  const ended = victim.ended();
  const sinceMs = performance.now();
  victim.cut(random.pick(["held", "requests held", "replies held"]));
  return {
    victim,
    sinceMs,
    async heal() {
      const problems = await looks(hurt, victim, 20);
      victim.cut("open");
      problems.push(...(await looks(hurt, victim, 20)), ...(await endsItself(victim, ended)));
      await victim.begin();
      return problems;
    },
  };
};

/** A process stands still for longer than its lease, with calls in its hands, and goes on. */
const still: MakeStrike = async ({ people }, victim) => {
  const hurt = people.filter(({ at }) => at === victim);
  await Promise.all(hurt.map((person) => person.isServedAt(victim, LOOK_MS)));
  const ended = victim.ended();
  const sinceMs = performance.now();
  victim.signal("SIGSTOP");
  return {
    victim,
    sinceMs,
    async heal() {
      const looking = looks(hurt, victim, 3);
      await sleep(LOOK_PAUSE_MS);
      victim.signal("SIGCONT");
      const problems = [...(await looking), ...(await endsItself(victim, ended))];
      await victim.begin();
      return problems;
    },
  };
};

/** All connections to the database break, or nothing passes for a moment shorter than a lease. */
const hiccup: MakeStrike = async (_site, holder, random) => {
  holder.cut(random.pick(["reset", "reset", "requests held", "replies held"]));
  await sleep(random.below(AWAY_MS / 3));
  holder.cut("open");
  return { victim: undefined, sinceMs: performance.now(), heal: nothing };
};

/** All of them. */
export const STRIKES: Readonly<Record<StrikeKind, MakeStrike>> = {
  fileserver,
  database,
  store,
  cut,
  still,
  hiccup,
};

/** Asks a node that must not answer any more, since others serve what it did. */
async function looks(hurt: readonly Person[], victim: Post, times: number): Promise<string[]> {
  const problems = new Set<string>();
  for (let n = 0; n < times; n++) {
    for (const person of hurt) {
      if (await person.isServedAt(victim, LOOK_MS)) {
        problems.add(`${victim.id} serves the root of ${person.email} after ${person.at.id} has taken it`);
      }
    }
    await sleep(LOOK_PAUSE_MS);
  }
  return [...problems];
}

async function endsItself(victim: Post, ended: Promise<void>): Promise<string[]> {
  const limitMs = victim.leaseSeconds * 1_000 + ENDS_WITHIN_MS;
  const isLate = await Promise.race([ended, sleep(limitMs, "late", { ref: false })]);
  if (isLate !== "late") return [];
  const log = victim.log();
  await victim.kill();
  return [`${victim.id} goes on ${limitMs} ms after others have taken its roots: ${log}`];
}
