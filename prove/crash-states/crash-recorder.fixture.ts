// A process whose system calls are recorded: runs workloads on a store, and prints what begins and what is
// acknowledged.
import { writeSync } from "node:fs";
import { createInterface } from "node:readline";
import { byCrc32, linesOf } from "#prove/store/folder-contents.ts";
import { WorkFolder } from "#prove/store/work-folder.ts";
import type { Storage } from "#storage/contract/storage.ts";
import { BY_OWNER, OWNER, openTestStorage } from "#storage/local/store.fixture.ts";
import type { RecorderLine, RecorderOrder } from "./recorder-lines.ts";
import { EMPTY, OPERATIONS, PREPARED, prepare } from "./workloads.ts";

/** In one write, so that it is one line of the record. */
function say(line: RecorderLine): void {
  writeSync(1, `${JSON.stringify(line)}\n`);
}

async function serve({ directory, workloads }: RecorderOrder): Promise<void> {
  let storage = await openTestStorage(directory);
  for (const [index, workload] of workloads.entries()) {
    const name = `w${index}`;
    const folder = new WorkFolder(() => storage, name, PREPARED);
    say({ event: "workload", index });
    for (const operationName of workload) {
      const operation = OPERATIONS[operationName];
      if (operation === undefined) throw new Error(`what is ${operationName}?`);
      if (operation === "reopen") {
        await storage.close();
        storage = await openTestStorage(directory);
        continue;
      }
      const change = operation(folder);
      if (change === undefined) throw new Error(`${operationName} has nothing to do`);
      say({ event: "begin", folder: name, lines: linesOf(change.after, byCrc32) });
      await change.run();
      say({ event: "done", folder: name });
      folder.done(change);
    }
  }
  await storage.close();
}

/** Makes a new store with a first folder. */
async function setUp({ directory }: RecorderOrder): Promise<void> {
  say({ event: "workload", index: 0 });
  const storage = await openTestStorage(directory);
  await makeFolder(storage, "w0");
  await storage.close();
}

async function makeFolder(storage: Storage, name: string): Promise<void> {
  const { directoryId: parentId } = await storage.createRoot({ owner: OWNER, rootId: "01ROOT" });
  await storage.createDirectory({ ...BY_OWNER, accessVersion: undefined, parentId, name });
  const folder = new WorkFolder(() => storage, name, EMPTY);
  await prepare(folder);
  say({ event: "begin", folder: name, lines: linesOf(folder.contents, byCrc32) });
  say({ event: "done", folder: name });
}

/** Makes a store with folders that are ready for workloads. */
async function prepareFolders({ directory, folders }: RecorderOrder): Promise<void> {
  const storage = await openTestStorage(directory);
  for (let index = 0; index < folders; index++) await makeFolder(storage, `w${index}`);
  await storage.close();
}

for await (const line of createInterface({ input: process.stdin })) {
  const order = JSON.parse(line) as RecorderOrder;
  try {
    await { prepare: prepareFolders, "set up": setUp, work: serve }[order.order](order);
    say({ event: "end" });
  } catch (error) {
    say({ event: "failed", text: error instanceof Error ? (error.stack ?? error.message) : String(error) });
  }
}
