// Damages stored bytes in 29 ways and checks that a read or the scrub notices, and that no reader gets wrong
// bytes.
//
// The store has small files (in the database), large ones (one chunk) and huge ones (two), a part of them in
// the trash. In each round two in five of them are damaged. The damage is to bits, sectors or lengths,
// missing or exchanged chunk files, bytes of small files in the database's own file, or values of rows. Then
// everything is read through the store, from the beginning or from some block on. A damaged file must be
// refused, an intact one must come out right. With the marks of that removed, the scrub goes through the same
// damage and must mark every damaged file and no other.
//
// Whole pages of the database are damaged as well, one at a time (see page-damage.ts).
//
// It cannot see damage that gives the same CRC-32 (one in four thousand million), nor a page damage that
// changes nothing but a time or a version. Rows have no checksum of their own, so a flipped bit there is
// noticed only where an index, a size or a sum contradicts it. Such changes are counted as "unnoticed changes
// of times".
import { readFileSync } from "node:fs";
import type { Campaign } from "#prove/campaign.ts";
import type { Rig } from "#prove/rig.ts";
import type { SeededRandom } from "#prove/seeded-random.ts";
import { openTestStorage } from "#storage/local/store.fixture.ts";
import { DamageStore, type StoredFile } from "./damage-store.ts";
import { type Damage, KINDS } from "./damages.ts";
import { damagePages, lookAt } from "./page-damage.ts";
import { readFile } from "./read-file.ts";
import { scrubbed } from "./scrub-pass.ts";

const SIZE = { small: 200, large: 160, huge: 6 };
/** Up to this many damages a smaller store suffices. */
const SHORT_UP_TO = 100;
const SHORT_SIZE = { small: 80, large: 80, huge: 3 };
const DAMAGED_SHARE = 0.4;
const PAGES_PER_ROUND = 3;

/** F24. */
export const damage: Rig = {
  name: "damage",
  figure: "F24",
  unit: "damages found",
  proves: "damaged bytes are found by the scrub and refused by reads, and nobody is served wrong ones",
  goal: 10_000,
  shortGoal: 40,
  plantedGoal: 100,
  run,
};

async function run(campaign: Campaign): Promise<void> {
  const folder = await campaign.folder("memory");
  keepCompiled(campaign, `${folder}/cache`);
  const size = campaign.goal <= SHORT_UP_TO ? SHORT_SIZE : SIZE;
  const store = await DamageStore.make(`${folder}/store`, size, campaign.random);
  const sight = await lookAt(store);
  while (campaign.shouldGoOn()) {
    await round(campaign, store);
    await damagePages(campaign, store, sight, PAGES_PER_ROUND);
  }
}

/** Every opening of a store starts threads, which would compile their sources again each time. */
function keepCompiled(campaign: Campaign, folder: string): void {
  const name = "NODE_COMPILE_CACHE";
  const before = process.env[name];
  if (before !== undefined) return;
  process.env[name] = folder;
  campaign.atEnd(() => {
    delete process.env[name];
  });
}

async function round(campaign: Campaign, store: DamageStore): Promise<void> {
  const damages = harm(store, campaign.random);
  const harmed = readFileSync(store.databasePath);
  await readAll(campaign, store, damages);
  store.putDatabase(harmed);
  const problem = await scrubbed(store.directory);
  if (problem !== undefined) campaign.violation(`the scrub ended in ${problem}`);
  const marked = store.marked();
  const wanted = new Map(damages.flatMap((one) => one.files.map((file) => [file.id, one] as const)));
  for (const one of damages) {
    const missed = one.files.filter(({ id }) => !marked.has(id));
    if (missed.length > 0) campaign.violation(`not found by the scrub: ${one.kind} of ${textOf(missed)}`);
    else {
      campaign.step();
      campaign.count(`found: ${one.kind}`);
    }
  }
  for (const file of store.files) {
    if (marked.has(file.id) && !wanted.has(file.id))
      campaign.violation(`taken for damaged: ${textOf([file])}`);
  }
  store.restore();
}

/** Damages files, none of them twice. */
function harm(store: DamageStore, random: SeededRandom): Damage[] {
  const free = new Map(store.files.map((file) => [file.id, file]));
  const damages: Damage[] = [];
  const names = Object.keys(KINDS);
  const enough = store.files.length * (1 - DAMAGED_SHARE);
  for (let tries = 0; free.size > enough && tries < store.files.length * 4; tries++) {
    const kind = names[(tries + random.below(2)) % names.length] ?? "";
    const way = KINDS[kind];
    const files = way === undefined ? [] : choose([...free.values()], way, random);
    if (way === undefined || files.length < way.files || !way.harm(store, files, random)) continue;
    for (const { id } of files) free.delete(id);
    damages.push({ kind, files, isHarmless: way.isHarmless === true });
  }
  return damages;
}

function choose(
  free: readonly StoredFile[],
  { of, files }: { of: "small" | "large" | "huge"; files: 1 | 2 },
  random: SeededRandom,
): StoredFile[] {
  const chunks = { small: 0, large: 1, huge: 2 }[of];
  const fitting = free.filter((file) => file.chunks.length === chunks);
  if (fitting.length === 0) return [];
  const one = random.pick(fitting);
  if (files === 1) return [one];
  const equal = fitting.filter((file) => file !== one && file.bytes.length === one.bytes.length);
  return equal.length === 0 ? [] : [one, random.pick(equal)];
}

async function readAll(campaign: Campaign, store: DamageStore, damages: readonly Damage[]): Promise<void> {
  const wrong = new Map(damages.flatMap((one) => one.files.map((file) => [file.id, one] as const)));
  const storage = await openTestStorage(store.directory);
  try {
    for (const file of store.files) {
      if (file.isTrashed) continue;
      const what = wrong.get(file.id);
      const read = await readFile(storage, file, campaign.random);
      campaign.count("reads");
      if (read === "wrong bytes")
        campaign.violation(`wrong bytes were served: ${what?.kind ?? "no damage"} of ${textOf([file])}`);
      else if (read === "refused" && what === undefined)
        campaign.violation(`an intact file was refused: ${textOf([file])}`);
      else if (read === "right" && what !== undefined && !what.isHarmless) {
        campaign.violation(`not noticed by a read: ${what.kind} of ${textOf([file])}`);
      } else if (read === "refused") campaign.count("refused reads");
    }
  } finally {
    await storage.close();
  }
}

function textOf(files: readonly StoredFile[]): string {
  return files
    .map(
      ({ name, bytes, isTrashed }) => `${name} (${bytes.length} bytes${isTrashed ? ", in the trash" : ""})`,
    )
    .join(" and ");
}
