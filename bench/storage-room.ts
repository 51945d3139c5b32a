// Measures storage alone: `node bench/storage-room.ts DIR [inodes]`; figures of this machine, not ratios.
import { randomBytes } from "node:crypto";
import { mkdtempSync, rmSync } from "node:fs";
import { join } from "node:path";
import { systemClock } from "#base/clock.ts";
import { silentLogger } from "#base/log.ts";
import { systemRandom } from "#base/random.ts";
import type { Storage } from "#storage/contract/storage.ts";
import { openStorage } from "#storage/local/open-storage.ts";

const OWNER = "bench@example.com";
const parent = process.argv[2] ?? "/dev/shm";
const inodes = Number(process.argv[3] ?? 0);
const directory = mkdtempSync(join(parent, "grove-storage-"));

function open(): Promise<Storage> {
  return openStorage({ directory, clock: systemClock, random: systemRandom, logger: silentLogger });
}

function report(what: string, count: number, unit: string, beginMs: number): void {
  const seconds = (performance.now() - beginMs) / 1_000;
  console.log(
    `${what.padEnd(48)} ${Math.round(count / seconds).toLocaleString("en")} ${unit}/s (${seconds.toFixed(2)} s)`,
  );
}

async function inFlight(
  count: number,
  width: number,
  work: (index: number) => Promise<unknown>,
): Promise<void> {
  let next = 0;
  const lane = async (): Promise<void> => {
    while (next < count) await work(next++);
  };
  await Promise.all(Array.from({ length: width }, lane));
}

let storage = await open();
const root = await storage.createRoot({ owner: OWNER, rootId: "bench" });
const context = { owner: OWNER, by: OWNER, accessVersion: root.accessVersion };

async function create(parentId: number, prefix: string, count: number, bytes: number): Promise<void> {
  const data = randomBytes(bytes);
  await inFlight(count, 64, (index) =>
    storage.createFile({ ...context, parentId, name: `${prefix}-${index}`, data, mtimeMs: 0 }),
  );
}

async function makePath(names: readonly string[]): Promise<number> {
  let parentId = root.directoryId;
  for (const name of names) {
    parentId = (await storage.createDirectory({ ...context, parentId, name })).inode.id;
  }
  return parentId;
}

if (inodes > 0) {
  const begin = performance.now();
  const data = Buffer.alloc(0);
  const folders: number[] = [];
  for (let index = 0; index < inodes / 1_000; index++) folders.push(await makePath([`bulk-${index}`]));
  await inFlight(inodes, 512, (index) =>
    storage.createFile({
      ...context,
      parentId: folders[index % folders.length] ?? root.directoryId,
      name: `file-${index}`,
      data,
      mtimeMs: 0,
    }),
  );
  report(`${inodes} empty files, 512 in flight`, inodes, "files", begin);
  await storage.close();
  const cpu = process.cpuUsage();
  const start = performance.now();
  storage = await open();
  const used = process.cpuUsage(cpu);
  console.log(
    `start: ${(performance.now() - start).toFixed(0)} ms, processor ${((used.user + used.system) / 1_000).toFixed(0)} ms`,
  );
}

const deep = await makePath(["a", "b", "c"]);
for (let round = 0; round < 3; round++) {
  const count = 20_000;
  const begin = performance.now();
  const cpu = process.cpuUsage();
  await create(deep, `r${round}`, count, 4_096);
  const used = process.cpuUsage(cpu);
  report("durable 4 KiB creates, 64 in flight", count, "files", begin);
  console.log(`   processor: ${((used.user + used.system) / count).toFixed(1)} us each`);
}
{
  const begin = performance.now();
  const count = 100_000;
  for (let index = 0; index < count; index++) {
    if (index % 64 === 0) await new Promise(setImmediate);
    storage.resolve(OWNER, ["a", "b", "c", `r1-${index % 20_000}`]);
  }
  report("resolve of depth 4, 64 a turn", count, "calls", begin);
}
{
  const begin = performance.now();
  let entries = 0;
  for (let pageToken = ""; ; ) {
    const page = storage.list(deep, { limit: 1_000, pageToken, sort: "name" });
    entries += page.entries.length;
    if (page.nextPageToken === undefined) break;
    pageToken = page.nextPageToken;
  }
  report("list by name, 1,000 a page", entries, "entries", begin);
}
{
  const slice = randomBytes(65_536);
  const mebibytes = Number(process.env["UPLOAD_MIB"] ?? 1_024);
  for (let round = 0; round < 3; round++) {
    const begin = performance.now();
    const cpu = process.cpuUsage();
    const sink = storage.beginUpload({ owner: OWNER, sizeBytes: undefined });
    for (let sent = 0; sent < mebibytes * 1_048_576; ) {
      sink.beginMessage();
      for (let message = 0; message < 4_000_000 && sent < mebibytes * 1_048_576; message += slice.length) {
        const wait = sink.write(slice);
        sent += slice.length;
        if (wait !== undefined) await wait;
      }
      sink.endMessage();
    }
    await sink.commit({
      ...context,
      parentId: root.directoryId,
      name: "large",
      onExists: "replace",
      ifMatch: undefined,
      mtimeMs: 0,
    });
    const used = process.cpuUsage(cpu);
    report(`upload of ${mebibytes} MiB`, mebibytes, "MiB", begin);
    console.log(
      `   processor: user ${(used.user / 1e6).toFixed(2)} s, system ${(used.system / 1e6).toFixed(2)} s`,
    );
  }
  const file = storage.resolve(OWNER, ["large"]).chain.at(-1);
  if (file !== undefined) {
    const begin = performance.now();
    const content = storage.openFile(file.id);
    let ahead = content.readBlock(0);
    for (let offset = 0; offset < file.sizeBytes; ) {
      const block = await ahead;
      offset += block.length;
      if (offset < file.sizeBytes) ahead = content.readBlock(offset);
    }
    content.close();
    report(`download of ${mebibytes} MiB, one block ahead`, mebibytes, "MiB", begin);
  }
}
console.log(`memory: ${(process.memoryUsage.rss() / 1_048_576).toFixed(0)} MiB`);
await storage.close();
rmSync(directory, { recursive: true });
