// Damages what a shared engine has stored in 25 ways, and checks that every read notices (F24).
//
// In each round two in five files are damaged: objects of the bucket behind the store's back, as a bad disk
// does, and rows of PostgreSQL by SQL. A FileServer without caches then reads everything. A damaged file must be
// refused and marked, an intact one must come out right and stay unmarked. `fsck -list` must name what rows and
// the bucket's listing can show: it reads no objects. With the marks of that removed, the scrub goes through the
// same damage. Its process ends somewhere on the way, and the next one goes on from there. In the end every
// damaged file is marked, and no other.
//
// It cannot see damage that gives the same CRC-32, nor a row that only lost a time or a version.
import type { Campaign } from "#prove/campaign.ts";
import type { Rig } from "#prove/rig.ts";
import { lacksEngine } from "#prove/rig-engine.ts";
import type { SeededRandom } from "#prove/seeded-random.ts";
import { againWhenRowsCome } from "#storage/contract/rows-to-come.ts";
import { until } from "#testing/until.ts";
import { ENGINE_KINDS } from "./engine-kinds.ts";
import { scrubbed } from "./engine-scrub.ts";
import { EngineDamageStore, type EngineFile } from "./engine-store.ts";
import { readFile } from "./read-file.ts";

const SIZE = { small: 100, large: 100, huge: 6 };
/** Up to this many damages a smaller store suffices. */
const SHORT_UP_TO = 100;
const SHORT_SIZE = { small: 40, large: 50, huge: 3 };
const DAMAGED_SHARE = 0.4;
const READ_AT_ONCE = 8;

interface Damage {
  readonly kind: string;
  readonly files: readonly EngineFile[];
}

/** F24 on the shared engine. */
export const damageOverEngine: Rig = {
  name: "damage-over-engine",
  figure: "F24",
  unit: "damages found",
  proves:
    "damaged objects and rows of the shared engine are found by the scrub and refused by reads, and nobody is served wrong ones",
  goal: 2_000,
  shortGoal: 30,
  plantedGoal: 60,
  lacks: lacksEngine,
  async run(campaign) {
    const size = campaign.goal <= SHORT_UP_TO ? SHORT_SIZE : SIZE;
    const store = await EngineDamageStore.make(campaign, size);
    while (campaign.shouldGoOn()) {
      await store.restore();
      await round(campaign, store);
    }
  },
};

async function round(campaign: Campaign, store: EngineDamageStore): Promise<void> {
  const damages = await harm(store, campaign.random);
  const named = await store.checked();
  for (const { kind, files } of damages) {
    if (ENGINE_KINDS[kind]?.isSeenByCheck !== true) continue;
    const isNamed = files.some((file) => isIn(named, file));
    if (!isNamed) campaign.violation(`not named by fsck: ${kind} of ${textOf(files)}`);
    campaign.count("named by fsck");
  }
  const wrong = new Map(damages.flatMap((damage) => damage.files.map(({ id }) => [id, damage] as const)));
  await readAll(campaign, store, wrong);
  await store.unmark();
  await scrubAll(campaign, store, wrong);
}

async function readAll(
  campaign: Campaign,
  store: EngineDamageStore,
  wrong: ReadonlyMap<number, Damage>,
): Promise<void> {
  const refused = new Set<number>();
  const engine = await store.open();
  try {
    const queue = [...store.files];
    const readSome = async (): Promise<void> => {
      for (let file = queue.pop(); file !== undefined; file = queue.pop()) {
        const { id } = file;
        await againWhenRowsCome(() => engine.storage.openFile(id).close()).catch(() => undefined);
        const read = await readFile(engine.storage, file, campaign.random);
        campaign.count("reads");
        const what = wrong.get(id);
        if (read === "refused") refused.add(id);
        judge(campaign, file, what?.kind, read);
      }
    };
    await Promise.all(Array.from({ length: READ_AT_ONCE }, readSome));
    const unmarked = async (): Promise<number[]> => {
      const marked = await store.marked();
      return [...refused].filter((id) => !marked.has(id));
    };
    await until(async () => (await unmarked()).length === 0, "the marks").catch(() => undefined);
    for (const id of await unmarked()) {
      campaign.violation(`refused and not marked: ${id} (${wrong.get(id)?.kind})`);
    }
    for (const id of await store.marked()) {
      if (!refused.has(id)) campaign.violation(`marked and not refused: ${id} (${wrong.get(id)?.kind})`);
    }
  } finally {
    await engine.storage.close();
  }
}

