// Cuts the power of an engine's two places again and again, in its own mount namespace; see rig.ts.
import { chmodSync, rmSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { systemClock } from "#base/clock.ts";
import { systemFraction } from "#base/random.ts";
import { openBareEngine } from "#prove/bare-engine.ts";
import { DISK_KINDS, Disk, type DiskKind, PowerSwitch } from "#prove/power/disk.ts";
import { SeededRandom } from "#prove/seeded-random.ts";
import { againWhenRowsCome } from "#storage/contract/rows-to-come.ts";
import { checkEngine } from "#storage/engine/engine-check.ts";
import type { OpenedEngine } from "#storage/engine/open-shared-storage.ts";
import { OBJECT_STORES } from "#testing/object-stores.ts";
import { until } from "#testing/until.ts";
import { PoweredPlaces } from "./places.ts";
import type { EnginePowerLine } from "./rig.ts";
import { OWNER, WorkedFolder } from "./work.ts";

const [, , seed = "", folder = ""] = process.argv;
const FOLDERS = 6;
const CUTS_PER_IMAGE = 25;
const ACKNOWLEDGED_PER_CUT = 40;
const RECOVERY_CHANCE = 0.25;
/** What makes the store's filesystem flush all it is told: both stores acknowledge before their files are safe. */
const FLUSHES = { ext4: "sync,dirsync", xfs: "sync,wsync" } as const;
/** Until the recovery of a small database is under way. */
const RECOVERY_MS = 60;
const WHAT = ["both", "both", "database", "store"] as const;
/** Longer than a database needs to come back on a busy machine: the same engine must go on. */
const LEASE_MS = 60_000;

function say(line: EnginePowerLine): void {
  process.stdout.write(`${JSON.stringify(line)}\n`);
}

const random = new SeededRandom(Number(seed)).fork("engine-power");
const power = new PowerSwitch();
const stopped = new AbortController();
process.stdin.on("end", () => stopped.abort());
process.stdin.resume();

/** One pair of filesystems with its cuts. */
async function image(number: number): Promise<void> {
  const kindOf = (): DiskKind => random.pick(DISK_KINDS[random.pick(["ext4", "xfs"] as const)]);
  const flushed = kindOf();
  const options = `${flushed.options},${FLUSHES[flushed.filesystem]}`;
  const disks = {
    database: new Disk(join(folder, `database${number}`), kindOf()),
    store: new Disk(join(folder, `store${number}`), { ...flushed, options }),
  };
  const kind = random.pick(OBJECT_STORES);
  const places = await PoweredPlaces.start(disks, kind);
  const directory = join(folder, `engine${number}`);
  const open = (): Promise<OpenedEngine> =>
    openBareEngine({
      directory,
      database: [places.address],
      store: places.settings,
      leaseMs: LEASE_MS,
    });
  let engine = await open();
  const { directoryId } = await engine.storage.createRoot({ owner: OWNER, rootId: "01ROOT" });
  const folders = Array.from(
    { length: FOLDERS },
    (_, at) => new WorkedFolder(`w${at}`, random.fork(`${number} ${at}`)),
  );
  for (const each of folders) await each.make(engine.storage, directoryId);
  places.settle();
  for (let cuts = 0; cuts < CUTS_PER_IMAGE && !stopped.signal.aborted; cuts++) {
    const before = folders.reduce((sum, each) => sum + each.acknowledged, 0);
    let isOver = false;
    let left = 1 + random.below(ACKNOWLEDGED_PER_CUT);
    const enough = Promise.withResolvers<void>();
    const work = Promise.all(
      folders.map((each) =>
        each.work(
          engine.storage,
          () => !isOver,
          () => {
            if (--left === 0) enough.resolve();
          },
        ),
      ),
    );
    await Promise.race([enough.promise, work]);
    await sleep(random.next() * 15);
    const what = random.pick(WHAT);
    isOver = true;
    await places.cut(what, power);
    places.mount(what);
    const isInRecovery = what !== "store" && random.chance(RECOVERY_CHANCE);
    if (isInRecovery) {
      const starting = places.startDatabase().catch(() => undefined);
      await sleep(random.next() * RECOVERY_MS);
      await places.cut("database", power);
      await starting;
      places.mount("database");
    }
    await Promise.all([
      what === "store" ? undefined : places.startDatabase(),
      what === "database" ? undefined : places.startStore(),
    ]);
    await work;
    await engine.storage.close();
    // Its caches: the next one must ask for every byte.
    rmSync(join(directory, "engine"), { recursive: true });
    engine = await open();
    const { storage } = engine;
    await until(async () => (await againWhenRowsCome(() => storage.root(OWNER))) !== undefined, "the root");
    let readBytes = 0;
    const problems: string[] = [];
    for (const each of folders) {
      const compared = await each.compare(storage);
      readBytes += compared.readBytes;
      problems.push(...compared.problems);
    }
    const { differences } = await checkEngine({
      database: [places.address],
      bucket: places.settings,
      clock: systemClock,
      fraction: systemFraction,
    });
    problems.push(...differences.map((text) => `fsck -list: ${text}`));
    const kinds = `${disks.database.kind.filesystem}, ${kind} on ${flushed.filesystem}`;
    for (const problem of problems) say({ violation: `a cut of ${what} (${kinds}): ${problem}` });
    say({ acknowledged: folders.reduce((sum, each) => sum + each.acknowledged, 0) - before, readBytes });
    say({ cut: what, isInRecovery });
    if (problems.length > 0) break;
  }
  await engine.storage.close();
  await places.end();
  for (const name of ["database", "store"])
    rmSync(join(folder, `${name}${number}`), { recursive: true, force: true });
}

// PostgreSQL runs as another user, and must come through to its disk.
chmodSync(folder, 0o755);
for (let number = 0; !stopped.signal.aborted; number++) await image(number);
power.end();
