// A process that prints a store's content and then changes it until the power goes; it starts early and waits
// for its order.
import { existsSync, writeSync } from "node:fs";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { SeededRandom } from "#prove/seeded-random.ts";
import { type FolderContents, foldersOf, linesOf, NOTHING, viewOf } from "#prove/store/folder-contents.ts";
import { type FolderChange, WorkFolder } from "#prove/store/work-folder.ts";
import { checkStorage } from "#storage/check/check-storage.ts";
import type { Storage } from "#storage/contract/storage.ts";
import { BY_OWNER, OWNER, openTestStorage } from "#storage/local/store.fixture.ts";
import type { LoadLine, LoadOrder } from "./load-lines.ts";

const FOLDERS = 6;
const NAMES = ["a", "b", "c", "d", "d/x", "d/y"] as const;
const INLINE_BYTES = 3_000;
const LARGE_BYTES = [65_537, 140_000] as const;
/** A chunk and a little more. */
const TWO_CHUNKS_BYTES = 4_000_100;
const TWO_CHUNKS_CHANCE = 0.01;
const TRASH_ITEMS = 2;

/** Written synchronously, so that it is out before the process is killed. */
function say(line: LoadLine): void {
  writeSync(1, `${JSON.stringify(line)}\n`);
}

function bytesFor(random: SeededRandom): Buffer {
  if (random.chance(TWO_CHUNKS_CHANCE)) return Buffer.alloc(TWO_CHUNKS_BYTES, random.bytes(4_099));
  return random.bytes(random.chance(0.5) ? random.below(INLINE_BYTES) : random.between(...LARGE_BYTES));
}

function draw(folder: WorkFolder, random: SeededRandom): FolderChange | undefined {
  if (folder.contents.trash.length > TRASH_ITEMS) return folder.purge();
  const path = random.pick(NAMES);
  const other = random.pick(NAMES);
  const changes: readonly (() => FolderChange | undefined)[] = [
    () =>
      path === "d" ? folder.makeFolder(path) : folder.create(path, random.bytes(random.below(INLINE_BYTES))),
    () => folder.upload(path, bytesFor(random)),
    () => folder.upload(path, bytesFor(random)),
    () => folder.uploadResumably(path, random.bytes(random.between(...LARGE_BYTES))),
    () => folder.abort(random.bytes(random.between(...LARGE_BYTES))),
    () => folder.write(path, random.below(100_000), random.bytes(random.between(1, 5_000))),
    () => folder.setSize(path, random.below(150_000)),
    () => folder.rename(path, other),
    () => folder.copy(path, other),
    () => folder.remove(path),
    () => folder.trash(path),
    () => folder.restore(),
    () => folder.purge(),
    () => folder.share(path, "bob@example.com"),
    () => folder.unshare(path, "bob@example.com"),
  ];
  return random.pick(changes)();
}

async function work(
  storage: Storage,
  name: string,
  found: FolderContents | undefined,
  random: SeededRandom,
): Promise<void> {
  const folder = new WorkFolder(() => storage, name, found ?? NOTHING);
  try {
    if (found === undefined) {
      const parentId = storage.root(OWNER)?.directoryId ?? 0;
      await storage.createDirectory({ ...BY_OWNER, parentId, name });
    }
    for (;;) {
      const change = draw(folder, random);
      if (change === undefined) continue;
      say({ event: "begin", folder: name, lines: linesOf(change.after) });
      await change.run();
      say({ event: "done", folder: name });
      folder.done(change);
    }
  } catch (error) {
    say({
      event: "stopped",
      text: error instanceof Error ? `${error.message}\n${error.stack ?? ""}` : String(error),
    });
  }
}

async function serve({ directory, seed }: LoadOrder): Promise<void> {
  if (existsSync(join(directory, "identity.json"))) {
    const { differences } = checkStorage(directory, { repair: false, deep: true });
    for (const text of differences) say({ event: "broken", text: `the check says: ${text}` });
  }
  say({ event: "checked" });
  const storage = await openTestStorage(directory);
  await storage.createRoot({ owner: OWNER, rootId: "01ROOT" });
  const found = await foldersOf(viewOf(storage));
  say({
    event: "found",
    folders: Object.fromEntries([...found].map(([name, contents]) => [name, linesOf(contents)])),
  });
  const random = new SeededRandom(seed);
  const names = Array.from({ length: FOLDERS }, (_, index) => `w${index}`);
  await Promise.all(names.map((name) => work(storage, name, found.get(name), random.fork(name))));
}

say({ event: "ready" });
for await (const line of createInterface({ input: process.stdin })) {
  try {
    await serve(JSON.parse(line) as LoadOrder);
  } catch (error) {
    say({ event: "broken", text: `the store cannot be used: ${String(error)}` });
  }
}