async function scrubAll(
  campaign: Campaign,
  store: EngineDamageStore,
  wrong: ReadonlyMap<number, Damage>,
): Promise<void> {
  if (!(await scrubbed(store, campaign.random)))
    return campaign.violation("the scrub does not come to its end");
  const marked = await store.marked();
  for (const file of store.files) {
    const kind = wrong.get(file.id)?.kind;
    if (marked.has(file.id) && kind !== undefined) campaign.count("found by the scrub");
    else if (kind !== undefined) campaign.violation(`not found by the scrub: ${kind} of ${textOf([file])}`);
    else if (marked.has(file.id)) campaign.violation(`taken for damaged: ${textOf([file])}`);
  }
}

function judge(campaign: Campaign, file: EngineFile, kind: string | undefined, read: string): void {
  const isHarmless = kind !== undefined && ENGINE_KINDS[kind]?.isHarmless === true;
  if (read === "wrong bytes") {
    campaign.violation(`wrong bytes were served: ${kind ?? "no damage"} of ${textOf([file])}`);
  } else if (read === "refused" && kind === undefined) {
    campaign.violation(`an intact file was refused: ${textOf([file])}`);
  } else if (read === "right" && kind !== undefined && !isHarmless) {
    campaign.violation(`not noticed by a read: ${kind} of ${textOf([file])}`);
  } else if (read === "refused") {
    campaign.step();
    campaign.count(`found: ${kind}`);
  }
}

/** Damages files, none of them twice. */
async function harm(store: EngineDamageStore, random: SeededRandom): Promise<Damage[]> {
  const free = new Map(store.files.map((file) => [file.id, file]));
  const damages: Damage[] = [];
  const names = Object.keys(ENGINE_KINDS);
  const enough = store.files.length * (1 - DAMAGED_SHARE);
  for (let tries = 0; free.size > enough && tries < store.files.length * 4; tries++) {
    const kind = names[(tries + random.below(2)) % names.length] ?? "";
    const way = ENGINE_KINDS[kind];
    if (way === undefined) continue;
    const chunks = { small: 0, large: 1, huge: 2 }[way.of];
    const fitting = [...free.values()].filter((file) => file.chunks.length === chunks);
    const files = choose(fitting, way.files, random);
    if (files.length < way.files || !(await way.harm(store, files, random))) continue;
    for (const { id } of files) free.delete(id);
    damages.push({ kind, files });
  }
  return damages;
}

function choose(fitting: readonly EngineFile[], count: 1 | 2, random: SeededRandom): EngineFile[] {
  if (fitting.length === 0) return [];
  const one = random.pick(fitting);
  if (count === 1) return [one];
  const equal = fitting.filter((file) => file !== one && file.bytes.length === one.bytes.length);
  return equal.length === 0 ? [] : [one, random.pick(equal)];
}

/** True when a report names the file by its path, or one of its chunks, also by the name that a damage gave it. */
function isIn(report: string, { name, chunks }: EngineFile): boolean {
  const isNamed = new RegExp(`:/${name}\\b`).test(report);
  return isNamed || chunks.some((chunk) => report.includes(chunk) || report.includes(`z${chunk.slice(1)}`));
}

function textOf(files: readonly EngineFile[]): string {
  return files.map(({ name, bytes }) => `${name} (${bytes.length} bytes)`).join(" and ");
}
