// Damages single pages of a store's database: unnoticed damage must have changed nothing visible.
import { GroveError } from "#base/errors.ts";
import type { Campaign } from "#prove/campaign.ts";
import type { SeededRandom } from "#prove/seeded-random.ts";
import { type Storage } from "#storage/contract/storage.ts";
import { OWNER, openTestStorage } from "#storage/local/store.fixture.ts";
import type { DamageStore } from "./damage-store.ts";
import { readFile } from "./read-file.ts";
import { scrubbed } from "./scrub-pass.ts";

const PAGE_BYTES = 4_096;
const LIST_LIMIT = 1_000;

type Harm = (page: Buffer, database: Buffer, random: SeededRandom) => unknown;

const HARMS: Readonly<Record<string, Harm>> = {
  "a flipped bit": (page, _, random) => {
    const at = random.below(page.length);
    page[at] = (page[at] ?? 0) ^ (1 << random.below(8));
  },
  "a page of zeros": (page) => page.fill(0),
  "a page of noise": (page, _, random) => random.bytes(PAGE_BYTES).copy(page),
  "half a page of zeros": (page) => page.fill(0, PAGE_BYTES / 2),
  "a sector of zeros": (page, _, random) => {
    const at = random.below(PAGE_BYTES / 512) * 512;
    page.fill(0, at, at + 512);
  },
  "another page's bytes": (page, database, random) => {
    const other = random.below(database.length / PAGE_BYTES) * PAGE_BYTES;
    database.copy(page, 0, other, other + PAGE_BYTES);
  },
};

/** All that users see of the store, and besides it what only times and versions show. */
export interface Sight {
  readonly lines: string;
  readonly times: string;
}

/** Damages this many pages, one after the other; changes without effect do not count. */
export async function damagePages(
  campaign: Campaign,
  store: DamageStore,
  sight: Sight | undefined,
  count: number,
): Promise<void> {
  if (sight === undefined) throw new Error("the store cannot be read");
  for (let done = 0; done < count && !campaign.isOver(); ) {
    const database = Buffer.from(store.database);
    const kind = campaign.random.pick(Object.keys(HARMS));
    const number = campaign.random.below(database.length / PAGE_BYTES);
    HARMS[kind]?.(
      database.subarray(number * PAGE_BYTES, (number + 1) * PAGE_BYTES),
      database,
      campaign.random,
    );
    if (database.equals(store.database)) continue;
    done++;
    const outcome = await attack(
      campaign,
      store,
      database,
      sight,
      `${kind} in page ${number + 1} of the database`,
    );
    campaign.count(`pages: ${outcome}`);
    if (outcome === "found") campaign.step();
    store.restore();
  }
}

async function attack(
  campaign: Campaign,
  store: DamageStore,
  database: Buffer,
  before: Sight,
  what: string,
): Promise<"found" | "changed nothing" | "unnoticed changes of times"> {
  store.putDatabase(database);
  const reads = await readEverything(campaign, store, what);
  store.putDatabase(database);
  const scrub = await scrubOutcome(store);
  if (scrub || reads) return "found";
  store.putDatabase(database);
  const after = await lookAt(store);
  if (after === undefined) return "found";
  if (after.lines !== before.lines) campaign.violation(`not noticed: ${what}`);
  return after.times === before.times ? "changed nothing" : "unnoticed changes of times";
}

/** Returns true when anything was refused. */
async function readEverything(campaign: Campaign, store: DamageStore, what: string): Promise<boolean> {
  let storage: Storage;
  try {
    storage = await openTestStorage(store.directory);
  } catch (error) {
    if (error instanceof GroveError) return true;
    throw error;
  }
  let refused = 0;
  try {
    for (const file of store.files) {
      if (file.isTrashed) continue;
      const read = await readFile(storage, file, campaign.random);
      if (read === "wrong bytes") campaign.violation(`wrong bytes of ${file.name} were served: ${what}`);
      if (read === "refused") refused++;
    }
    return refused > 0 || storage.failure !== undefined;
  } finally {
    await storage.close();
  }
}

async function scrubOutcome(store: DamageStore): Promise<boolean> {
  try {
    if ((await scrubbed(store.directory)) !== undefined) return true;
    return store.marked().size > 0;
  } catch {
    return true;
  }
}

/** Reads the whole store; undefined when that fails. */
export async function lookAt(store: DamageStore): Promise<Sight | undefined> {
  let storage: Storage | undefined;
  try {
    storage = await openTestStorage(store.directory);
    const root = storage.root(OWNER);
    if (root === undefined) return { lines: "", times: "" };
    const { entries } = storage.list(root.directoryId, { limit: LIST_LIMIT, pageToken: "", sort: "name" });
    const { items } = storage.listTrash(OWNER, { limit: LIST_LIMIT, pageToken: "" });
    const lines = [
      ...entries.map(({ id, name, kind, sizeBytes, crc32, damaged }) =>
        [id, name, kind, sizeBytes, crc32, damaged].join(" "),
      ),
      ...items.map(({ originalPath, sizeBytes, kind }) => [originalPath, sizeBytes, kind].join(" ")),
      JSON.stringify(root),
    ];
    const times = [
      ...entries.map(({ mtimeMs, ctimeMs, version }) => [mtimeMs, ctimeMs, version].join(" ")),
      ...items.map(({ id }) => id),
    ];
    return { lines: lines.join("\n"), times: times.join("\n") };
  } catch (error) {
    if (error instanceof GroveError) return undefined;
    throw error;
  } finally {
    await storage?.close();
  }
}
