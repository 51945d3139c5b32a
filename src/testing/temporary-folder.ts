// Folders for the tests of storage, in memory and removed after each test.
// Those of scratch-folder.ts lie on the disk, and processes may write there until the test process exits.
import { existsSync, mkdtempSync, rmSync, statfsSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { TestContext } from "node:test";

const MEMORY = "/dev/shm";
const MEMORY_NEEDED_BYTES = 2 ** 30;

/** Makes a folder, in memory where there is room: flushes cost no time there, and crashes behave the same. */
export function makeDirectory(): string {
  const isRoomy = existsSync(MEMORY) && freeBytes(MEMORY) > MEMORY_NEEDED_BYTES;
  return mkdtempSync(join(isRoomy ? MEMORY : tmpdir(), "grove-storage-test-"));
}

/** Makes a folder that is removed after the test. */
export function temporaryDirectory(context: TestContext): string {
  const directory = makeDirectory();
  context.after(() => rmSync(directory, { recursive: true, force: true, maxRetries: 10, retryDelay: 50 }));
  return directory;
}

function freeBytes(path: string): number {
  const { bavail, bsize } = statfsSync(path);
  return bavail * bsize;
}
