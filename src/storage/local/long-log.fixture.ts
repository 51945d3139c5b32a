// Makes small files until the log was checkpointed several times, or the store has failed; prints the durable
// ones.
import { statSync } from "node:fs";
import { join } from "node:path";
import { systemClock } from "#base/clock.ts";
import { silentLogger } from "#base/log.ts";
import { systemRandom } from "#base/random.ts";
import { openStorage } from "./open-storage.ts";

const FILES = 40_000;
const IN_FLIGHT = 128;
const OWNER = "ada@example.com";

const storage = await openStorage({
  directory: process.argv[2] ?? "",
  clock: systemClock,
  random: systemRandom,
  logger: silentLogger,
});
const { directoryId: parentId } = await storage.createRoot({ owner: OWNER, rootId: "01ROOT" });
const data = new Uint8Array(4_096);
let next = 0;
let made = 0;

async function lane(): Promise<void> {
  while (next < FILES && storage.failure === undefined) {
    const name = `f${next++}`;
    try {
      await storage.createFile({
        owner: OWNER,
        by: OWNER,
        accessVersion: 1,
        parentId,
        name,
        data,
        mtimeMs: 0,
      });
      made++;
    } catch {
      return;
    }
  }
}

await Promise.all(Array.from({ length: IN_FLIGHT }, lane));
// The file keeps the log's greatest length.
const logBytes = statSync(join(process.argv[2] ?? "", "inodes.db-wal")).size;
process.stdout.write(`${JSON.stringify({ made, logBytes, failure: storage.failure ?? null })}\n`);
await storage.close();
