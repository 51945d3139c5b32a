// Uses up all descriptors of its process, then writes more than a log's length and sorts, with a few more each time.
import { closeSync, openSync, statSync } from "node:fs";
import { join } from "node:path";
import { systemClock } from "#base/clock.ts";
import { GroveError } from "#base/errors.ts";
import { silentLogger } from "#base/log.ts";
import { systemRandom } from "#base/random.ts";
import { openStorage } from "./open-storage.ts";

/** Free descriptors at each round: for no thread, for a thread alone, and for a thread that opens some of its files. */
const FREE = [0, 5, 6, 8];
const FILES = 600;
const OWNER = "ada@example.com";
const BY = { owner: OWNER, by: OWNER, accessVersion: undefined };

const directory = process.argv[2] ?? "";
const storage = await openStorage({
  directory,
  clock: systemClock,
  random: systemRandom,
  logger: silentLogger,
  ballastBytes: 0,
});
const { directoryId } = await storage.createRoot({ owner: OWNER, rootId: "01ROOT" });
const data = new Uint8Array(60_000);

async function fill(parentId: number): Promise<void> {
  const make = (at: number) => storage.createFile({ ...BY, parentId, name: `f${at}`, data, mtimeMs: 0 });
  await Promise.all(Array.from({ length: FILES }, (_, at) => make(at)));
}

async function sorted(directoryId: number): Promise<string> {
  const accessVersion = storage.root(OWNER)?.accessVersion ?? 0;
  const query = { limit: 1, pageToken: "", sort: "size", owner: OWNER, accessVersion } as const;
  try {
    await storage.listSorted({
      user: OWNER,
      signal: new AbortController().signal,
      query: () => ({ ...query, directoryId }),
    });
    return "sorted";
  } catch (error) {
    return error instanceof GroveError ? error.code : String(error);
  }
}

const held: number[] = [];
try {
  for (;;) held.push(openSync("/dev/null", "r"));
} catch {
  // All are used.
}
const listings: string[] = [];
for (const [round, free] of FREE.entries()) {
  const before = FREE[round - 1] ?? 0;
  for (const descriptor of held.splice(0, free - before)) closeSync(descriptor);
  const { inode } = await storage.createDirectory({ ...BY, parentId: directoryId, name: `d${round}` });
  await fill(inode.id);
  listings.push(await sorted(inode.id));
}
for (const descriptor of held) closeSync(descriptor);
listings.push(await sorted(directoryId));
// The file keeps the log's greatest length.
const logBytes = statSync(join(directory, "inodes.db-wal")).size;
process.stdout.write(`${JSON.stringify({ listings, logBytes, failure: storage.failure ?? null })}\n`);
await storage.close();
